import numpy as np
import pytest

from pointing.config import Config, checked
from pointing.corpus.preparation import prepare
from pointing.corpus.vectors import Sentences, for_vocabulary, load_vectors, read_vectors, save_vectors, train_vectors
from pointing.errors import Misuse
from pointing.text.vocabulary import EOS, UNK, Vocabulary

WORDS = Vocabulary(["cat", "dog", "New"], [3, 2, 1])


@pytest.mark.parametrize(
    "text",
    [
        "2 3\ncat 1 2 3\ndog -1 0.5 1e-2\n",  # word2vec
        "cat 1 2 3\ndog -1 0.5 1e-2\nNew York 9 9 9\n",  # GloVe, with a word that has a space
    ],
)
@pytest.mark.parametrize("name", ["x.txt", "x.vec.gz"])
def test_text_files(tmp_path, text, name):
    import gzip

    path = tmp_path / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    rows = for_vocabulary(WORDS, read_vectors(path, set(WORDS.words)), path)
    assert rows.shape == (5, 3)
    np.testing.assert_allclose(rows[WORDS["cat"]], [1, 2, 3])
    np.testing.assert_allclose(rows[WORDS["dog"]], [-1, 0.5, 0.01])
    assert np.isnan(rows[[0, 1, WORDS["New"]]]).all()  # what is not there starts at random


def test_binary_word2vec_files(tmp_path):
    models = pytest.importorskip("gensim.models")
    vectors = models.KeyedVectors(3)
    vectors.add_vectors(["cat", "other"], np.array([[1, 2, 3], [4, 5, 6]], np.float32))
    vectors.save_word2vec_format(str(tmp_path / "x.bin"), binary=True)
    assert {word: v.tolist() for word, v in read_vectors(tmp_path / "x.bin", {"cat", "dog"}).items()} == {
        "cat": [1, 2, 3]
    }
    (tmp_path / "bad.bin").write_bytes(b"5 3\nca")
    with pytest.raises(Misuse, match="not a binary word2vec file"):
        read_vectors(tmp_path / "bad.bin", {"cat"})


@pytest.mark.parametrize(("text", "line"), [("cat 1 2 3\ndog 1 2\n", 2), ("cat 1 x 3\n", 1)])
def test_a_broken_line_is_named(tmp_path, text, line):
    (tmp_path / "x.txt").write_text(text)
    with pytest.raises(Misuse, match=rf"x\.txt:{line}: expected a word and 3 numbers"):
        read_vectors(tmp_path / "x.txt", {"cat", "dog"})


def test_a_file_without_any_of_our_words_is_misuse(tmp_path):
    (tmp_path / "x.txt").write_text("bird 1 2 3\n")
    with pytest.raises(Misuse, match="not one of the vocabulary's words"):
        for_vocabulary(WORDS, read_vectors(tmp_path / "x.txt", {"cat"}), tmp_path / "x.txt")


def test_word2vec_puts_words_of_a_kind_together_and_repeats_itself():
    pytest.importorskip("gensim")
    rng = np.random.default_rng(0)
    kinds = np.arange(2, 8), np.arange(8, 14)  # words that keep company with their own kind
    sentences = [rng.choice(kinds[n % 2], 8).tolist() for n in range(2000)]
    first, again = (train_vectors(sentences, 15, 20, epochs=10) for _ in range(2))
    np.testing.assert_array_equal(first, again)
    assert np.isnan(first[[0, 1, 14]]).all()
    unit = first / np.linalg.norm(first, axis=1, keepdims=True)
    inside = (unit[kinds[0]] @ unit[kinds[0]].T).mean()
    across = (unit[kinds[0]] @ unit[kinds[1]].T).mean()
    assert inside > across + 0.3


def test_saved_vectors_are_loaded_and_nothing_pickled_ever_is(tmp_path):
    vectors = np.arange(6, dtype=np.float32).reshape(2, 3)
    save_vectors(tmp_path / "x.npy", vectors)
    np.testing.assert_array_equal(load_vectors(tmp_path / "x.npy"), vectors)
    np.save(tmp_path / "evil.npy", np.array([object()], dtype=object), allow_pickle=True)
    with pytest.raises(Misuse, match=r"not vectors .*Python objects"):
        load_vectors(tmp_path / "evil.npy")
    (tmp_path / "junk.npy").write_bytes(b"junk" * 30)
    with pytest.raises(Misuse, match=r"junk\.npy: not vectors \(the magic string is not correct") as refusal:
        load_vectors(tmp_path / "junk.npy")
    assert "pickle" not in str(refusal.value)  # numpy's advice to load it unsafely


def test_word2vec_reads_the_sources_end_and_copied_words_as_unknown(tmp_path):
    for name, text in {"source": "a b zorblatt\na b\n", "target": "A B zorblatt\nA B\n"}.items():
        (tmp_path / name).write_text(text)
    files = {"source": str(tmp_path / "source"), "target": str(tmp_path / "target")}
    settings = {"data": {"train": files, "dev": files}, "vocabulary": {"min_count": 2}, "text": {"lowercase": False}}
    corpus, _ = prepare(checked(Config, settings), tmp_path / "corpus", 1)
    assert max(corpus.split("train")[0]["target_words"]) >= len(corpus.lexicon.target)  # a pointer, not a word
    a, b = (corpus.lexicon.source[word] for word in "ab")
    assert list(Sentences(corpus, "source")) == [[a, b, UNK, EOS], [a, b, EOS]]
    a, b = (corpus.lexicon.target[word] for word in "AB")
    assert list(Sentences(corpus, "target")) == [[a, b, UNK, EOS], [a, b, EOS]]
