"""How familiar a source word is (`pointers.familiarity`): as it is counted, stored, and read by the encoder."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pointing.config import Config, checked
from pointing.corpus.base import Base
from pointing.corpus.examples import Corpus
from pointing.corpus.familiarity import FAMILIARITIES, NEVER_SEEN, Familiar
from pointing.corpus.lexicon import FAMILIAR
from pointing.corpus.preparation import prepare
from pointing.errors import Misuse
from pointing.generation.reader import LineReader, as_batch
from pointing.text.forms import FORMS
from pointing.text.token_arrays import TokenArrays

# "the" is well known and never copied; "Zorb" is seen twice and copied; "Floopix" and "dust" stand in one pair each.
SOURCE = [*["close the file"] * 9, "the Zorb file", "open the Zorb", "start Floopix", "the dust"]
TARGET = [*["schließe die Datei"] * 9, "die Zorb-Datei", "öffne Zorb", "starte Floopix", "der Staub"]
DEV = ["the Floopix dust", "the Glorp Zorb"], ["der Floopix Staub", "der Glorp Zorb"]


def settings_of(folder, source=SOURCE, target=TARGET, **pointers):
    data = {}
    for name, lines in {"train": (source, target), "dev": DEV}.items():
        for side, texts in zip(("source", "target"), lines, strict=True):
            (folder / f"{name}.{side}").write_text("\n".join(texts) + "\n")
        data[name] = {side: str(folder / f"{name}.{side}") for side in ("source", "target")}
    settings = {
        "data": data | {"languages": ["en", "de"]},
        "text": {"subwords": "bpe", "forms": True},
        "vocabulary": {"source": 40, "target": 40},
        "pointers": {"places": "words", "familiarity": True, **pointers},
    }
    return checked(Config, settings)


def prepared(folder, base=None, **settings):
    return prepare(settings_of(folder, **settings), folder / "corpus", workers=1, base=base)[0]


def of_words(corpus, split, row):
    """The familiarity of each source word of an example; all pieces of a word have the same."""
    example = corpus.split(split)[row]
    numbers = np.array(example["source_forms"]) // FORMS
    words = np.split(numbers, np.cumsum(example["pieces"])[:-1])
    assert all(len(set(word.tolist())) == 1 for word in words)
    return [int(word[0]) for word in words]


def tokens(*lines):
    """Lines of numbers of words."""
    ids = np.array([word for line in lines for word in line], np.int32)
    counts = np.array([len(line) for line in lines])
    words = [f"w{number}" for number in range(10)]
    return TokenArrays(words, ids, np.zeros_like(ids), np.zeros_like(ids), counts)


@pytest.mark.parametrize(
    ("seen", "copied", "expected"),
    [
        (0, 0, NEVER_SEEN),
        (1, 0, 1),
        (2, 1, 3),
        (3, 0, 4),
        (9, 1, 5),
        (9, 5, 6),
        (10, 0, 7),
        (100, 4, 7),
        (100, 5, 8),
        (100, 49, 8),
        (100, 50, 9),
        (100, 300, 9),
    ],
)
def test_numbers_by_hand(seen, copied, expected):
    familiar = Familiar({"w3": (seen, copied)})
    assert familiar.numbers(tokens([3, 4])).tolist() == [expected, NEVER_SEEN]
    assert 0 <= expected < FAMILIARITIES


def test_a_training_pair_does_not_count_for_its_own_words():
    # w1: 5 times in the source, twice of these here; 4 copies, 1 of them here. So 3 and 3 elsewhere: known and copied.
    # w2: once, here. w3: 12 times, copied in this pair alone.
    familiar = Familiar({"w1": (5, 4), "w2": (1, 0), "w3": (12, 1)})
    source, target = tokens([1, 1, 2], [3]), tokens([1, 4], [3])
    assert familiar.numbers(source).tolist() == [6, 6, 1, 8]
    assert familiar.numbers(source, target).tolist() == [6, 6, NEVER_SEEN, 7]
    # The same word in another line is another pair's.
    assert familiar.numbers(tokens([3], [1]), tokens([1], [1])).tolist() == [8, 6]


def test_what_the_encoder_reads_of_a_corpus(tmp_path):
    corpus = prepared(tmp_path)
    the, file, zorb = 7, 4, 3  # 11 and 9 times in other pairs, never copied; once in another pair, and copied
    assert of_words(corpus, "train", 9) == [the, zorb, file]
    assert of_words(corpus, "train", 11) == [NEVER_SEEN, NEVER_SEEN]  # "start" and "Floopix" are in no other pair
    assert of_words(corpus, "dev", 0) == [the, 3, 1]  # of the last two one was copied, the other not
    assert of_words(corpus, "dev", 1) == [the, NEVER_SEEN, zorb]


def test_a_raw_line_is_read_as_the_dev_part_is(tmp_path):
    corpus = prepared(tmp_path)
    read = as_batch(LineReader(corpus.lexicon)(DEV[0])).x_form
    assert (read == corpus.split("dev").batch(np.arange(2)).x_form).all()


def test_the_corpus_keeps_its_familiar_words(tmp_path):
    made = prepared(tmp_path).lexicon.familiar
    assert made.counts["zorb"] == (2, 2)
    assert made.counts["the"] == (12, 0)
    assert Corpus(tmp_path / "corpus").lexicon.familiar == made


def test_without_the_setting_nothing_changes(tmp_path):
    corpus = prepared(tmp_path, familiarity=False)
    assert corpus.lexicon.familiar is None
    assert not (tmp_path / "corpus" / FAMILIAR).exists()
    assert max(max(corpus.split("train")[row]["source_forms"]) for row in range(len(SOURCE))) < FORMS


def test_a_run_that_begins_with_another_knows_the_words_of_both(tmp_path):
    (tmp_path / "new").mkdir()
    first = prepared(tmp_path).lexicon
    corpus = prepared(tmp_path / "new", Base.of(first, grow=True), source=["stop Glorp"] * 3, target=["Glorp halt"] * 3)
    assert corpus.lexicon.familiar.counts["zorb"] == (2, 2)
    assert corpus.lexicon.familiar.counts["glorp"] == (3, 3)
    assert of_words(corpus, "train", 0) == [1, 3]  # twice elsewhere
    other = Familiar({"zorb": (1, 0), "new": (4, 2)})
    assert first.familiar.with_text(other).counts["zorb"] == (3, 2)
    assert first.familiar.with_text(other).counts["new"] == (4, 2)


counted = st.tuples(st.integers(0, 10**9), st.integers(0, 10**9))
word = st.text(st.characters(exclude_characters="\t\n", codec="utf-8"), min_size=1)


@given(st.dictionaries(word, counted))
def test_saved_and_loaded_is_the_same(tmp_path_factory, counts):
    path = tmp_path_factory.mktemp("familiar") / FAMILIAR
    Familiar(counts).save(path)
    assert Familiar.load(path).counts == counts


@pytest.mark.parametrize(
    "line",
    ["a\t1", "\t1\t1", "a\t1\t1\t1", "a\t-1\t0", "a\tx\t1", "a\t1\t٣", "a\t" + "9" * 5000 + "\t1", "b\t1\t1", ""],
)
def test_a_line_that_is_none_is_named(tmp_path, line):
    (tmp_path / FAMILIAR).write_text(f"b\t2\t0\n{line}\nc\t1\t1\n")
    with pytest.raises(Misuse, match=r"familiar\.tsv:2: not a new word with its two counts"):
        Familiar.load(tmp_path / FAMILIAR)


def test_a_missing_file_is_named(tmp_path):
    prepared(tmp_path)
    (tmp_path / "corpus" / FAMILIAR).unlink()
    with pytest.raises(Misuse, match=r"familiar\.tsv"):
        _ = Corpus(tmp_path / "corpus").lexicon


def test_settings_that_have_no_whole_words_or_no_forms_are_refused(tmp_path):
    dump = settings_of(tmp_path).model_dump()
    with pytest.raises(Misuse, match=r"pointers\.familiarity is of whole words: set pointers\.places: words"):
        checked(Config, dump | {"pointers": {"familiarity": True}})
    with pytest.raises(Misuse, match=r"set text\.forms: true"):
        checked(Config, dump | {"text": {}, "pointers": {"familiarity": True}})
