"""Tokens and their places: tables of golden cases, and for any line at all what the offsets promise."""

from __future__ import annotations

import pickle
import re
import subprocess
import sys
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pointing.errors import Misuse
from pointing.text.tokenizer import MEMORY_SIZE, Tokenizer, Tokens

GOLDEN = [  # a space stands where the line is cut
    ("The cat sat.", "The cat sat ."),
    ("Really?! (Yes, she said.)", "Really ? ! ( Yes , she said . )"),
    ("I don't, he CAN'T, they won’t.", "I do n't , he CA N'T , they wo n’t ."),
    ("China's we'll I'm they've 1990's O'Brien's", "China 's we 'll I 'm they 've 1990 's O'Brien 's"),
    ("the dogs' 'quoted' words", "the dogs ' ' quoted ' words"),
    ("l'État d’abord qu'il jusqu'à L'Oréal s'est", "l' État d’ abord qu' il jusqu' à L' Oréal s' est"),
    ("aujourd'hui quelqu'un main-d'œuvre", "aujourd'hui quelqu'un main-d'œuvre"),
    ("« Oui », dit-il : «Non!»", "« Oui » , dit-il : « Non ! »"),
    ("1,000.50 1.2.3 12:30 10–15 -5 3.14.", "1,000.50 1.2.3 12:30 10–15 -5 3.14 ."),
    ("$5 5% 20°C n°4", "$ 5 5 % 20°C n°4"),
    ("U.S. e.g. U.N.-backed J. Smith.", "U.S. e.g. U.N.-backed J . Smith ."),
    ("libfoo-dev, g++, python3.11, gtk+", "libfoo-dev , g++ , python3.11 , gtk+"),
    ("libstdc++6 1:2.3+dfsg-1~rc1 snake_case std::string", "libstdc++6 1:2.3+dfsg-1~rc1 snake_case std::string"),
    ("(https://a.org/b_(c)?d=1&e), www.a.org.", "( https://a.org/b_(c)?d=1&e ) , www.a.org ."),
    ("mail a.b+c@d-e.org, @user #tag C# .NET AT&T", "mail a.b+c@d-e.org , @user #tag C# .NET AT&T"),
    ("/usr/share/doc, (~/.x) ./configure --help -v", "/usr/share/doc , ( ~/.x ) ./configure --help -v"),
    ("--set=a.b and/or 2003/109/EC km/h", "--set=a.b and / or 2003/109/EC km / h"),
    ("well... no--never -- <unk> ``so''", "well ... no -- never -- <unk> `` so ''"),
    ("我爱北京。カタカナとかな", "我 爱 北 京 。 カタカナ と か な"),
    ("สวัสดี", "ส วั ส ดี"),
    ("नमस्ते दुनिया। 안녕하세요", "नमस्ते दुनिया । 안녕하세요"),
    ("\U0001f44d\U0001f3fd\u2764\ufe0f 1\ufe0f\u20e3", "\U0001f44d\U0001f3fd \u2764\ufe0f 1\ufe0f\u20e3"),
    ("\U0001f469\u200d\U0001f467!", "\U0001f469\u200d\U0001f467 !"),
    ("\U0001f1eb\U0001f1f7\U0001f1e9\U0001f1ea", "\U0001f1eb\U0001f1f7 \U0001f1e9\U0001f1ea"),
    ("so\u00adft a\u200bb \ufeffc", "so\u00adft a\u200bb \ufeffc"),
    ("a\0b \x01", "a \0 b \x01"),
]

ROUND_TRIPS = [
    ("en", "He said: \"I don't know (yet), but it's John's 5% of $1,000.50!\""),
    ("en", "The dogs' tails, and/or the cat's; see https://example.org/a, or ask foo@example.org..."),
    ("en", "'War is only the continuation of politics by other means,' he quoted."),
    ("en", 'It is over," he said.'),
    ("en", "Install libfoo-dev [or g++] with --help; they've won't {x} “quoted” ‘so’."),
    ("fr", "« L'État, c'est moi ! », dit-il : « Qu'est-ce qu'il y a aujourd'hui ? »"),
    ("fr", "Vraiment ?! Il l’a vendu 100 $ (5 % de plus) ; jusqu'ici..."),
    ("zh", "我爱北京，天安门！"),
]

