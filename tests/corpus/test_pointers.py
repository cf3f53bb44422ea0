"""The heart: for each target word what the model is to predict, by hand and against a naive loop."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pointing.corpus.pointers import NOWHERE, Side, choose, names, same_entity, same_word
from pointing.text.vocabulary import UNK

V = 100


def side(*sentences):
    """Sentences of words as numbers."""
    flat = [word for sentence in sentences for word in sentence]
    return Side(np.array(flat, np.int32), np.cumsum([0, *map(len, sentences)]).astype(np.int32))


def choices(policy, source, target, ids, senses=None, entity=None):
    senses = {word: np.array(some, np.int32) for word, some in (senses or {}).items()}
    found = None if entity is None else np.array(entity, np.int32)
    made = choose(policy, side(source), side(target), np.array(ids, np.int32), V, senses, found)
    return made.target.tolist()


# Words are numbers: 1 the, 2 zorblatt, 3 chat, 4 cat, 5 le, 6 quux. The shortlist has 1 → 10 and 5 → 50.
SOURCE, TARGET, IDS = [1, 2, 4, 2], [5, 2, 1, 3, 6], [50, UNK, 10, UNK, UNK]
SENSES = {3: [6, 4], 5: [1]}


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ("none", [50, UNK, 10, UNK, UNK]),
        ("unknown-words", [50, V + 1, 10, UNK, UNK]),  # the first of two places
        ("all-matches", [50, V + 1, V + 0, UNK, UNK]),
        ("dictionary", [50, V + 1, 10, V + 2, UNK]),  # `chat` by its sense `cat`; `le` is in the shortlist
    ],
)
def test_policies_by_hand(policy, expected):
    assert choices(policy, SOURCE, TARGET, IDS, SENSES) == expected


def test_an_entity_points_at_the_first_place_where_the_source_names_it():
    # 7 is a name in both; 8 is a name in the target alone; 1 is one in the source alone; the first 7 is just a word
    source, target = side([7, 1, 7, 7, 8]), side([7, 1, 8, 9, 7])
    tags = np.array([False, True, True, True, False]), np.array([True, False, True, True, False])
    entity = same_entity(source, target, *tags)
    assert entity.tolist() == [2, NOWHERE, NOWHERE, NOWHERE, NOWHERE]
    assert choices("entities", [7, 1, 7, 7, 8], [7, 1, 8, 9, 7], [20, 10, 30, UNK, 20], entity=entity) == [
        V + 2,  # known or not
        10,
        30,
        UNK,
        20,  # the same word, but not a name here
    ]


def test_of_several_senses_the_one_that_stands_first_in_the_source_wins():
    assert choices("dictionary", [9, 8, 7], [3], [UNK], {3: [7, 8]}) == [V + 1]


def test_the_same_word_is_preferred_to_a_sense():
    assert choices("dictionary", [4, 3], [3], [UNK], {3: [4]}) == [V + 1]


def test_a_pointer_never_leaves_its_own_sentence():
    source, target = side([1, 2], [], [2, 1]), side([3], [1], [1, 2])
    assert same_word(source, target).tolist() == [NOWHERE, NOWHERE, 1, 0]


def test_source_words_are_named_by_shortlist_id_or_first_position():
    source = side([7, 1, 7, 8], [8, 7])
    ids = np.array([UNK, 10, UNK, UNK, UNK, UNK], np.int32)
    assert names(source, ids, V).tolist() == [V, 10, V, V + 3, V, V + 1]


sentences = st.lists(st.lists(st.integers(0, 9), max_size=6), min_size=1, max_size=6)


@given(sentences, st.data(), st.dictionaries(st.integers(0, 9), st.lists(st.integers(0, 9), min_size=1)))
def test_arrays_equal_a_naive_loop(source, data, senses):
    target = [data.draw(st.lists(st.integers(0, 9), max_size=6)) for _ in source]
    shortlist = data.draw(st.sets(st.integers(0, 9)))
    flat = [word for sentence in target for word in sentence]
    ids = np.array([20 + word if word in shortlist else UNK for word in flat], np.int32)
    as_arrays = {word: np.array(some, np.int32) for word, some in senses.items()}
    for policy in ("none", "unknown-words", "all-matches", "dictionary"):
        expected = []
        for sentence, words in zip(source, target, strict=True):
            for word in words:
                same = sentence.index(word) if word in sentence else None
                sense = min((sentence.index(s) for s in senses.get(word, []) if s in sentence), default=None)
                known = 20 + word if word in shortlist else UNK
                place = None
                if policy == "all-matches" or (policy != "none" and known == UNK):
                    place = same
                if policy == "dictionary" and known == UNK and same is None:
                    place = sense
                expected.append(known if place is None else V + place)
        made = choose(policy, side(*source), side(*target), ids, V, as_arrays)
        assert made.target.tolist() == expected
