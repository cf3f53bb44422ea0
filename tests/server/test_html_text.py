"""Pages as texts and back: tags stay to the byte, what is seen stays the same, and no output becomes a tag."""

import time
from collections import Counter
from html import escape, unescape
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_run import random_generator

from pointing.config import Search
from pointing.generation.output import Output, Token, placed
from pointing.server.html_text import Segment, read_html, split_at_lost_tags, write_html

MARKUP = [  # what stays as it is, whatever the model
    "<!DOCTYPE html>",
    "<?xml version='1.0'?>",
    "<!-- no <b>text</b> & <p translate=no> no end -->",
    "<script>if (a < b && c > d) say('<p>no text</p>')</script>",
    "<SCRIPT type='module'>x</Script >",
    "<style>p > b { content: '<i>&amp;' }</style>",
    '<p class="a > b" title=\'it is "so"\'>',
    "</p >",
    "<h1\n  id=top>",
    "</h1>",
    "<hr/>",
    '<meta content="1 < 2">',
    '<p translate="no">keep &amp; <i>this</i> & < that</p>',
    "<code translate=no>a <code>b</code> c</code>",
    "<div TRANSLATE = 'no'>a<br>b<img src=x><div>c</div>d</div>",
    '<b class=x translate="no">name</b>',
    "<p Translate=NO>keep</p>",
]
INLINE = ["<b>", "</b>", '<a href="x?y=1&amp;z=2">', "</a>", "<br>", "<img src='x' />", "<EM>", "</EM>"]
RAW_TEXTS = st.text(st.sampled_from("ab Z.é\n\t\u00a0&;#1>\"'"), max_size=8)  # a character "<" needs more care
REFERENCES = ["&nbsp;", "&eacute;", "&#233;", "&#xe9", "&lt;b&gt;", "&amp;lt;", "1 < 2", "&#1;", "&copy", "&nothing;"]
PAGES = st.lists(st.one_of(RAW_TEXTS, st.sampled_from(REFERENCES), st.sampled_from(MARKUP + INLINE)), max_size=12)
SOUP_PARTS = ["<", ">", "</", "<!--", "-->", "<b", "<p", "p>", "<script>", "</script>", "<style", "<!", "<?", "/>", "="]
SOUP_PARTS += ['"', "'", " ", "a", "é", "&", "&lt", ";", "#", " translate=no", "\n", "\0", "\ud800", "ſ", "\u2028"]
SOUPS = st.lists(st.sampled_from(SOUP_PARTS), max_size=40).map("".join)
UNENDED = [
    "<",
    "<a ",
    '<a "',
    "<a '",
    '<a x="',
    "<b",
    "</",
    "<!",
    "<!--",
    "<!-- --",
    "<p><!",
    "\"'<i",
    "&",
    "&lt;",
    "&#x",
]
UNENDED += ["<script>", "<script ", "<script></scrip", "<style>", "<b>", " <b>a</b>", '<p translate="no">', "<br>x"]
LENGTH = 100_000


def rewritten(html, keeps_tags=False):
    """A page of which nothing is translated."""
    return write_html(read_html(html, keeps_tags), lambda segment: None)


def texts(html, keeps_tags=False):
    return [part.text for part in read_html(html, keeps_tags) if isinstance(part, Segment) and part.has_words]


def output(line, *words):
    """An output of a line by hand: words of the shortlist, and copied ones as their characters in the line."""
    tokens = [
        Token(word, "shortlist", None, None, 0.9, 0.9)
        if isinstance(word, str)
        else Token(line[slice(*word)], "copied", 0, word, 0.9, 0.1)
        for word in words
    ]
    text = " ".join(token.text for token in tokens)
    return Output(1, text, -0.5, placed(text, tokens), None)


def in_capitals(html):
    """The page with every text in capitals."""
    return write_html(read_html(html, False), lambda text: output(text.core, text.core.upper()))


class Seen(HTMLParser):
    """What a page is for another reader: tags, comments, scripts and declarations as they are, text as it is seen."""

    def __init__(self, html):
        super().__init__()
        self.events = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.events.append(("start", self.get_starttag_text()))

    def handle_endtag(self, tag):
        self.events.append(("end", tag))

    def handle_comment(self, data):
        self.events.append(("comment", data))

    def handle_decl(self, decl):
        self.events.append(("declaration", decl))

    def handle_pi(self, data):
        self.events.append(("instruction", data))

    def unknown_decl(self, data):
        self.events.append(("unknown", data))

    def handle_data(self, data):
        if self.events and self.events[-1][0] == "text":
            data = self.events.pop()[1] + data
        if data:
            self.events.append(("text", data))

    @property
    def tags(self):
        return Counter(event for event in self.events if event[0] != "text")


