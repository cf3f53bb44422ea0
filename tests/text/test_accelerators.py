"""Accelerators of labels: which marks are taken out, and where one is put back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pointing.text.accelerators import Accelerator, with_accelerator, without_accelerator


@pytest.mark.parametrize(
    ("text", "expected", "mark", "letter"),
    [
        ("_Open", "Open", "_", "O"),
        ("Save _As...", "Save As...", "_", "A"),
        ("E_xit", "Exit", "_", "x"),
        ("E&xit", "Exit", "&", "x"),
        ("&File", "File", "&", "F"),
        ("~Edit", "Edit", "~", "E"),
        ("Ed~it", "Edit", "~", "i"),
        ("Select a_ll", "Select all", "_", "l"),
        ("Cut && &Paste", "Cut && Paste", "&", "P"),
        ("Go to line _1", "Go to line 1", "_", "1"),
        ("_Open %s", "Open %s", "_", "O"),
        ("<b>_Name:</b>", "<b>Name:</b>", "_", "N"),
        ("Quitter (_Q)", "Quitter (Q)", "_", "Q"),
        ("開く(_O)...", "開く...", "_", "O"),
        ("저장 (&S)", "저장", "&", "S"),
        ("Rechercher & remp&lacer", "Rechercher & remplacer", "&", "l"),
        ("_Éditer", "Éditer", "_", "É"),
    ],
)
def test_a_single_mark_is_taken_out(text, expected, mark, letter):
    assert without_accelerator(text) == (expected, Accelerator(mark, letter))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Open",
        "R&D and AT&T",
        "the variable file_name is set",
        "MAX_SIZE",
        "_Cut and _Paste",
        "Tom & Jerry",
        "a &amp; b",
        "http://a.org/?a=1&b=2",
        "%(my_name)s",
        "in ~/.config",
        "about ~10 minutes",
        "__init__",
        "x = 1&y",
        "snake_case_name",
        "_Open " + "a very long text that is no label " * 3,
        "two\n_lines",
        "100 && 200",
    ],
)
def test_other_texts_stay_as_they_are(text):
    assert without_accelerator(text) == (text, None)


def test_a_doubtful_word_counts_if_the_text_is_known_to_be_a_label():
    assert without_accelerator("This memo rec_urs") == ("This memo rec_urs", None)
    assert without_accelerator("This memo rec_urs", is_label=True) == ("This memo recurs", ("_", "u"))
    assert without_accelerator("Set MAX_SIZE", is_label=True)[1] is None


@pytest.mark.parametrize(
    ("text", "mark", "letter", "expected"),
    [
        ("Ouvrir", "_", "O", "_Ouvrir"),
        ("Fichier ouvert", "_", "o", "Fichier _ouvert"),  # a word that begins with it comes before a letter inside one
        ("Quitter", "&", "x", "&Quitter"),  # no x
        ("Éditer", "_", "d", "É_diter"),
        ("%s ouvrir", "_", "s", "%s _ouvrir"),  # not in a protected span
        ("<b>Nom</b>", "_", "b", "<b>_Nom</b>"),
        ("開く...", "_", "o", "開く(_O)..."),
        ("名前:", "&", "N", "名前(&N):"),
        ("ABC 開く", "&", "b", "A&BC 開く"),
        ("%s", "_", "o", "%s"),
        ("...", "_", "o", "..."),
        ("", "_", "o", ""),
    ],
)
def test_a_mark_is_put_back(text, mark, letter, expected):
    assert with_accelerator(text, mark, letter) == expected


@given(st.text(max_size=100))
def test_any_text_is_answered_and_loses_at_most_its_mark(text):
    rest, accelerator = without_accelerator(text)
    if accelerator is None:
        assert rest == text
    else:
        assert accelerator.mark + accelerator.letter in text
        assert len(rest) < len(text)


@given(st.text(max_size=40), st.sampled_from("_&~"), st.sampled_from("oé1"))
def test_a_mark_adds_nothing_else(text, mark, letter):
    marked = with_accelerator(text, mark, letter)
    added = len(marked) - len(text)
    assert added in (0, 1, 4)  # 4: (_O)
    if added == 1:
        assert any(marked[:i] + marked[i + 1 :] == text for i, character in enumerate(marked) if character == mark)
