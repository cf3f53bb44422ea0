"""Raw lines → tokens with their character offsets in the raw line, and back.

A copied word is written as it was in the source, so every token keeps its span there. The word that the model reads
(lower-cased, digits folded, normalised) may differ from `line[start:end]`, even in length; offsets stay the same.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Generic, Literal, NamedTuple, TypeVar, get_args

from pointing.errors import Misuse, missing_extra
from pointing.text.protected import Protector, is_protected, protected_text, protected_words

Kind = Literal["regex", "moses", "whitespace"]
Digits = Literal["keep", "fold"]
Unicode = Literal["keep", "nfc", "nfkc"]
Value = TypeVar("Value")
MEMORY_SIZE = 1 << 16  # texts
LONGEST_REMEMBERED = 50  # characters; longer texts hardly ever come again


class Tokens(NamedTuple):
    """The words of a line as the model reads them; `line[start:end]` is the raw form of a word."""

    words: list[str]
    starts: list[int]
    ends: list[int]


class Tokenizer:
    """Splits lines into words with offsets, and joins words into lines.

    `regex` splits names and identifiers in the same way in every language, so that a name of the source can be found in
    the target. The language matters only for `detokenize`, and for `moses`.
    """

    def __init__(
        self,
        kind: Kind = "regex",
        language: str = "en",
        *,
        lowercase: bool = False,
        digits: Digits = "keep",
        unicode: Unicode = "nfc",
        protector: Protector | None = None,
    ) -> None:
        """The spans that `protector` finds are one token each, whatever is in them. Not for `moses`."""
        for value, choices in ((kind, Kind), (digits, Digits), (unicode, Unicode)):
            if value not in get_args(choices):
                raise Misuse(f"there is no tokenizer setting {value!r} here, only {', '.join(get_args(choices))}")
        self.kind, self.language = kind, language
        self.lowercase, self.digits, self.unicode, self.protector = lowercase, digits, unicode, protector
        self._moses: Any = None
        self._demoses: Any = None
        if kind == "moses":
            self._moses, self._demoses = _sacremoses(language)
        # Most chunks (texts between white space) and most raw words have occurred before (Zipf), so results are
        # remembered. That halves the time, even from an empty memory.
        self._pieces = Memory(self._pieces_of_chunk)
        self._words = Memory(self._word_of_piece)

    def __call__(self, line: str) -> Tokens:
        if self.kind == "moses":
            return self._by_moses(line)
        words: list[str] = []
        starts: list[int] = []
        ends: list[int] = []
        offset = 0
        for chunk in self.chunks(line):
            text = protected_text(chunk)
            offset = line.find(text, offset)  # the first hit is right: only white space comes before it
            for piece in self._pieces[chunk]:
                words.append(self._words[piece])
                starts.append(offset)
                offset += len(piece if text is chunk else text)
                ends.append(offset)
        return Tokens(words, starts, ends)

    def words(self, line: str) -> list[str]:
        """Only the words, which is faster, for uses that need no offsets."""
        if self.kind == "moses":
            return self._by_moses(line).words
        return [self._words[piece] for chunk in self.chunks(line) for piece in self._pieces[chunk]]

    def chunks(self, line: str) -> list[str]:
        """The texts between white space; where spans are protected, these as words of their own. Not for `moses`."""
        spans = [] if self.protector is None else self.protector.in_lines([line])
        if not spans:
            return line.split()
        chunks: list[str] = []
        done = 0
        for (_, start, end, _), word in zip(spans, protected_words([line], spans), strict=True):
            chunks += line[done:start].split()
            chunks.append(word)
            done = end
        return chunks + line[done:].split()

    def pieces(self, chunks: Iterable[str]) -> list[tuple[str, ...]]:
        """The raw words of each chunk; a protected span is one piece. Not for `moses`."""
        return list(map(self._pieces.__getitem__, chunks))

    def words_of_pieces(self, pieces: Iterable[str]) -> list[str]:
        """Each piece as the model reads it."""
        return list(map(self._words.__getitem__, pieces))

    def detokenize(self, words: Sequence[str]) -> str:
        if self.kind == "whitespace":
            return " ".join(words)
        if self.kind == "moses":
            return str(self._demoses.detokenize(words, unescape=False))
        return _join(words, french=self.language.startswith("fr"))

    def __reduce__(self) -> tuple[Any, ...]:
        # A worker process gets the settings and starts with an empty memory.
        return _rebuild, (self.kind, self.language, self.lowercase, self.digits, self.unicode, self.protector)

    def _pieces_of_chunk(self, chunk: str) -> tuple[str, ...]:
        return (chunk,) if self.kind == "whitespace" or is_protected(chunk) else tuple(_split_by_shape(chunk))

    def _word_of_piece(self, piece: str) -> str:
        return piece if is_protected(piece) else self.normalise(piece)

    def normalise(self, raw: str) -> str:
        """A raw word as the model reads it."""
        word = raw
        if self.unicode != "keep" and not raw.isascii():
            word = unicodedata.normalize("NFC", raw)
            if self.unicode == "nfkc":
                compatible = unicodedata.normalize("NFKC", raw)
                if compatible.split() == [compatible]:  # NFKC writes a few characters (¨ ﷺ) with spaces: these stay NFC
                    word = compatible
        if self.lowercase:
            word = word.lower()
        return _DIGIT.sub("#", word) if self.digits == "fold" else word

    def _by_moses(self, line: str) -> Tokens:
        compose = self.unicode != "keep" and not unicodedata.is_normalized("NFC", line)
        if compose or _CONTROL.search(line):
            view, begins, finishes = _shown_to_moses(line, compose)
        else:
            view, begins, finishes = line, range(len(line)), range(1, len(line) + 1)
        tokens = self._moses.tokenize(view, escape=False)
        if "".join(tokens) != "".join(view.split()):
            # Moses has changed letters (it reads DOTMULTI as a full stop): chunks whose letters it changes stay whole.
            split = [(chunk, self._moses.tokenize(chunk, escape=False)) for chunk in view.split()]
            tokens = [token for chunk, pieces in split for token in (pieces if "".join(pieces) == chunk else [chunk])]
        starts, ends, offset = [], [], 0
        for token in tokens:
            offset = view.find(token, offset)
            starts.append(begins[offset])
            offset += len(token)
            ends.append(finishes[offset - 1])
        return Tokens([self._words[token] for token in tokens], starts, ends)


def _rebuild(
    kind: Kind, language: str, lowercase: bool, digits: Digits, unicode: Unicode, protector: Protector | None
) -> Tokenizer:
    return Tokenizer(kind, language, lowercase=lowercase, digits=digits, unicode=unicode, protector=protector)


class Memory(dict[str, Value], Generic[Value]):
    """Remembers the results of a function of short texts. When it is full it is emptied."""

    def __init__(self, function: Callable[[str], Value]) -> None:
        super().__init__()
        self.function = function

    def __missing__(self, text: str) -> Value:
        value = self.function(text)
        if len(text) <= LONGEST_REMEMBERED:
            if len(self) >= MEMORY_SIZE:
                self.clear()
            self[text] = value
        return value


def _sacremoses(language: str) -> tuple[Any, Any]:
    try:
        from sacremoses import MosesDetokenizer, MosesTokenizer
    except ImportError:
        raise missing_extra("sacremoses", "moses") from None
    return MosesTokenizer(language), MosesDetokenizer(language)


_DIGIT = re.compile(r"\d")
_CONTROL = re.compile("[\0-\x08\x0e-\x1b]")  # characters that Moses deletes, without white space


def _shown_to_moses(line: str, compose: bool) -> tuple[str, Sequence[int], Sequence[int]]:
    """The line without control characters, and where each character of the result begins and ends in the line.

    Moses separates a letter from its combining marks. With `compose`, letter and marks become one character if Unicode
    has one for them.
    """
    view: list[str] = []
    begins: list[int] = []
    finishes: list[int] = []
    heads = [i for i, letter in enumerate(line) if not (compose and i and unicodedata.combining(letter))]
    for start, end in zip(heads, [*heads[1:], len(line)], strict=True):
        composed = unicodedata.normalize("NFC", line[start:end]) if compose else line[start:end]
        is_single = len(composed) == 1
        for first, last in [(start, end)] if is_single else [(i, i + 1) for i in range(start, end)]:
            letter = composed if is_single else line[first]
            if not _CONTROL.match(letter):
                view.append(letter)
                begins.append(first)
                finishes.append(last)
    return "".join(view), begins, finishes


# A chunk is split by its *shape*: ASCII characters stay as they are, every other character is replaced by one that
# stands for its class. So the expression needs no Unicode classes (`\w` has no combining marks), and can be read.
#   é letter   0 digit   \u0300 mark   字 written without spaces   ア katakana   ☺ symbol   ⚑ half a flag   ¤ other
_ALIKE = {
    **{ord(character): "'" for character in "’ʼ＇"},
    **{ord(character): '"' for character in "“”„«»‹›"},
    **{ord(character): "-" for character in "‐‑"},
    **{ord(character): character for character in "–\u200d"},  # a range of numbers; the zero-width joiner
    ord("°"): "é",  # a letter, because of n°4 and 20°C
}
_MODIFIER = re.compile(
    "[\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f]"
)  # colours of skin; the tags in the flag of Scotland
_FLAG = re.compile("[\U0001f1e6-\U0001f1ff]")
_KATAKANA = re.compile("[\u30a0-\u30ff\u31f0-\u31ff\uff66-\uff9f]")
_UNSPACED = re.compile(  # Han, hiragana, Thai, Lao, Burmese, Khmer
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3041-\u309f\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U0001b000-\U0001b16f\U00020000-\U0003ffff]"
)


class _Shapes(dict[int, str]):
    """Code point → shape, computed at its first use: Unicode is large, and a corpus uses little of it."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        category = unicodedata.category(character)
        if code < 128:
            shape = character
        elif category[0] == "M" or _MODIFIER.match(character):
            shape = "\u0300"
        elif _FLAG.match(character):
            shape = "⚑"
        elif category[0] in "PS" or category == "Cc":
            shape = "☺" if category == "So" else "¤"
        elif _KATAKANA.match(character):
            shape = "ア"
        elif _UNSPACED.match(character):
            shape = "字"
        else:
            shape = "0" if category[0] == "N" else "é"  # zero-width and unassigned characters are part of a word
        self[code] = shape
        return shape