def test_a_text_ends_at_every_tag_or_only_at_those_that_do_not_stand_inside_a_paragraph():
    html = "<h1>One</h1>\n<p>Two <b>three</b>, four<br>five</p><ul><li>six<li>seven</ul>"
    assert texts(html) == ["One", "Two ", "three", ", four", "five", "six", "seven"]
    assert texts(html, keeps_tags=True) == ["One", "Two <b>three</b>, four<br>five", "six", "seven"]


def test_white_space_and_tags_around_a_text_stay_as_they_are():
    html = "<p>\n  two words\u00a0<b> three </b>\t. </p>\n1 &gt; 0<hr>"
    assert in_capitals(html) == "<p>\n  TWO WORDS\u00a0<b> THREE </b>\t. </p>\n1 &gt; 0<hr>"


def test_character_references_are_read_and_written():
    html = "<td>caf&eacute; &amp; th&#233; &lt;b&gt; &amp;amp; &quot;x&quot;</td>"
    assert texts(html) == ['café & thé <b> &amp; "x"']
    assert in_capitals(html) == '<td>CAFÉ &amp; THÉ &lt;B&gt; &amp;AMP; "X"</td>'


def test_a_text_without_letters_or_digits_is_not_translated():
    assert texts("<p> … </p><p>&nbsp;</p>—<b>1</b>") == ["1"]
    assert texts("<i><b></b>!<br></i><p>a", keeps_tags=True) == ["a"]  # letters of tags are none of the text


@pytest.mark.parametrize("markup", MARKUP)
@pytest.mark.parametrize("keeps_tags", [False, True])
def test_what_is_no_text_is_not_translated(markup, keeps_tags):
    assert texts(f"{markup}a", keeps_tags) == ["a"]
    assert in_capitals(f"a{markup}b") == f"A{markup}B"


@pytest.mark.parametrize("keeps_tags", [False, True])
def test_what_is_kept_ends_with_its_own_element(keeps_tags):
    html = '<div translate="no">a<div>b</div>c<p>d</p></div>e<p translate="yes">f</p><br translate="no">g'
    assert "".join(texts(html, keeps_tags)).replace("<br>", "") == "efg"
    assert texts('<b translate="no">a</b>b</b>c', keeps_tags) == (["b</b>c"] if keeps_tags else ["b", "c"])


@pytest.mark.parametrize(
    "tag",
    [
        '<p data-translate="no">',
        '<p title="write translate=no">',
        '<a href="?translate=no">',
        "<p translate='not yet'>",
    ],
)
def test_only_the_attribute_translate_keeps_a_text(tag):
    assert texts(f"{tag}a</p>") == ["a"]


def test_an_address_without_quotation_marks_may_end_with_a_slash():
    assert texts('<a translate="no" href=http://example.org/>Example</a> a') == [" a"]


def test_an_element_whose_name_begins_with_script_is_none():
    assert texts("<script-list>a</script-list><p>b</p><script>c</script>d") == ["a", "b", "d"]


@pytest.mark.parametrize("markup", ["<![if !mso]>", "<![endif]>", "<![CDATA[x]]>"])
def test_what_a_browser_takes_for_a_comment_is_not_shown(markup):
    assert rewritten(f"a{markup}b") == f"a{markup}b"


@pytest.mark.parametrize("start", ["<script>", "<style>", "<!-- "])
def test_what_never_ends_is_no_text_either(start):
    assert rewritten(f"a{start} x < 1 && y") == f"a{start} x < 1 && y"


def test_an_output_has_the_tags_that_it_copied_and_all_else_is_escaped():
    (segment,) = read_html("  Open <b>the file</b> &amp; go ", True)
    assert segment.core == "Open <b>the file</b> & go"
    found = output(segment.core, "Ouvrez", (5, 8), "le <fichier>", (16, 20), "<b>", "&", "</b>", "allez")
    html = "  Ouvrez <b> le &lt;fichier&gt; </b> &lt;b&gt; &amp; &lt;/b&gt; allez "
    assert write_html([segment], lambda segment: found) == html


def test_what_was_escaped_in_the_page_is_no_tag_of_the_output_either():
    (segment,) = read_html("&lt;script&gt; <b>a</b>", True)
    found = output(segment.core, (0, 8), (9, 12), "x", (13, 17))
    assert write_html([segment], lambda segment: found) == "&lt;script&gt; <b> x </b>"


