"""What the format check lets through."""

import pytest
from standin import PROTECT

from pointing.translation.checks import is_balanced, message_problem, problem


@pytest.mark.parametrize(
    ("source", "translation", "format", "expected"),
    [
        ("open %s", "ouvrir %s", "c", None),
        ("open %s", "ouvrir", "c", "lacks %s"),
        ("open %s", "ouvrir % s", None, "lacks %s"),
        ("open %s", "ouvrir %s %s", "c", "has %s too often"),
        ("%s of %d", "%d de %s", "c", "has arguments in another order: %d, %s"),
        ("%1$s of %2$d", "%2$d de %1$s", "c", None),
        ("{a} of {b}", "{b} de {a}", "python-brace", None),
        ("{} of {:d}", "{:d} de {}", "python-brace", "has arguments in another order: {:d}, {}"),
        ("100%% sure", "sûr à 100%%", "c", None),
        ("50% done", "fait à 50% de", "c", None),
        ("half done", "fait à 50 % de", "c", "has 1 times % instead of 0"),
        ("half done", "fait à 50 % de", None, None),
        ("a }{ b", "a }{ b", "python-brace", None),
        ("a } b", "a } } b", "python-brace", "has 2 times } instead of 1"),
        ("<b>bold</b>", "<b>gras</b>", None, None),
        ("<b>bold</b>", "</b>gras<b>", None, "has tags that do not close"),
        ("<i><b>a</b></i>", "<b><i>a</b></i>", None, "has tags that do not close"),
        ("<i><b>a</b></i>", "<b><i>a</i></b>", None, None),
        ("line<br>end", "ligne<br>fin", None, None),
        ("see https://a.example/b", "voir https://a.example/b", None, None),
        ("see https://a.example/b", "voir https://a.example", None, "lacks https://a.example/b"),
        ("a", " ", None, "is empty"),
        ("a", "<unk>", None, "has an unknown word"),
        ("write <unk>", "écrire <unk>", None, None),
        ("a", "b\nc", None, "has a line end or a NUL"),
    ],
)
def test_a_translation_keeps_what_programs_read(source, translation, format, expected):
    assert problem(source, translation, PROTECT, format) == expected


def test_a_message_keeps_its_ends_and_its_tags_close_over_lines():
    assert message_problem("a\n", "b\n") is None
    assert message_problem("a\n", "b") == "has another line end at its end"
    assert message_problem("a", "\nb") == "has another line end at its start"
    assert message_problem("<b>a\nb</b>", "<b>a\nb</b>") is None
    assert message_problem("<b>a\nb</b>", "</b>a\nb<b>") == "has tags that do not close"


def test_nested_tags_are_balanced():
    deep = 5_000
    assert is_balanced("<a>" * deep + "</a>" * deep)
    assert not is_balanced("<a>" * deep)
    assert not is_balanced("<a></b>")
    assert is_balanced("1 < 2 and 3 > 2, <br/> <x y='1'/>")