KINDS = ["regex", "moses", "whitespace"]
CONTROLS = dict.fromkeys(range(0x20))  # Moses deletes these

PIECES = [
    *"abnstlqdIİΣςß019²_#'’\".,:;!?-–/\\+@&~=*%$()[]{}<>|`^ \t\n\r\v\f\x1c\x85\xa0\u2028\u3000",
    *"\0\x01\x1b\x7f\x9f\u00ad\u200b\u200d\ufeff\u0301\u0327\u0345\ufe0f\u20e3\u00a8\ufdfa\ufb01½Å",
    *"字かカไ각ᄀ☺\U0001f469\U0001f3fd\U0001f1eb\U00020000\U000e0067\ud800\ue000",
    *["n't", "qu'", "://", "www.", "...", "DOTMULTI", "DOTDOTMULTI", "U.S.", "1,0", "@-@", "&amp;", "e\u0301"],
]
LINES = st.lists(st.sampled_from(PIECES) | st.characters(), max_size=40).map("".join)


def raw(line: str, tokens: Tokens) -> list[str]:
    return [line[start:end] for start, end in zip(tokens.starts, tokens.ends, strict=True)]


def as_seen(form: str, lowercase: bool, digits: str, unicode: str) -> str:
    """What the model should see of a raw form, written out once more."""
    if unicode == "nfkc" and not re.search(r"\s", unicodedata.normalize("NFKC", form)):
        form = unicodedata.normalize("NFKC", form)
    elif unicode != "keep":
        form = unicodedata.normalize("NFC", form)
    form = form.lower() if lowercase else form
    return "".join("#" if letter.isdecimal() and digits == "fold" else letter for letter in form)


@pytest.mark.parametrize(("line", "cut"), GOLDEN)
def test_regex_cuts_as_people_would(line, cut):
    tokens = Tokenizer(unicode="keep")(line)
    assert " ".join(tokens.words) == cut
    assert raw(line, tokens) == tokens.words


def test_offsets_by_hand():
    #       0123456789012345
    line = "  Don't\t l’été. "
    assert Tokenizer(lowercase=True)(line) == Tokens(
        ["do", "n't", "l’", "été", "."], [2, 4, 9, 11, 14], [4, 7, 11, 14, 15]
    )
    assert Tokenizer("whitespace")(line) == Tokens(["Don't", "l’été."], [2, 9], [7, 15])
    assert Tokenizer("moses")(line) == Tokens(
        ["Don", "'t", "l", "’", "été", "."], [2, 5, 9, 10, 11, 14], [5, 7, 10, 11, 14, 15]
    )


@pytest.mark.parametrize("kind", KINDS)
def test_a_line_of_nothing_has_no_tokens(kind):
    for line in ("", " ", "\t\n\x1c\x85\xa0\u2028\u3000"):
        assert Tokenizer(kind)(line) == Tokens([], [], [])


@settings(max_examples=300, deadline=None)
@given(
    LINES,
    st.sampled_from(["regex", "whitespace"]),
    st.booleans(),
    *map(st.sampled_from, [["keep", "fold"], ["keep", "nfc", "nfkc"]]),
)
def test_every_character_that_is_not_space_is_in_one_token(line, kind, lowercase, digits, unicode):
    tokenizer = Tokenizer(kind, lowercase=lowercase, digits=digits, unicode=unicode)
    tokens = tokenizer(line)
    covered = [i for start, end in zip(tokens.starts, tokens.ends, strict=True) for i in range(start, end)]
    assert covered == [i for i, letter in enumerate(line) if not letter.isspace()]  # in order, and none twice
    assert all(raw(line, tokens))
    assert tokens.words == [as_seen(form, lowercase, digits, unicode) for form in raw(line, tokens)]
    assert all(word and not re.search(r"\s", word) for word in tokens.words)
    assert tokenizer.words(line) == tokens.words


