"""Protected spans: tables of what is one, and of what is none."""

import pickle
import re
import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pointing.errors import Misuse
from pointing.text.protected import KINDS, PRESETS, Protector, Span, keeps_order

protect = Protector(PRESETS["software"])


def texts(line, protector=protect):
    return [line[span.start : span.end] for span in protector(line)]


FOUND = {  # kind → lines whose spans of this kind stand in ⟦ ⟧
    "printf": """
        ⟦%s⟧: cannot open '⟦%s⟧'
        ⟦%1$s⟧ of ⟦%2$d⟧
        ⟦%-10.3lf⟧⟦%lu⟧⟦%zu⟧⟦%'d⟧⟦%*d⟧⟦%.*s⟧⟦%5.2f⟧⟦%02x⟧⟦%hhx⟧⟦%i⟧⟦%lld⟧
        ⟦%(name)s⟧ has ⟦%(count)03d⟧ files
        100⟦%%⟧ sure, 100⟦%%⟧
        ⟦%<PRIu64⟧>
        ⟦%d⟧x⟦%d⟧, ⟦%d⟧KB, ⟦%s⟧s
        ⟦%<⟧⟦%s⟧⟦%>⟧ and ⟦%qs⟧, ⟦%q+D⟧, ⟦%qE⟧
        ⟦%1⟧ of ⟦%L2⟧
        ⟦%PRODUCTNAME⟧ ⟦%PRODUCTVERSION⟧, ⟦%APPDATA%⟧
        ⟦%H⟧:⟦%M⟧ ⟦%Y⟧-⟦%m⟧-⟦%d⟧
        0x⟦%x⟧, v⟦%d⟧.⟦%d⟧
        '⟦%c⟧'
        ⟦%s⟧⟦%s⟧⟦%%⟧⟦%s⟧
        ⟦%1$*2$d⟧
        from ⟦~a⟧ to ⟦~s⟧.⟦~%⟧
    """,
    "braces": """
        ⟦{count}⟧ files, ⟦{0:.2f}⟧, ⟦{}⟧, ⟦{{x}}⟧, ⟦{0!r}⟧, ⟦{a.b[0]}⟧, ⟦{:>8}⟧
        ⟦${var}⟧ ⟦#{name}⟧ ⟦%{name}⟧ ⟦{{ user.name }}⟧
        (⟦{0}⟧)
    """,
    "variable": """
        ⟦$HOME⟧/bin, ⟦$(ARG1)⟧ and ⟦$[officename]⟧
        version ⟦@VERSION@⟧.
        set ⟦$PATH⟧.
    """,
    "tag": """
        ⟦<b>⟧bold⟦</b>⟧ ⟦<br/>⟧ ⟦<br />⟧ ⟦<a href="x y" id='1'>⟧here⟦</a>⟧
        ⟦<!-- a comment -->⟧text ⟦<ahelp hid=".">⟧help⟦</ahelp>⟧
        ⟦<mine>⟧closed⟦</mine>⟧
        ⟦<P>⟧⟦<H1>⟧⟦<xs:item>⟧⟦</xs:item>⟧
    """,
    "entity": """
        a ⟦&amp;⟧ b ⟦&#39;⟧ ⟦&#x2F;⟧ ⟦&nbsp;⟧
    """,
    "escape": r"""
        one⟦\n⟧two ⟦\t⟧ ⟦\"⟧x⟦\"⟧ ⟦\\⟧ ⟦\x1b⟧ ⟦\u00e9⟧ ⟦\033⟧
    """,
    "url": """
        see ⟦https://example.org/a?b=c&d=%20#e⟧.
        (⟦http://example.org⟧), «⟦http://a.org/b⟧» ‘⟦http://a.org/c⟧’
        ⟦https://en.example.org/wiki/A_(b)⟧, ⟦www.example.org⟧!
        (see ⟦http://a.org/b_(c)⟧)
        ⟦ftp://ftp.example.org/⟧ and ⟦file:///usr/x⟧;
        ⟦http://a.org/⟧を見る
        '⟦http://a.org/x⟧'.
    """,
    "email": """
        write to ⟦a.b+c@example.org⟧. <⟦bug-x@lists.example.co.uk⟧>
    """,
    "path": r"""
        in ⟦/usr/share/doc⟧, ⟦/etc/fstab⟧. (⟦~/.config⟧) "⟦./configure⟧" ⟦../a⟧ ⟦/home/%s/x⟧
        ⟦C:\Windows⟧ or ⟦c:\a\b.txt⟧.
        ⟦/etc/init.d/⟧ and ⟦~/⟧ or ⟦./⟧
        --prefix=⟦/usr/local⟧
    """,
    "option": """
        ⟦--help⟧, ⟦-v⟧ or ⟦-O2⟧
        [⟦-v⟧|⟦--verbose⟧] (⟦-x⟧) ⟦--file⟧=FILE ⟦--no-check⟧: ⟦-h⟧/⟦--help⟧
        »⟦--help⟧«, „⟦-shared⟧“, »⟦-shared⟧«, « ⟦-shared⟧ »
        ‘⟦-shared⟧’ ⟦-Wall⟧ ⟦-fno-common⟧ '⟦-std⟧=c99'
    """,
    "version": """
        ⟦1.2.3⟧, ⟦v1.2⟧. ⟦v2.0.1⟧ ⟦127.0.0.1⟧ ⟦1.2.3-rc1⟧ (⟦10.0.2⟧) ⟦192.168.100.200⟧ ⟦2.4.1beta⟧
    """,
    "key": """
        ⟦Ctrl+Q⟧, ⟦Alt+F4⟧ (⟦Ctrl+Shift+Tab⟧) ⟦Ctrl-C⟧. ⟦Strg+C⟧ ⟦<Control>q⟧ ⟦<Primary><Shift>F5⟧
        ⟦Ctrl+Alt+Del⟧: ⟦Maj+F1⟧
    """,
}
CASES = [(kind, line.strip()) for kind, lines in FOUND.items() for line in lines.strip().splitlines()]


