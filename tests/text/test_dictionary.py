"""The dictionary: files, both ways of looking up, and what a copied word is written as."""

import gzip

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pointing.errors import Misuse
from pointing.text.dictionary import MIN_PROBABILITY, Dictionary, Senses
from pointing.text.vocabulary import Vocabulary


def written(path, text):
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


# looking up


def test_words_are_looked_up_both_ways_best_first():
    words = Dictionary([("the", "la", 0.2), ("the", "le", 0.7), ("it", "le", 0.1), ("him", "le", 0.3)])
    assert list(words.translations("the")) == ["le", "la"]
    assert list(words.senses("le")) == ["the", "him", "it"]
    assert list(words.senses("la")) == ["the"]
    assert not words.senses("the")
    assert not words.translations("le")
    assert len(words) == 4


def test_of_equal_weights_the_earlier_pair_is_the_better_one():
    words = Dictionary([("bank", "rive", 1.0), ("shore", "rive", 1.0), ("bank", "banque", 1.0)])
    assert list(words.translations("bank")) == ["rive", "banque"]
    assert list(words.senses("rive")) == ["bank", "shore"]


def test_a_pair_given_twice_counts_once_with_its_larger_weight():
    words = Dictionary([("a", "b", 0.2), ("a", "b", 0.5), ("a", "b", 0.3)])
    assert list(words.pairs()) == [("a", "b", 0.5)]


def test_normalizing_merges_pairs_and_drops_what_is_emptied():
    words = Dictionary([("House", "Maison", 0.2), ("house", "maison", 0.6), ("the", "la", 0.3), ("-", "la", 0.4)])
    plain = words.normalized(lambda word: word.lower().strip("-"), str.lower)
    assert list(plain.pairs()) == [("house", "maison", 0.6), ("the", "la", 0.3)]
    assert list(words.senses("Maison")) == ["House"]


@pytest.mark.parametrize("word", ["", "a\tb", "a\nb", " a", "a\r"])
def test_a_word_that_no_line_can_hold_is_refused(word):
    with pytest.raises(Misuse, match="cannot hold"):
        Dictionary([("a", word, 1.0)])
    with pytest.raises(Misuse, match="cannot hold"):
        Dictionary([(word, "a", 1.0)])


# files

WORD = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\t\n\ufeff"), min_size=1).filter(
    lambda word: word == word.strip()
)


@settings(max_examples=50)
@given(st.lists(st.tuples(WORD, WORD, st.floats(0, 1)), min_size=1))
def test_what_is_saved_is_loaded(tmp_path_factory, pairs):
    path = tmp_path_factory.mktemp("dictionary") / "words.tsv"
    words = Dictionary(pairs)
    words.save(path)
    again = Dictionary.load(path)
    assert list(again.pairs()) == list(words.pairs())
    for source, target, _ in pairs:
        assert again.translations(source) == words.translations(source)
        assert again.senses(target) == words.senses(target)


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        ("the\tle\nthe\tla\n", [("the", "le", 1.0), ("the", "la", 1.0)]),
        ("the\tle\t0.25\r\nthe\tla\t5e-1", [("the", "le", 0.25), ("the", "la", 0.5)]),
        ("house\tmaison\tN\ngo\taller\tinf\n", [("house", "maison", 1.0), ("go", "aller", 1.0)]),
        ("run\tcourir\t\n", [("run", "courir", 1.0)]),
        ("house\tmaison\tN\tf\n", [("house", "maison", 1.0)]),
        ("house|||maison\nthe ||| la\n", [("house", "maison", 1.0), ("the", "la", 1.0)]),
        ("a ||| b\tc\n", [("a ||| b", "c", 1.0)]),  # a tab says that this is TSV
        ("\ufeff10 Downing Street \t 10 Downing Street\tS\n\n", [("10 Downing Street", "10 Downing Street", 1.0)]),
        ("a\tb\n \tle souffle coupé\tV\n", [("a", "b", 1.0)]),
    ],
)
def test_the_formats_that_others_write_are_read(tmp_path, text, pairs):
    assert list(Dictionary.load(written(tmp_path / "words.tsv", text)).pairs()) == pairs
    assert list(Dictionary.load(written(tmp_path / "words.tsv.gz", gzip.compress(text.encode()))).pairs()) == pairs


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a\tb\nthe le\n", r"words.tsv:2: no tab: expected source TAB target"),
        ("a\tb\n\nthe\t\n", r"words.tsv:3: the target word is missing"),
        ("\tle\n", r"words.tsv:1: the source word is missing"),
        ("the|||\n", r"words.tsv:1: the target word is missing"),
        ("a\tb\t0.5\na\tc\t12\n", r"words.tsv:2: 12 is not a probability"),
        ("a\tb\t-0.5\n", r"words.tsv:1: -0.5 is not a probability"),
        (b"a\tb\ncaf\xe9\tcaf\xe9\n", r"words.tsv:2: not UTF-8"),
        ("", r"words.tsv: this dictionary is empty"),
        ("\n \n", r"words.tsv: this dictionary is empty"),
    ],
)
def test_a_bad_file_is_refused_with_its_line(tmp_path, text, message):
    with pytest.raises(Misuse, match=message):
        Dictionary.load(written(tmp_path / "words.tsv", text))