@settings(max_examples=150, deadline=None)
@given(
    LINES,
    st.sampled_from(["en", "fr"]),
    st.booleans(),
    *map(st.sampled_from, [["keep", "fold"], ["keep", "nfc", "nfkc"]]),
)
def test_moses_tokens_find_their_place_in_any_line(line, language, lowercase, digits, unicode):
    tokens = moses(language, lowercase, digits, unicode)(line)
    covered = [i for start, end in zip(tokens.starts, tokens.ends, strict=True) for i in range(start, end)]
    assert covered == sorted(set(covered))
    assert all(raw(line, tokens))
    bare = [i for i, letter in enumerate(line) if not letter.isspace() and ord(letter) not in CONTROLS]
    assert [i for i in covered if ord(line[i]) not in CONTROLS] == bare
    forms = [form.translate(CONTROLS) for form in raw(line, tokens)]
    assert tokens.words == [as_seen(form, lowercase, digits, unicode) for form in forms]


def moses(language="en", lowercase=False, digits="keep", unicode="nfc", made={}):  # noqa: B006  made once: slow to make
    key = (language, lowercase, digits, unicode)
    if key not in made:
        made[key] = Tokenizer("moses", language, lowercase=lowercase, digits=digits, unicode=unicode)
    return made[key]


def test_every_character_of_unicode_is_kept():
    tokenizer = Tokenizer(unicode="keep")
    for first in [*range(0, 0x20000, 256), 0x20000, 0xE0000, 0xE0100, 0x10FF00]:
        line = "".join(map(chr, range(first, first + 256)))
        assert "".join(tokenizer(line).words) == "".join(line.split())


@pytest.mark.parametrize(("language", "line"), ROUND_TRIPS[:5])
def test_moses_words_are_those_of_sacremoses(language, line):
    from sacremoses import MosesTokenizer

    assert moses(language)(line).words == MosesTokenizer(language).tokenize(line, escape=False)


def test_moses_is_shown_accents_composed_and_its_rewriting_is_undone():
    line = "L'e\u0301te\u0301 a\x01b DOTMULTI\u00a0fin."
    tokens = moses("fr")(line)
    assert tokens.words == ["L'", "été", "ab", "DOTMULTI", "fin", "."]
    assert raw(line, tokens) == ["L'", "e\u0301te\u0301", "a\x01b", "DOTMULTI", "fin", "."]


def test_lower_casing_that_changes_the_length_moves_no_offset():
    line = "İİ İstanbul'da ΟΔΟΣ ﬁn ㎞"
    tokens = Tokenizer(lowercase=True, unicode="nfkc")(line)
    assert tokens.words == ["i̇i̇", "i̇stanbul'da", "οδος", "fin", "km"]
    assert raw(line, tokens) == ["İİ", "İstanbul'da", "ΟΔΟΣ", "ﬁn", "㎞"]


def test_digits_fold_as_in_gigaword():
    assert Tokenizer(digits="fold", lowercase=True).words("In 1998, 3.5% of ٣ F-16s") == [
        *["in", "####", ",", "#.#", "%", "of", "#", "f-##s"]
    ]


def test_a_character_that_nfkc_writes_with_spaces_stays():
    assert Tokenizer("whitespace", unicode="nfkc")("x\u00a8 \ufdfa ﬁ").words == ["x\u00a8", "\ufdfa", "fi"]


@pytest.mark.parametrize(("language", "line"), ROUND_TRIPS)
def test_detokenising_undoes_tokenising(language, line):
    tokenizer = Tokenizer(language=language)
    assert tokenizer.detokenize(tokenizer.words(line)) == line


@pytest.mark.parametrize(
    ("language", "words", "line"),
    [
        ("en", "what ? « yes » : 5 %", "what? «yes»: 5%"),
        ("fr", "quoi ? « oui » : 5 %", "quoi ? « oui » : 5 %"),
        ("fr", "l' homme qu’ il voit , jusqu' ici .", "l'homme qu’il voit, jusqu'ici."),
        ("en", "such as ' this '", "such as 'this'"),
        ("en", "the cats ' tails", "the cats' tails"),
        ("en", "<unk> 's son - in law -- & co", "<unk>'s son - in law -- & co"),
    ],
)
def test_detokenising_by_hand(language, words, line):
    assert Tokenizer(language=language).detokenize(words.split()) == line