_SHAPES = _Shapes(_ALIKE)
_W = "[A-Za-z0-9_#é\u0300\u200d]"
_CLITIC = rf"(?i:[stdm]|re|ve|ll)(?!{_W})"
_ELIDED = r"(?i:[ldjmtsnc]|(?:jus|lors|puis|quoi)?qu)"
_URL = r"""[^"<>]*[^"<>.,;:!?)\]}']"""
_OPENED = r"""(?<![^(\[{"'`=,;:|])"""  # at the chunk's start, or after an opening bracket, a quote, an equals sign, …
# The time is linear in the line's length: no branch reads far ahead, fails, and reads the same again at the next token.
_TOKEN = re.compile(
    rf"""
      {_W}+(?=[,.;!?)"]*\Z)                         # most chunks match this; it comes first because it is fast
    | (?:[A-Za-zé]\.){{2,}}(?:-{_W}+)*(?!{_W})      # U.S., U.N.-backed
    | (?:n't|N'T)(?!{_W})                           # do n't, as in the Penn Treebank: both parts are in
    | [A-Za-z]+?(?=(?:n't|N'T)(?!{_W}))             # shortlists and dictionaries; `don` and `'t` are not
    | {_ELIDED}'(?!{_CLITIC})(?={_W}) | \A{_ELIDED}'\Z  # l' État, jusqu' ici; but aujourd'hui, O'Brien
    | (?<={_W})'{_CLITIC} | \A'{_CLITIC}\Z          # China 's; also if 's is a chunk of its own
    | www\.{_URL} | </?[A-Za-z]{_W}*/?>             # <unk>
    | (?:@|(?<![^(\[{{])\.(?=[a-z0-9]|[A-Z]{{2}}))?{_W}+   # @user, .NET, and plain words
      (?:(?:[-.@&~]|\+\+?|'(?!{_CLITIC})|(?<=[0-9])[,:–](?=[0-9])|::){_W}+)*  # libfoo-dev, 1,000.50, a@b.org
      (?:\++(?!{_W})|://{_URL}|(?:/{_W}+(?:[-.]{_W}+)*){{2,}}/?)?             # g++, http://…, 2003/109/EC
    | {_OPENED}--[a-z]{_W}*(?:[-=.]{_W}+)*          # --help
    | {_OPENED}-(?:[A-Za-z](?!{_W})|[0-9]{_W}*(?:[.,]{_W}+)*)  # -v, -5
    | {_OPENED}(?:~|\.\.?)?/(?=\.?{_W}){_URL}       # /usr/share/doc, ~/.config
    | ア[ア\u0300]* | ⚑⚑
    | \.\.+ | --+ | ==+ | \*\*+ | \'\' | ``
    | .\u0300*(?:\u200d☺\u0300*)*                   # any other character, with its marks; joined emoji
    """,
    re.VERBOSE | re.DOTALL,
)


