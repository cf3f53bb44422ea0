from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pointing.errors import Misuse
from pointing.text.entities import placeholder
from pointing.text.vocabulary import EOS, FIRST, UNK, Vocabulary

COUNTS = Counter({"the": 9, "a": 5, "<unk>": 5, "</s>": 2, "rare": 1})


def test_size_counts_the_two_ids_that_are_no_words():
    vocabulary = Vocabulary.build(COUNTS, size=4, min_count=1)
    assert len(vocabulary) == 4
    assert vocabulary.words == ["the", "<unk>"]  # as frequent as "a", and before it in the alphabet


@pytest.mark.parametrize(
    ("size", "min_count", "words"), [(None, 2, 4), (None, 1, 5), (5, 5, 3), (100, 9, 1), (4, 1, 2)]
)
def test_size_and_minimum_count_bind_whichever_is_tighter(size, min_count, words):
    assert len(Vocabulary.build(COUNTS, size, min_count).words) == words


def test_special_ids_never_collide_with_words_of_the_text():
    vocabulary = Vocabulary.build(COUNTS, None, 1, placeholders=2)
    assert vocabulary["<unk>"] not in (EOS, UNK)
    assert vocabulary["</s>"] not in (EOS, UNK)
    assert vocabulary["never seen"] == UNK
    assert [vocabulary[placeholder(n)] for n in (1, 2, 3)] == [FIRST, FIRST + 1, UNK]
    assert vocabulary.word(EOS) is vocabulary.word(UNK) is vocabulary.word(FIRST) is None
    assert vocabulary.word(FIRST + 2) == "the"


words = st.text(
    st.characters(exclude_categories=("Cs", "Z"), exclude_characters="\t\n\r\0\x0b\x0c\x1c\x1d\x1e\x1f\x85"), min_size=1
)


@given(st.dictionaries(words, st.integers(1, 1000)), st.integers(0, 5))
def test_what_is_saved_is_loaded(counts, placeholders):
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "words"
        saved = Vocabulary.build(counts, None, 1, placeholders)
        saved.save(path)
        loaded = Vocabulary.load(path, placeholders)
    assert (loaded.words, loaded.counts) == (saved.words, saved.counts)
    assert loaded.ids(counts).tolist() == saved.ids(counts).tolist()
    assert all(loaded.word(loaded[word]) == word for word in counts)


@pytest.mark.parametrize(("content", "line"), [("the 9\n", 1), ("the\t9\n\n", 2), ("the\tmany\n", 1)])
def test_a_malformed_file_is_named_with_its_line(tmp_path, content, line):
    (tmp_path / "words").write_text(content)
    with pytest.raises(Misuse, match=rf"words:{line}: not a word, a tab and its count"):
        Vocabulary.load(tmp_path / "words")


def test_a_vocabulary_file_lists_its_placeholders(tmp_path):
    Vocabulary(["a", "b"], [3, 2], placeholders=2).save(tmp_path / "source.vocabulary")
    assert (tmp_path / "source.vocabulary").read_text() == " 1\t0\n 2\t0\na\t3\nb\t2\n"  # ids follow the lines
    again = Vocabulary.load(tmp_path / "source.vocabulary")
    assert (again.placeholders, again.words, again.counts, again["a"]) == (2, ["a", "b"], [3, 2], FIRST + 2)


def test_a_vocabulary_file_of_earlier_versions_is_told_its_placeholders(tmp_path):
    (tmp_path / "source.vocabulary").write_text("a\t3\n")
    assert Vocabulary.load(tmp_path / "source.vocabulary", unlisted_placeholders=4)["a"] == FIRST + 4
