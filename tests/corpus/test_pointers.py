"""For each target word what the model is to predict, by hand and against a naive loop."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pointing.corpus.pointers import NOWHERE, Side, choose, number_source_words, same_entity, same_word
from pointing.text.vocabulary import UNK

V = 100


def side(*sentences):
    """Sentences of words as numbers."""
    flat = [word for sentence in sentences for word in sentence]
    return Side(np.array(flat, np.int32), np.cumsum([0, *map(len, sentences)]).astype(np.int32))


def choices(policy, source, target, ids, translations=None, entity=None):
    """The choices for one sentence pair; `translations` are what copying writes instead of some source words."""
    written = None
    if translations is not None:
        written = side([translations.get(word, word) for word in source]), side(target)
    positions = None if entity is None else np.array(entity, np.int32)
    return choose(policy, side(source), side(target), np.array(ids, np.int32), V, positions, written)


# Words are numbers: 1 the, 2 zorblatt, 3 chat, 4 cat, 5 le, 6 quux. The shortlist has 1 → 10 and 5 → 50.
SOURCE, TARGET, IDS = [1, 2, 4, 2], [5, 2, 1, 3, 6], [50, UNK, 10, UNK, UNK]


@pytest.mark.parametrize(
    ("policy", "translations", "expected"),
    [
        ("none", None, [50, UNK, 10, UNK, UNK]),
        ("unknown-words", None, [50, V + 1, 10, UNK, UNK]),  # the first of two positions
        ("all-matches", None, [50, V + 1, V + 0, UNK, UNK]),
        ("dictionary", {4: 3, 1: 5}, [50, V + 1, 10, V + 2, UNK]),  # `cat` writes `chat`; `le` is in the shortlist
    ],
)
def test_policies_by_hand(policy, translations, expected):
    assert choices(policy, SOURCE, TARGET, IDS, translations).target.tolist() == expected


def test_an_entity_points_at_the_first_place_where_the_source_names_it():
    # 7 is a name in both; 8 is a name in the target alone; 1 is one in the source alone; the first 7 is just a word
    source, target = side([7, 1, 7, 7, 8]), side([7, 1, 8, 9, 7])
    tags = np.array([False, True, True, True, False]), np.array([True, False, True, True, False])
    entity = same_entity(source, target, *tags)
    assert entity.tolist() == [2, NOWHERE, NOWHERE, NOWHERE, NOWHERE]
    learned = choices("entities", [7, 1, 7, 7, 8], [7, 1, 8, 9, 7], [20, 10, 30, UNK, 20], entity=entity)
    assert learned.target.tolist() == [
        V + 2,  # in the shortlist or not
        10,
        30,
        UNK,
        20,  # the same word, but not a name here
    ]


def test_of_several_positions_that_write_the_word_the_first_wins():
    assert choices("dictionary", [9, 8, 7, 3], [3], [UNK], {7: 3, 8: 3}).target.tolist() == [V + 1]
    assert choices("dictionary", [9, 3, 7, 8], [3], [UNK], {7: 3, 8: 3}).target.tolist() == [V + 1]


def test_a_word_whose_copy_is_written_as_another_word_is_not_taught_as_a_pointer():
    # Source and target both have 3, but copying 3 writes 4.
    assert choices("dictionary", [9, 3], [3], [UNK], {3: 4}).target.tolist() == [UNK]
    assert choices("dictionary", [9, 3, 8], [3], [UNK], {3: 4, 8: 3}).target.tolist() == [V + 2]


def test_same_words_and_what_copies_write_are_told_apart():
    found = choices("dictionary", [9, 3, 4], [3, 5, 6, 9, 4], [UNK, UNK, UNK, 30, UNK], {4: 5})
    assert found.unknown.tolist() == [True, True, True, False, True]
    assert found.same.tolist() == [1, NOWHERE, NOWHERE, 0, 2]
    assert found.copied.tolist() == [1, 2, NOWHERE, 0, NOWHERE]
    assert found.words.tolist() == [V + 1, V + 2, UNK, 30, UNK]


def test_a_pointer_never_leaves_its_own_sentence():
    source, target = side([1, 2], [], [2, 1]), side([3], [1], [1, 2])
    assert same_word(source, target).tolist() == [NOWHERE, NOWHERE, 1, 0]
    source, target = side([3, 1], []), side([], [1])  # the largest number is the source's
    assert same_word(source, target).tolist() == [NOWHERE]


def test_source_words_are_shortlist_ids_or_first_positions():
    source = side([7, 1, 7, 8], [8, 7])
    ids = np.array([UNK, 10, UNK, UNK, UNK, UNK], np.int32)
    assert number_source_words(source, ids, V).tolist() == [V, 10, V, V + 3, V, V + 1]


WORD = st.integers(0, 9)
SENTENCES = st.lists(st.lists(WORD, max_size=6), min_size=1, max_size=6)


@given(SENTENCES, st.data(), st.sets(WORD), st.dictionaries(WORD, WORD))
def test_arrays_equal_a_naive_loop(source, data, shortlist, translations):
    target = [data.draw(st.lists(WORD, max_size=6)) for _ in source]
    ids = np.array([20 + word if word in shortlist else UNK for sentence in target for word in sentence], np.int32)
    for policy in ("none", "unknown-words", "all-matches", "dictionary"):
        written = source
        if policy == "dictionary":
            written = [[translations.get(word, word) for word in sentence] for sentence in source]
        expected = []
        for sentence, words in zip(written, target, strict=True):
            for word in words:
                pointed = policy == "all-matches" or (policy != "none" and word not in shortlist)
                if pointed and word in sentence:
                    expected.append(V + sentence.index(word))
                else:
                    expected.append(20 + word if word in shortlist else UNK)
        sides = (side(*written), side(*target)) if policy == "dictionary" else None
        assert choose(policy, side(*source), side(*target), ids, V, written=sides).target.tolist() == expected


@given(SENTENCES, st.data(), st.sets(WORD), st.dictionaries(WORD, WORD))
def test_what_is_taught_is_what_copying_writes(source, data, shortlist, translations):
    """A taught pointer, followed at test by way of `number_source_words`, writes the very target word."""
    target = [data.draw(st.lists(WORD, max_size=6)) for _ in source]
    shortlist_id = np.array([20 + word if word in shortlist else UNK for word in range(10)], np.int32)
    written = side(*([translations.get(word, word) for word in sentence] for sentence in source))
    words = side(*target)
    learned = choose("dictionary", side(*source), words, shortlist_id[words.words], V, written=(written, words))
    source_words = number_source_words(written, shortlist_id[written.words], V)
    for token, choice in enumerate(learned.target.tolist()):
        if choice >= V:
            first = written.offsets[words.sentence()[token]]
            assert written.words[first + choice - V] == words.words[token]
            assert source_words[first + choice - V] == choice == learned.words[token]