@pytest.mark.parametrize(("kind", "marked"), CASES)
def test_what_is_protected(kind, marked):
    marked = marked.replace("⟦%<PRIu64⟧>", "⟦%<PRIu64>⟧")
    line = marked.replace("⟦", "").replace("⟧", "")
    expected = [piece.split("⟧")[0] for piece in marked.split("⟦")[1:]]
    found = [line[span.start : span.end] for span in protect(line) if span.kind == kind]
    assert found == expected


@pytest.mark.parametrize(
    "line",
    [
        "",
        "A plain line, with commas; and 3.5 or 1,000.50 of it.",
        "100 % sure, 50%, 5%de, 5 % discount, 20%",
        "and/or, km/h, 1/2, either / or, he/she, 60 km /h",
        "{ text with words } and { } { x y }",
        "a < b && b > c, x << 2, <- here ->, a<b",
        "usage: tool <file> <file name> [<directory>...]",
        "it costs $5, 5$, $ 5, US$ or $",
        "31.12.2020 and 1.000.000 and 3.5 and 10.04",
        "Ein- und -ausgabe, -5, - a, -, --, well-known, x-y, 5-6, a --- b",
        "Alt-Taste, Shift+click, Control-flow, Ctrl + mouse, alternative",
        "R&D; AT&T, Q & A, &File",
        "user @ home, @, @name, a@b",
        "e.g. this, i.e. that, etc... U.S.A.",
        "http:// and https://. and ://x",
        "back\\slash, a \\ b",
        "File:New, C: and D:",
        "{",
        "100%-Regel",
        "a_b, _Open, ~File, ~All, A~d",
    ],
)
def test_what_is_not_protected(line):
    assert texts(line) == []


def test_the_longest_and_leftmost_wins():
    assert texts("http://a.org/%s/{id} %s") == ["http://a.org/%s/{id}", "%s"]
    assert texts('<a href="http://a.org">a@b.org</a>') == ['<a href="http://a.org">', "a@b.org", "</a>"]


def test_presets_and_kinds():
    assert texts("%s <b>", Protector(PRESETS["web"])) == ["<b>"]
    assert texts("%s <b>", Protector(PRESETS["none"])) == []
    assert Protector(["tag", "printf"])("%s <b>") == [Span(0, 2, "printf"), Span(3, 6, "tag")]
    with pytest.raises(Misuse, match="no kind 'colour'"):
        Protector(["colour"])


def test_the_users_own_patterns_come_first():
    protector = Protector(PRESETS["software"], [r"(?i)widget(\d)\1", r"%s and %s"])
    line = "%s and %s: Widget11, widget12 %d"
    assert texts(line, protector) == ["%s and %s", "Widget11", "%d"]
    assert [span.kind for span in protector(line)] == ["custom", "custom", "printf"]
    assert texts("abc", Protector((), ["b"])) == ["b"]


