"""The review page: everything escaped, copied words shown with their places."""

from html.parser import HTMLParser
from pathlib import Path

from standin import PROTECT, SEARCH, StandIn

from pointing.documents.plain import PlainText
from pointing.documents.po import Po
from pointing.translation.filling import Filler
from pointing.translation.review_page import LONGEST, review_page
from pointing.translation.summary import Summary

HEADER = b'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"\n\n'
VOID = {"meta", "input", "br"}


class Reader(HTMLParser):
    """Collects elements, and checks that every one is closed."""

    def __init__(self, page):
        super().__init__()
        self.open, self.elements, self.texts = [], [], []
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open:
            self.texts.append((self.open[-1], data))


def page(document, translator=None, msgfmt=None):
    results = Filler(translator or StandIn(), SEARCH, PROTECT).results(document, lambda unit: unit.state == "empty")
    summary = Summary(document.path, Path("out.po"), document.kind, results, document.notes, msgfmt)
    return "".join(review_page([summary]))


def test_nothing_of_a_file_becomes_part_of_the_page():
    evil = "<script>alert(1)</script> '\\\"onmouseover=x &amp; \\007"
    data = HEADER + f'msgctxt "{evil}"\nmsgid "{evil}"\nmsgstr ""\n'.encode()
    text = page(Po(Path("<b>.po"), data, "fr"), StandIn(lambda line: [evil + "<unk>"]), "rejected: <i>")
    reader = Reader(text)
    assert [tag for tag, _ in reader.elements].count("script") == 1
    assert not any("onmouseover" in attributes for _, attributes in reader.elements)
    assert "src=" not in text
    assert "\a" not in text
    policy = next(attributes["content"] for tag, attributes in reader.elements if "http-equiv" in attributes)
    assert policy.startswith("default-src 'none'")


def test_copied_words_and_their_sources_have_the_same_number():
    data = HEADER + b'msgid "use argon2 and %s"\nmsgstr ""\n'
    text = page(Po(Path("a.po"), data, "fr"), StandIn(lambda line: ["%s et argon2"]))
    reader = Reader(text)
    marks = [attributes for tag, attributes in reader.elements if tag == "b" and "data-k" in attributes]
    assert [(mark["class"], mark["data-k"]) for mark in marks] == [
        ("used", "1"),
        ("span", "0"),
        ("span", "0"),
        ("copied", "1"),
    ]


def test_rows_say_what_became_of_them():
    data = HEADER + b'msgid "a %s"\nmsgstr ""\n\nmsgid "b"\nmsgstr ""\n\n#, fuzzy\nmsgid "c"\nmsgstr "d"\n'
    text = page(Po(Path("a.po"), data, "fr"), StandIn(lambda line: ["B"]), "accepted")
    rows = [attributes["data-kind"] for tag, attributes in Reader(text).elements if tag == "section"]
    assert rows == ["failed", "filled", "left"]
    assert "lacks %s" in text
    assert "msgfmt --check-format: accepted" in text


def test_long_texts_are_cut():
    line = "word " * 900
    text = page(PlainText(Path("a.txt"), line.encode()))
    assert f"{len(line) - LONGEST:,} characters more" in text
    assert len(text) < 20_000