def test_the_other_kinds_detokenise_in_their_own_way():
    assert Tokenizer("whitespace").detokenize(["a", ",", "b"]) == "a , b"
    assert moses("en").detokenize(["It", "'s", "here", "&amp;", "now", "."]) == "It's here &amp; now."
    assert moses("fr").detokenize(["L'", "homme", "?"]) == "L'homme ?"


@settings(max_examples=150, deadline=None)
@given(LINES, st.sampled_from(["en", "fr"]))
def test_detokenising_only_moves_spaces(line, language):
    tokenizer = Tokenizer(language=language)
    words = tokenizer.words(line)
    assert "".join(tokenizer.detokenize(words).split()) == "".join(words)


def test_a_long_line_is_as_its_parts():
    part = "China's U.S. l'été — http://a.org/b, (1,000.50)."
    line, tokenizer = " ".join([part] * 9_000), Tokenizer()
    once, tokens = tokenizer(part), tokenizer(line)
    assert len(tokens.words) > 100_000
    assert tokens.words == once.words * 9_000
    assert tokens.starts[-len(once.starts) :] == [len(line) - len(part) + start for start in once.starts]


REPEATED = """a a. a- a/ a.b/ a' l' n't an't ' :// a:// www. --a -1 /a ./ ~/ <a . a, 1, 1: a:: + a+ @ 字 ア a..b (( ,"
    é e\u0301 \u0301 \U0001f469\u200d \U0001f1eb \U0001f1eb\u0301"""


@pytest.mark.parametrize("piece", REPEATED.split())
def test_no_repeated_piece_makes_the_expression_go_back_and_forth(piece):
    # 30,000 characters without a space: time that grew with the square would be seen.
    line = piece * (30_000 // len(piece))
    for ending in ("!", "a'"):
        assert "".join(Tokenizer(unicode="keep")(line + ending).words) == line + ending


@pytest.mark.parametrize("kind", KINDS)
def test_a_worker_gets_the_same_tokenizer(kind):
    tokenizer = Tokenizer(kind, "fr", lowercase=True, digits="fold", unicode="nfkc")
    line = "L'État a 25 ﬁlms."
    expected = tokenizer(line)
    copied = pickle.loads(pickle.dumps(tokenizer))
    assert copied(line) == expected
    assert copied.detokenize(expected.words) == tokenizer.detokenize(expected.words)


@pytest.mark.parametrize(
    "line",
    [
        "the users' files are 'here'",  # the genitive opens no quotation
        "the users' lists 'here'",  # after it two marks are left, which are a pair
    ],
)
def test_a_genitive_and_a_quotation_in_one_line_are_told_apart(line):
    tokenizer = Tokenizer()
    assert tokenizer.detokenize(tokenizer.words(line)) == line


def test_what_is_remembered_is_bounded():
    tokenizer = Tokenizer()
    tokenizer("short " + "long" * 1000)
    assert list(tokenizer._pieces) == ["short"]
    tokenizer(" ".join(map(str, range((1 << 17) + 10))))
    assert len(tokenizer._pieces) <= MEMORY_SIZE
    assert tokenizer("short 1.").words == ["short", "1", "."]


def test_moses_without_sacremoses_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "sacremoses", None)
    with pytest.raises(Misuse, match=r"pointing\[moses\]"):
        Tokenizer("moses")


@pytest.mark.parametrize("settings", [{"kind": "mosses"}, {"digits": "drop"}, {"unicode": "NFC"}])
def test_an_unknown_setting_is_refused(settings):
    with pytest.raises(Misuse, match="only"):
        Tokenizer(**settings)


def test_importing_text_brings_nothing_heavy():
    code = "import sys, pointing.text; sys.exit(bool({'torch', 'numpy', 'sacremoses'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
