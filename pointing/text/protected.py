"""Spans of a line that must come through translation unchanged: format arguments, tags, addresses, paths, options.

All kinds stand in one expression whose time is linear in the line's length: a branch that reads far ahead and fails
has read no character at which it could begin again, or reads a bounded number of them.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, lru_cache
from typing import NamedTuple, TypeAlias

from pointing.errors import Misuse


class Span(NamedTuple):
    """Characters `start` to `end` of a line, and the kind of thing that stands there."""

    start: int
    end: int
    kind: str


NumberedSpan: TypeAlias = tuple[int, int, int, str]  # the number of its line, from 0; start, end and kind

_MODIFIERS = "Ctrl|Control|Primary|Alt|AltGr|Shift|Meta|Super|Hyper|Cmd|Command|Strg|Umschalt|Maj"
_MODIFIER = f"(?:{_MODIFIERS})"
_KEY = r"(?:(?!(?i:click|clic|klick|drag|mouse))[A-Z][A-Za-z0-9_]{1,11}|[A-Za-z0-9])(?![A-Za-z0-9])"
_OPENED = r"""(?<![^\s"'`(\[{<>=|,;:/«»‹›“‘„‚])"""  # at the line's start, after a space, a quotation mark, a bracket, …
_WEB = r"""[^\s<>"`|\\(){}«»‘-„…\u2e80-\uffef]"""
_WIDTH = r"(?:\*(?:\d{1,3}\$)?|\d{1,4})?"
_HTML = (
    "a|abbr|b|big|blockquote|body|br|button|caption|center|cite|code|col|dd|div|dl|dt|em|font|form|h[1-6]|head|hr|html|"
    "i|iframe|img|input|ins|kbd|label|li|link|meta|nobr|ol|p|pre|q|qt|s|samp|script|select|small|span|strike|strong|"
    "style|sub|sup|table|tbody|td|textarea|th|thead|title|tr|tt|u|ul|var|"
    "emphasis|filename|interface|application|command|envar|shortcut|icode|bcode|ahelp|variable|menuitem|keycode|literal|"
    "warning|note|message|email|resource|placeholder|para|item|nl|numid|numIdSuffix"  # GNOME, KDE, LibreOffice
)

KINDS: dict[str, str] = {
    # Ctrl+Q, Ctrl+Shift+F5, Ctrl-C, <Control>q; not Alt-Taste, Shift+click
    "key": rf"""(?<![\w+-]) (?: {_MODIFIER} (?:[+-]{_MODIFIER}){{0,3}}
            (?: \+{_KEY} | -(?:F\d{{1,2}}|[A-Za-z0-9])(?![\w-]) )
        | (?:<{_MODIFIER}>){{1,4}} {_KEY} )""",
    # not the full stop or bracket after it; brackets that are opened inside it are part of it
    "url": rf"""(?<![\w.+-]) (?: [A-Za-z][A-Za-z0-9+.-]{{1,14}}:// | www\.(?=\w) )
        (?: {_WEB} | \({_WEB}*\) | \{{{_WEB}*\}} )* (?<![.,;:!?'*\]/]) /? (?<!:/)(?<!//)""",
    "email": r"""(?<![\w.+-]) [A-Za-z0-9_][\w.+-]{0,63}
        @ (?:[A-Za-z0-9][A-Za-z0-9-]{0,62}\.){1,8} [A-Za-z]{2,24} (?!\w)""",
    # %s %1$s %-10.3lf %(name)s %% %<PRIu64>; gcc: %qs %< %>; Qt: %1; strftime: %Y; Scheme: ~a; not `100 % sure`, 5%de
    "printf": rf"""% (?: %
        | \([\w.-]+\) [-+#0']* \d* (?:\.\d+)? [A-Za-z]
        | (?<![0-9]%) [A-Z_][A-Z_0-9]{{2,}} %?
        | (?:\d{{1,3}}\$)? [-+#0']* {_WIDTH} (?:\.{_WIDTH})? (?: <PRI[A-Za-z0-9]{{1,12}}>
            | (?:hh|h|ll|l|L|q|j|z|t)? (?: [diouxXeEfFgGaAcspnCSm] (?<! [0-9]%[A-Za-z] (?=[A-Za-z]) ) ) )
        | (?<![0-9]%) L?\d{{1,2}} (?!\d)
        | (?:q[+#]*|w)? [A-Za-z] (?![A-Za-z]) (?<![0-9]%[A-Za-z])
        | [<>] ) | ~% | ~ (?<![\w/]~) [asdASD] (?!\w)""",
    # {count} {0:.2f} {} {{x}} ${var} #{name} %{name}; not { text with words }
    "braces": r"""[$\#%]? (?: \{\{ [ ]?[\w.|-]*[ ]? \}\}
        | \{ [\w.\[\]]* (?:![rsa])? (?: :[^{}\s]{0,30} )? \} )""",
    # $HOME $(ARG1) $[officename] @VERSION@; not $5
    "variable": r"""(?<![\w$]) \$ (?: [A-Za-z_]\w* | \([A-Za-z_]\w*\) | \[[A-Za-z_]\w*\] )
        | (?<![\w@]) @ [A-Za-z_]\w* @ (?!\w)""",
    # a bare <name> is a tag if HTML knows it or the line closes it: `<file>` is an argument, which people translate
    "tag": r"""< (?: !--[^<>]*(?<=--)> | !\[CDATA\[ | /[A-Za-z][\w:.-]*\s*>
        | [A-Za-z][\w:.-]* (?: \s[^<>=]*=[^<>]*>  |  \s*/?> ) ) | \]\]>""",
    "entity": r"& (?: [A-Za-z][A-Za-z0-9]{1,31} | \#\d{1,7} | \#[xX][0-9A-Fa-f]{1,6} ) ;",
    # /usr/share/doc ~/.config ./configure C:\Windows; not and/or, km /h
    "path": rf"""{_OPENED} (?: (?: (?:~|\.\.?)/ | /(?=[\w.%${{@][\w.+@%$*{{/-]) ) [\w.+@%$*{{}}~/-]* (?<![.*])
        | [A-Za-z]:\\ [\w.+@%${{}}~\\-]* (?<!\.) )""",
    "escape": r"""\\ (?: [0-7]{3} | [abefnrtv0\\"'] | x[0-9A-Fa-f]{2} | u[0-9A-Fa-f]{4} )""",
    # --help -v -O2 -Wall -fno-common '-shared'; only the option of --file=NAME; not -5, Ein- und -ausgabe
    "option": rf"""- {_OPENED[:-1]}-) (?: -[A-Za-z0-9](?:[\w-]*\w)? | [A-Za-z]\d* | W[a-z][\w-]*
        | [A-Za-z][a-z]*(?:-[a-z0-9]+)+ | (?: (?<=['"`<‘“„‚«»‹›]-) | (?<=«\s-) ) [A-Za-z][\w-]*\w ) (?![\w-])""",
    # 1.2.3, v1.2, 127.0.0.1; not 3.5, and not 31.12.2020 or 1.000.000
    "version": r"""(?<![\w.,]) (?! \d{1,2}\.\d{1,2}\.\d{4}(?![\w.]) | \d{1,3}(?:\.\d{3}){2}(?![\w.]) )
        (?: v\d+\.\d+(?:\.\d+)* | \d+(?:\.\d+){2,} ) (?:\.[x*])?
        (?: [-~+]?(?:alpha|beta|rc|pre|dev|git|dfsg|deb|a|b)\.?\d* (?<!\.) )? (?!\w)""",
}
PRESETS: dict[str, tuple[str, ...]] = {"none": (), "web": ("url", "email", "tag", "entity"), "software": tuple(KINDS)}
# Most lines are read with few kinds or none: a kind is looked for where its signs are.
_SIGNS = {  # every span of the kind has at least one of these characters
    "key": "+-<",
    "url": "/.",
    "email": "@",
    "printf": "%~",
    "braces": "{",
    "variable": "$@",
    "tag": "<]",
    "entity": "&",
    "path": "/\\",
    "escape": "\\",
    "option": "-",
    "version": ".",
}
_CLUES = {  # kinds whose signs are common in any text: every span also has a match of this
    "key": re.compile(_MODIFIERS),
    "url": re.compile(r"://|www\."),
    "version": re.compile(r"\.\d"),
}
_SIGN = re.compile(f"[{re.escape(''.join(_SIGNS.values()))}]")
_FREQUENT = frozenset({"printf", "tag", "option", "path"})
_Reading: TypeAlias = tuple[re.Pattern[str] | None, list[re.Pattern[str]]]  # and clues: with one, read all kinds
_BARE_TAG = re.compile(rf"<(?!(?i:{_HTML})\s*>)([\w:.-]+)\s*>")
_CLOSING = re.compile(r"</([\w:.-]+)")


class Protector:
    """A line → its protected spans: not overlapping, left to right, never empty.

    The user's own patterns come first: other kinds are looked for in what they leave.
    """

    def __init__(self, kinds: Sequence[str], patterns: Sequence[str] = ()) -> None:
        for kind in kinds:
            if kind not in KINDS:
                raise Misuse(f"protected spans: no kind {kind!r}; there are: {', '.join(KINDS)}")
        self.kinds = tuple(kind for kind in KINDS if kind in set(kinds))
        self.patterns = tuple(patterns)
        self._custom = [_own(pattern) for pattern in patterns]
        self._by_signs = _ExpressionsBySigns(self.kinds)

    @classmethod
    def named(cls, name: str) -> Protector:
        """The protector of a preset (`software`) or of kinds (`printf,tag`)."""
        return cls(PRESETS[name] if name in PRESETS else [kind.strip() for kind in name.split(",")])

    def __call__(self, line: str) -> list[Span]:
        return [Span(start, end, kind) for _, start, end, kind in self.in_lines([line])]

    def in_lines(self, lines: Sequence[str]) -> list[NumberedSpan]:
        """The spans of all lines, in their order."""
        if self._custom:
            return [(number, *span) for number, line in enumerate(lines) for span in self._with_custom(line)]
        return [
            (number, match.start(), match.end(), match.lastgroup or "")
            for number, expression in self._expressions(lines)
            for match in expression.finditer(lines[number])
            if _is_span(match)
        ]

    def _expressions(self, lines: Sequence[str]) -> Iterator[tuple[int, re.Pattern[str]]]:
        """The numbers of the lines that may have spans of our kinds, and expressions that find these."""
        for number, signs in enumerate(map(_SIGN.findall, lines)):
            if signs:
                expression, clues = self._by_signs[frozenset(signs)]
                for clue in clues:
                    if clue.search(lines[number]):
                        expression = _expression(self.kinds)
                        break
                if expression is not None:
                    yield number, expression

    def _with_custom(self, line: str) -> list[Span]:
        spans: list[Span] = []
        gaps = [(0, len(line))]
        for expression in self._custom:
            free: list[tuple[int, int]] = []
            for start, end in gaps:
                for match in expression.finditer(line, start, end):
                    if match.start() < match.end():
                        spans.append(Span(*match.span(), "custom"))
                        free.append((start, match.start()))
                        start = match.end()
                free.append((start, end))
            gaps = free
        for _, expression in self._expressions([line]):
            matches = (match for gap in gaps for match in expression.finditer(line, *gap))
            spans += [Span(*match.span(), match.lastgroup or "") for match in matches if _is_span(match)]
        return sorted(spans)


def _is_span(match: re.Match[str]) -> bool:
    """False for a bare <name>, unless it is a tag of HTML's or its line has a closing tag of this name."""
    if match.lastgroup != "tag":
        return True
    bare = _BARE_TAG.fullmatch(match[0])
    return bare is None or bare[1] in _closed_names(match.string)


@lru_cache(maxsize=1)  # the names are asked for several times, and then for those of another line
def _closed_names(line: str) -> frozenset[str]:
    return frozenset(_CLOSING.findall(line))


class _ExpressionsBySigns(dict[frozenset[str], _Reading]):
    """The signs of a line → how it is read.

    Lines with a sign of an infrequent kind share the expression of all kinds, so that few need to be compiled.
    """

    def __init__(self, kinds: tuple[str, ...]) -> None:
        super().__init__()
        self.kinds = kinds

    def __missing__(self, signs: frozenset[str]) -> _Reading:
        possible = [kind for kind in self.kinds if not signs.isdisjoint(_SIGNS[kind])]
        kinds = tuple(kind for kind in possible if kind not in _CLUES)
        clues = [_CLUES[kind] for kind in possible if kind in _CLUES]
        if not _FREQUENT.issuperset(kinds):
            kinds, clues = self.kinds, []
        self[signs] = _expression(kinds) if kinds else None, clues
        return self[signs]


@cache
def _expression(kinds: tuple[str, ...]) -> re.Pattern[str]:
    """One expression for these kinds."""
    one_of_them = "|".join(f"(?P<{kind}>{KINDS[kind]})" for kind in kinds)
    # Many kinds need not be tried at each letter: no span begins inside a word, or with white space.
    return re.compile(one_of_them if _FREQUENT.issuperset(kinds) else rf"(?!\s|\B\w)(?:{one_of_them})", re.VERBOSE)


def _own(pattern: str) -> re.Pattern[str]:
    """The user's pattern, compiled; refused if it is no regular expression, or matches nothing at all."""
    try:
        expression = re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        raise Misuse(f"protected spans: {pattern!r} is no regular expression: {error}") from None
    for text in ("", "a B-1 é"):
        if any(match.start() == match.end() for match in expression.finditer(text)):
            raise Misuse(f"protected spans: {pattern!r} can match the empty string; it must match at least a character")
    return expression


_POSITIONAL = re.compile(
    rf"%[-+#0']*{_WIDTH}(?:\.{_WIDTH})?(?:<PRI\w+>|(?:hh|h|ll|l|L|q|j|z|t|w|q[+#]*)?[diouxXeEfFgGaAcspCSDTVJKPQRH])"
    r"|~[asdASD]|\{(?:![rsa])?(?::[^{}]*)?\}"
)


def keeps_order(text: str, kind: str) -> bool:
    """True for a positional, unnumbered format argument (%s, {}): several of them must stay in their order."""
    return kind in ("printf", "braces") and "$" not in text and _POSITIONAL.fullmatch(text) is not None


# A protected span is one token. Its word begins with a space, as no word of a text does. It has the span's kind, the
# number of its occurrence in the line and its text: ` printf 2 %s`. So the second `%s` of a target is the second of the
# source.


def protected_word(kind: str, occurrence: int, text: str) -> str:
    return f" {kind} {occurrence} {text}"


def protected_words(lines: Sequence[str], spans: Iterable[NumberedSpan]) -> list[str]:
    """The words of the lines' protected spans."""
    words = []
    occurrences: dict[tuple[int, str], int] = defaultdict(int)
    for number, start, end, kind in spans:
        text = lines[number][start:end]
        occurrences[number, text] += 1
        words.append(protected_word(kind, occurrences[number, text], text))
    return words


def is_protected(word: str) -> bool:
    return word.startswith(" ") and word[1:2].isalpha() and " " in word[1:]


def protected_text(word: str) -> str:
    """The characters of a protected span; any other word as it is."""
    return word.split(" ", 3)[3] if is_protected(word) else word


def kind_word(word: str) -> str:
    """The source vocabulary's word for all protected spans of one kind: ` printf`."""
    return word[: word.index(" ", 1)]


def kind_of(word: str) -> str:
    return kind_word(word)[1:]
