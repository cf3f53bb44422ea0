"""HTML in pieces, as browsers cut it: cases of the HTML standard, each piece with its kind."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pointing.server.html_scanner import scan

SOUPS = st.text(st.sampled_from("<>/!?-='\" ab\n\0é&[]"), max_size=30)


def kinds(html):
    return [(piece.kind, piece.html) for piece in scan(html)]


@pytest.mark.parametrize(
    "hidden",
    [
        "<!---->",
        "<!-- a > b -->",
        "<!-- a --!>",
        "<!-->",
        "<!--->",
        "<!-- <!-- -->",
        "<!>",
        "<!DOCTYPE html>",
        "<?php a ?>",
        "</>",
        "</ a>",
        "</1>",
        "<script>a</scripts></script>",
        "<script>a</script\n b='>'>",
        "<style></STYLE>",
        "<xmp>a & <b></xmp>",
        "<iframe><p>a</iframe>",
        "<noframes>a</noframes>",
    ],
)
def test_what_is_not_shown_ends_where_a_browser_ends_it(hidden):
    assert kinds(f"a{hidden}b") == [("text", "a"), ("hidden", hidden), ("text", "b")]


@pytest.mark.parametrize(
    "tag",
    ["<p>", "<p a>", "<p a=>", '<p a=">">', "<p a='>'>", "<p a = '>' b=\">\">", '<p a"b>', "<p =a>", "<p<b>", "<p/a/>"],
)
def test_a_tag_ends_at_the_first_bracket_outside_of_its_values(tag):
    assert kinds(f"a{tag}b") == [("text", "a"), ("start", tag), ("text", "b")]
    assert kinds(f"a</{tag[1:]}b") == [("text", "a"), ("end", f"</{tag[1:]}"), ("text", "b")]


@pytest.mark.parametrize("text", ["<", "a < b", "<1>", "< b>", "<<", "<é>", "a <", "</", "<>", "<\u017fcript>"])
def test_a_bracket_that_begins_no_tag_is_text(text):
    assert kinds(text) == [("text", text)]


@pytest.mark.parametrize(
    "hidden", ["<a", "<a ", "<a href", '<a href="b>c', "</a", "<!a", "<!-- a --", "<script>a</script"]
)
def test_what_never_ends_goes_on_to_the_end_of_the_page(hidden):
    assert kinds(f"a{hidden}") == [("text", "a"), ("hidden", hidden)]


def test_names_are_in_small_letters_and_values_as_they_are():
    (piece,) = scan('<A HREF=X/ href=Y Title=\'it is "so"\' download\n=\t"" x>')
    assert piece.name == "a"
    assert piece.attributes == {"href": "X/", "title": 'it is "so"', "download": "", "x": ""}


@pytest.mark.parametrize(
    ("tag", "is_closed"),
    [("<br>", True), ("<p/>", True), ("<p />", True), ("<p a='b'/>", True), ("<p a=b/>", False), ("<p / a>", False)],
)
def test_an_element_without_content_is_closed_at_once(tag, is_closed):
    (piece,) = scan(tag)
    assert piece.is_closed == is_closed


@given(SOUPS)
def test_the_pieces_are_the_page_and_none_is_empty(soup):
    pieces = list(scan(soup))
    assert "".join(piece.html for piece in pieces) == soup
    assert all(piece.html for piece in pieces)
    assert not any(one.kind == other.kind == "text" for one, other in pairwise(pieces))