@pytest.mark.parametrize("pattern", ["(", "a*", "", r"\b", "(?=a)", "x|", "[", "(?P<a>", "a**"])
def test_a_bad_pattern_is_refused(pattern):
    with pytest.raises(Misuse):
        Protector((), [pattern])


@pytest.mark.parametrize("text", ["%s", "%d", "%-10.3lf", "%*d", "%.*s", "%<PRIu64>", "%lu", "{}", "{:>8}", "{!r}"])
def test_positional_arguments_keep_their_order(text):
    [span] = protect(text)
    assert keeps_order(text, span.kind)


@pytest.mark.parametrize(
    "text", ["%1$s", "%(name)s", "%%", "%1", "{name}", "{0}", "{0:.2f}", "{{x}}", "<b>", "&amp;", "--help", "%m", "%<"]
)
def test_everything_else_may_move(text):
    spans = protect(text)
    assert not any(keeps_order(text, span.kind) for span in spans)


HOSTILE = """
< % { a/ <a␣ <a␣b= <!-- &a \\ / ./ - -- -a 1. v1. a@ a. @a http:// http://( http://{ www. ( $ $( {{ {a: %( %(a %0 %* %1$
Ctrl+ <Control> a+ C:\\ ~/ ] %q+ %+ -a- . %. '-a a@a. </a <a> {a ␣ x A_ %A ]]
"""


@pytest.mark.parametrize("unit", [unit.replace("␣", " ") for unit in HOSTILE.split()])
def test_time_is_linear_on_hostile_lines(unit):
    for line in (unit * (100_000 // len(unit)), unit + "a" * 100_000, unit + "." * 100_000, unit + "- " * 50_000):
        start = time.process_time()
        protect(line)
        assert time.process_time() - start < 1.5  # about 0.1 s; quadratic time would be minutes


def test_a_protector_can_be_pickled():
    copy = pickle.loads(pickle.dumps(Protector(PRESETS["software"], ["x+"])))
    assert texts("xx %s", copy) == ["xx", "%s"]


SIGNS = "%s{}<>b/\\n&;-v1.@$()éA:='*#[]!~+ 語\"\n١"
PIECES = st.sampled_from([*SIGNS, "--", "amp", "http://", "www.", "Ctrl+", "Alt-"])
LINES = st.text() | st.lists(PIECES).map("".join)
PATTERNS = st.sampled_from([(), ("b+",), ("[s ]", "%")])


@given(LINES, PATTERNS)
def test_spans_are_ordered_and_cut_the_line(line, patterns):
    spans = Protector(PRESETS["software"], patterns)(line)
    end, pieces = 0, []
    for span in spans:
        assert end <= span.start < span.end <= len(line)
        assert span.kind in KINDS or span.kind == "custom"
        pieces += [line[end : span.start], line[span.start : span.end]]
        end = span.end
    assert "".join([*pieces, line[end:]]) == line


ALL_KINDS = re.compile("|".join(f"(?P<{kind}>{pattern})" for kind, pattern in KINDS.items()), re.VERBOSE)


def check_that_none_is_missed(line):
    """A line is read with the kinds whose signs it has. Here with all of them, which takes <file> for a tag, too."""
    expected = [Span(*match.span(), match.lastgroup) for match in ALL_KINDS.finditer(line)]
    spans = protect(line)
    assert set(spans) <= set(expected)
    missing = [line[span.start : span.end] for span in expected if span not in spans]
    assert all(re.fullmatch(r"<[\w:.-]+\s*>", text) for text in missing)


@given(LINES)
@example("١.٢.٣")  # digits too
@example("Ctrl-C")
@example("(www.b.org)")
@example("v1.1")
@example("]]>")
def test_no_span_is_missed(line):
    check_that_none_is_missed(line)


@pytest.mark.parametrize("marked", [marked for _, marked in CASES])
def test_no_span_of_the_table_is_missed(marked):
    check_that_none_is_missed(re.sub("[⟦⟧]", "", marked))


@given(st.lists(LINES, max_size=4), st.sampled_from(["software", "web", "none"]), PATTERNS)
def test_spans_of_many_lines_are_those_of_each(lines, preset, patterns):
    protector = Protector(PRESETS[preset], patterns)
    each = [(number, *span) for number, line in enumerate(lines) for span in protector(line)]
    assert protector.in_lines(lines) == each