@given(PAGES, st.booleans())
def test_a_page_of_which_nothing_is_translated_is_the_same_but_for_references(pieces, keeps_tags):
    html, expected, text = "".join(pieces), "", ""
    for piece in [*pieces, "<hr>"]:
        if piece in MARKUP + INLINE + ["<hr>"]:
            expected += escape(unescape(text), quote=False) + piece
            text = ""
        else:
            text += piece
    found = rewritten(html, keeps_tags)
    assert found + "<hr>" == expected
    assert Seen(found).events == Seen(html).events


@settings(max_examples=300)
@given(SOUPS, st.booleans())
def test_any_tag_soup_is_read_and_written_and_stays_as_it_is_the_second_time(soup, keeps_tags):
    html = rewritten(soup, keeps_tags)
    assert rewritten(html, keeps_tags) == html
    assert texts(html, keeps_tags) == texts(soup, keeps_tags)


@given(SOUPS)
def test_no_output_becomes_a_tag(soup):
    found = write_html(read_html("<p>a</p>", False), lambda segment: output("a", soup))
    inside = found.removeprefix("<p>").removesuffix("</p>")
    assert "<" not in inside
    assert unescape(inside) == soup


@given(st.lists(st.one_of(SOUPS, st.sampled_from([(0, 3), (3, 8), (8, 12), (0, 8), (13, 27), (1, 2)])), max_size=8))
def test_no_output_has_other_tags_than_those_that_it_points_at(words):
    line = "<b>hello</b> <script></b>"  # <script> was escaped in the page
    segment = Segment(line, [(0, 3), (8, 12)])
    found = segment.translated(output(line, *words))
    copied = [line[slice(*word)] for word in words if word in segment.tags]
    without = found
    for tag in copied:
        assert tag in without
        without = without.replace(tag, "", 1)
    assert "<" not in without


@given(SOUPS, SOUPS, st.sampled_from([(0, 3), (8, 12), (3, 8)]))
def test_a_word_that_says_it_is_a_tag_and_is_not_is_escaped(before, text, span):
    line = "<b>hello</b>"
    tokens = [Token(text, "copied", 0, span, 0.9, 0.1, output=(len(before) + 1, len(before) + 1 + len(text)))]
    found = Segment(line, [(0, 3), (8, 12)]).translated(Output(1, f"{before} {text}", -0.5, tokens, None))
    assert "<" not in found or text == line[slice(*span)]


@pytest.mark.parametrize("keeps_tags", [False, True])
@pytest.mark.parametrize("part", UNENDED)
def test_the_time_grows_with_the_length_of_the_page_only(part, keeps_tags):
    html = part * (LENGTH // len(part))
    began = time.process_time()
    page = read_html(html, keeps_tags)
    assert sum(part.has_words for part in page if isinstance(part, Segment)) <= len(html)
    assert len(write_html(page, lambda segment: None)) >= len(html) // 4  # "&lt;" may become "<"
    assert time.process_time() - began < 1.0  # a tenth of it here, if every character is read a few times


def translated(html, seed):
    generator, search = random_generator(seed), Search(beam=2, max_length=12)
    return write_html(
        split_at_lost_tags(read_html(html, True), generator.read),
        lambda segment: generator.generate([segment.core], search)[0] if segment.has_words else None,
    )


WORDS = st.sampled_from(["the ", "file", " see", ", ", "zorblatt ", "&lt;i&gt;", "&amp;nbsp;", " &lt; ", "my.conf"])


@settings(max_examples=60, deadline=None)
@given(st.lists(st.one_of(WORDS, st.sampled_from(INLINE)), max_size=8).map("".join), st.integers(0, 10**6))
def test_tags_come_through_any_model_that_keeps_them(html, seed):
    assert Seen(translated(f"<p>{html}</p>", seed)).tags == Seen(f"<p>{html}</p>").tags


@pytest.mark.parametrize(
    "html",
    [
        "see <a download>the file</a>",
        'see <a href="?a>b">the file</a>',
        "<img alt>the file",
        "the<wbr>file",
        "<time>the file",
        "see 100%<b>the</b> file",
        "<time>the <a download>file</time>",  # without its end, <time> is no tag for the model
        'see <a\nhref="x">the\nfile</a>',
        "see <kbd>Ctrl</kbd>+<kbd>Q</kbd>",
    ],
)
def test_tags_that_the_model_does_not_take_for_spans_come_through_too(html):
    for seed in range(3):
        assert Seen(translated(f"<p>{html}</p>", seed)).tags == Seen(f"<p>{html}</p>").tags


def test_tags_at_the_end_of_a_long_paragraph_come_through_too():
    html = f"<p>{'the file ' * 300}<b>the</b> file<br></p>"  # longer than what the model reads of a line
    assert Seen(translated(html, 0)).tags == Seen(html).tags