def _split_by_shape(chunk: str) -> list[str]:
    """The tokens of a chunk, as they are written in it."""
    if chunk.isalnum() and max(chunk) < "\u02b0":  # Latin letters and digits
        return [chunk]
    if chunk.isascii():
        return _TOKEN.findall(chunk)
    return [chunk[match.start() : match.end()] for match in _TOKEN.finditer(chunk.translate(_SHAPES))]


_LEANS_LEFT = re.compile(r"[,.;:!?%)\]}”’»›…]|\.\.+|''|n['’]t|['’](?:[stdm]|re|ve|ll)", re.IGNORECASE)
_LEANS_RIGHT = re.compile(rf"[(\[{{“‘„«‹¿¡$£€]|``|{_ELIDED}['’]")
_FRENCH_APART = frozenset("?!:;%»›«‹$£€")  # French has a space on both sides; an ordinary one, as Moses writes it
_BEFORE_UNPAIRED = {"'": ("s", "S", ".", ",", "!", "?"), '"': (".", ",", "!", "?", "…"), "`": ()}
_QUOTES = _BEFORE_UNPAIRED.keys()


def _join(words: Sequence[str], french: bool) -> str:
    """Words as a line: punctuation touches its neighbours as it usually does."""
    text: list[str] = []
    before = ""  # the word before; empty if the next word must follow without a space
    unread = Counter(words)
    quoted: set[str] = set()  # the quotation marks that are open
    for word in words:
        left = right = False  # True if it touches its left, its right neighbour
        if word in _QUOTES:
            # An unpaired mark ends a plural's genitive (the users'), or a quotation that began in an earlier line.
            unpaired = word not in quoted and unread[word] % 2 == 1 and before.endswith(_BEFORE_UNPAIRED[word])
            left = unpaired or word in quoted
            right = not left
            if not unpaired:
                quoted ^= {word}
        elif french and word in _FRENCH_APART:
            left = word in "?!" and before in ("?", "!")
        elif word == "/":
            left = right = True
        else:
            left, right = bool(_LEANS_LEFT.fullmatch(word)), bool(_LEANS_RIGHT.fullmatch(word))
        unspaced = before and word and _unspaced(before[-1]) and _unspaced(word[0])
        text.append(word if left or unspaced or not before else " " + word)
        before = "" if right else word
        unread[word] -= 1
    return "".join(text)


def _unspaced(character: str) -> bool:
    """True if the character's script has no spaces between words."""
    return _SHAPES[ord(character)] in "字ア" or character in "、。，．：；！？（）「」『』【】《》〈〉・…"


def subscript(number: int) -> str:
    """A number in small digits below the line, to be shown behind a word."""
    return str(number).translate(str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉"))