def test_a_missing_file_is_misuse(tmp_path):
    with pytest.raises(Misuse, match="there is no such file"):
        Dictionary.load(tmp_path / "words.tsv")


def test_an_empty_dictionary_is_not_saved(tmp_path):
    with pytest.raises(Misuse, match="no word pair to save"):
        Dictionary().save(tmp_path / "words.tsv")
    assert not list(tmp_path.iterdir())


def test_a_save_that_fails_leaves_the_old_file(tmp_path):
    path = tmp_path / "words.tsv"
    Dictionary([("a", "b", 1.0)]).save(path)
    with pytest.raises(UnicodeEncodeError):
        Dictionary([("a", "b", 0.5), ("c", "\ud800", 0.5)]).save(path)
    assert [file.name for file in tmp_path.iterdir()] == ["words.tsv"]
    assert path.read_text() == "a\tb\t1.0\n"


# what a copied word is written as

SHORTLIST = Vocabulary(["maison", "demeure", "chat"], [9, 8, 7])


def senses(*pairs):
    return Senses(Dictionary(pairs), SHORTLIST)


def test_the_more_probable_of_copy_and_translation_is_written():
    assert senses(("java", "java-werkzeug", 0.3), ("java", "java", 0.6))["java"] is None
    assert senses(("set", "ensemble", 0.5), ("set", "set", 0.4))["set"] == "ensemble"


def test_the_most_probable_translation_is_written_inside_the_shortlist_or_not():
    assert senses(("house", "bâtisse", 0.2), ("house", "maison", 0.6))["house"] == "maison"
    assert senses(("house", "bâtisse", 0.6), ("house", "maison", 0.2))["house"] == "bâtisse"


def test_a_translation_needs_evidence():
    assert senses(("house", "maison", MIN_PROBABILITY))["house"] == "maison"
    assert senses(("house", "maison", MIN_PROBABILITY - 0.0001))["house"] is None
    assert senses(("house", "maison", 0.0))["house"] is None


def test_among_equal_weights_words_outside_the_shortlist_come_first_then_the_more_frequent_then_the_earlier_pair():
    words = senses(
        *(("house", word, 1.0) for word in ("demeure", "maison", "logis", "bâtisse")),
        *(("home", word, 1.0) for word in ("demeure", "maison")),
        ("chat", "chat", 1.0), ("chat", "causette", 1.0),
    )  # fmt: skip
    assert [words[word] for word in ("house", "home", "chat")] == ["logis", "maison", "causette"]


def test_a_word_without_a_pair_is_copied():
    words = senses(("house", "maison", 1.0))
    assert words["cat"] is None
    assert "cat" not in words


PROBABILITY = st.integers(0, 20).map(lambda twentieths: twentieths / 20)


@given(st.dictionaries(st.tuples(st.sampled_from("abc"), st.sampled_from("abcxyz")), PROBABILITY))
def test_what_is_written_is_a_most_probable_pair(weights):
    words = Senses(Dictionary((*pair, weight) for pair, weight in weights.items()), Vocabulary(["x", "a"], [2, 1]))
    for word in "abc":
        weight = {target: weights[source, target] for source, target in weights if source == word}
        best = max(weight.values(), default=0.0)
        if words[word] is not None:
            assert words[word] != word
            assert weight[words[word]] == best >= MIN_PROBABILITY
        else:
            assert best < MIN_PROBABILITY or weight.get(word) == best
