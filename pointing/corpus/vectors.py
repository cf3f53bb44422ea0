"""Embeddings to start from (paper §5.2): word2vec trained on the corpus itself, or read from a file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from pointing.corpus.examples import Corpus, flat
from pointing.errors import Misuse, missing_extra
from pointing.system.border import check_file, check_regular, entering
from pointing.system.files import read_lines, whole_file
from pointing.system.progress import progress
from pointing.text.vocabulary import EOS, UNK, Vocabulary

Vectors = npt.NDArray[np.float32]


def make_vectors(corpus: Corpus, side: str, origin: Path | Literal["word2vec"], width: int) -> Vectors:
    """A vector for every id of one side's vocabulary, (V, width); NaN where there is none to start from."""
    vocabulary = corpus.lexicon.source if side == "source" else corpus.lexicon.target
    if isinstance(origin, Path):
        return for_vocabulary(vocabulary, read_vectors(origin, set(vocabulary.words)), origin)
    return train_vectors(Sentences(corpus, side), len(vocabulary), width)


class Sentences:
    """What word2vec reads, as often as it likes: the training sentences as the model reads their words.

    The encoder reads EOS after each source. A target word outside the shortlist is UNK, also where it can be copied.
    """

    def __init__(self, corpus: Corpus, side: str) -> None:
        self.split, self.V = corpus.split("train"), len(corpus.lexicon.target)
        self.column, self.end = ("source", [EOS]) if side == "source" else ("target_words", [])

    def __iter__(self) -> Iterator[list[int]]:
        for group in self.split.groups:
            offsets, ids = flat(group, self.column)
            words = (ids if self.end else np.where(ids < self.V, ids, UNK)).tolist()
            yield from (words[start:stop] + self.end for start, stop in pairwise(offsets.tolist()))


def require_gensim() -> None:
    """Raises an error without gensim, which trains vectors and reads binary ones. Preparation calls it at its start."""
    try:
        import gensim  # noqa: F401
    except ImportError:
        raise missing_extra("gensim", "embeddings") from None


def train_vectors(sentences: Iterable[Sequence[int]], V: int, width: int, epochs: int = 5, seed: int = 1) -> Vectors:
    """Skip-gram vectors of the ids 0 … V - 1, by gensim, on one thread so that the same text gives the same vectors."""
    require_gensim()
    from gensim.models import Word2Vec
    from gensim.models.callbacks import CallbackAny2Vec

    with progress("word2vec", epochs, "epochs") as bar:

        class Advance(CallbackAny2Vec):  # type: ignore[misc]
            def on_epoch_end(self, model: Any) -> None:
                bar.advance()

        settings = {"vector_size": width, "sg": 1, "min_count": 1, "epochs": epochs, "seed": seed, "workers": 1}
        model = Word2Vec(sentences, **settings, callbacks=[Advance()])
    vectors = np.full((V, width), np.nan, np.float32)
    vectors[model.wv.index_to_key] = model.wv[model.wv.index_to_key]
    return vectors


def for_vocabulary(vocabulary: Vocabulary, vectors: dict[str, Vectors], path: Path) -> Vectors:
    if not vectors:
        raise Misuse("not one of the vocabulary's words is in this file", path)
    width = len(next(iter(vectors.values())))
    rows = np.full((len(vocabulary), width), np.nan, np.float32)
    for word, vector in vectors.items():
        rows[vocabulary[word]] = vector
    return rows


def read_vectors(path: Path, wanted: set[str]) -> dict[str, Vectors]:
    """The vectors of the wanted words from word2vec (text, or binary in *.bin) or GloVe, plain or .gz."""
    if ".bin" in path.suffixes:
        return dict(_read_binary(path, wanted))
    return dict(_read_text(path, wanted))


def _read_text(path: Path, wanted: set[str]) -> Iterator[tuple[str, Vectors]]:
    """`word v1 v2 …` a line; word2vec's text has a first line with the number of words and the width."""
    width = None
    for number, line in enumerate(read_lines(path), 1):
        columns = line.rstrip().split(b" ")
        if number == 1 and len(columns) == 2:
            width = int(columns[1]) if columns[1].isdigit() and len(columns[1]) < 7 else None
            continue
        width = len(columns) - 1 if width is None else width
        if width < 1:
            raise Misuse("expected a word and numbers", path, number)
        word = b" ".join(columns[:-width]).decode("utf-8", "replace")  # GloVe has words with spaces
        if len(columns) <= width:
            raise Misuse(f"expected a word and {width} numbers", path, number)
        if word in wanted:
            try:
                yield word, np.array(columns[-width:], np.float32)
            except ValueError:
                raise Misuse(f"expected a word and {width} numbers", path, number) from None


def _read_binary(path: Path, wanted: set[str]) -> Iterator[tuple[str, Vectors]]:
    require_gensim()
    from gensim.models import KeyedVectors

    check_regular(path)
    with entering(path, "a binary word2vec file"):
        vectors = KeyedVectors.load_word2vec_format(str(path), binary=True, unicode_errors="replace")
    for word in wanted & vectors.key_to_index.keys():
        yield word, np.asarray(vectors[word], np.float32)


def save_vectors(path: Path, vectors: Vectors) -> None:
    with whole_file(path) as part, part.open("wb") as file:
        np.save(file, vectors, allow_pickle=False)


def load_vectors(path: Path) -> Vectors:
    """What `save_vectors` wrote."""
    check_file(path)
    with entering(path, "vectors"):
        vectors: Vectors = np.lib.format.open_memmap(path, mode="r")  # a wrong size in it takes no memory
        if vectors.dtype != np.float32 or vectors.ndim != 2:
            raise ValueError("it should be a table of float32")
        return np.array(vectors)
