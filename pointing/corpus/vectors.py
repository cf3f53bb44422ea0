"""Embeddings to start from (paper §5.2): word2vec trained on the corpus itself, or read from a file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from pointing.corpus.examples import Corpus
from pointing.errors import Misuse, missing_extra
from pointing.system.files import read_lines, whole_file
from pointing.system.progress import progress
from pointing.text.vocabulary import Vocabulary

Vectors = npt.NDArray[np.float32]


def make(corpus: Corpus, side: str, wanted: Path | Literal["word2vec"], width: int) -> Vectors:
    """A vector for every id of one side's vocabulary, (V, width); NaN where there is none to start from."""
    vocabulary = corpus.lexicon.source if side == "source" else corpus.lexicon.target
    if isinstance(wanted, Path):
        return for_vocabulary(vocabulary, read(wanted, set(vocabulary.words)), wanted)
    return train(_Sentences(corpus, side), len(vocabulary), width)


class _Sentences:
    """The training split's sentences as ids, again and again: what word2vec reads."""

    def __init__(self, corpus: Corpus, side: str) -> None:
        self.split = corpus.split("train")
        self.column = "source" if side == "source" else "target_words"

    def __iter__(self) -> Iterator[list[int]]:
        for group in self.split.groups:
            lists: Any = group.column(self.column)
            yield from lists.to_pylist()


def train(sentences: Iterable[Sequence[int]], V: int, width: int, epochs: int = 5, seed: int = 1) -> Vectors:
    """Skip-gram vectors of the ids 0 … V - 1, by gensim, on one thread so that the same text gives the same vectors."""
    try:
        from gensim.models import Word2Vec
        from gensim.models.callbacks import CallbackAny2Vec
    except ImportError:
        raise missing_extra("gensim", "embeddings") from None

    with progress("word2vec", epochs, "epochs") as bar:

        class Advance(CallbackAny2Vec):  # type: ignore[misc]
            def on_epoch_end(self, model: Any) -> None:
                bar.advance()

        model = Word2Vec(
            sentences,
            vector_size=width,
            sg=1,
            min_count=1,
            epochs=epochs,
            seed=seed,
            workers=1,
            callbacks=[Advance()],
        )
    vectors = np.full((V, width), np.nan, np.float32)
    known = [number for number in model.wv.index_to_key if number < V]
    vectors[known] = model.wv[known]
    return vectors


def for_vocabulary(vocabulary: Vocabulary, vectors: dict[str, Vectors], path: Path) -> Vectors:
    if not vectors:
        raise Misuse("not one of the vocabulary's words is in this file", path)
    width = len(next(iter(vectors.values())))
    rows = np.full((len(vocabulary), width), np.nan, np.float32)
    for word, vector in vectors.items():
        rows[vocabulary[word]] = vector
    return rows


def read(path: Path, wanted: set[str]) -> dict[str, Vectors]:
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
            width = int(columns[1]) if columns[1].isdigit() else None
            continue
        width = len(columns) - 1 if width is None else width
        word = b" ".join(columns[:-width]).decode("utf-8", "replace")  # GloVe has words with spaces
        if len(columns) <= width:
            raise Misuse(f"expected a word and {width} numbers", path, number)
        if word in wanted:
            try:
                yield word, np.array(columns[-width:], np.float32)
            except ValueError:
                raise Misuse(f"expected a word and {width} numbers", path, number) from None


def _read_binary(path: Path, wanted: set[str]) -> Iterator[tuple[str, Vectors]]:
    try:
        from gensim.models import KeyedVectors
    except ImportError:
        raise missing_extra("gensim", "embeddings") from None
    try:
        vectors = KeyedVectors.load_word2vec_format(str(path), binary=True, unicode_errors="replace")
    except (OSError, EOFError, ValueError, MemoryError) as error:
        raise Misuse(f"not a binary word2vec file ({error})", path) from None
    for word in wanted & vectors.key_to_index.keys():
        yield word, np.asarray(vectors[word], np.float32)


def save(path: Path, vectors: Vectors) -> None:
    with whole_file(path) as part, part.open("wb") as file:
        np.save(file, vectors, allow_pickle=False)


def load(path: Path) -> Vectors:
    vectors: Vectors = np.load(path, allow_pickle=False)
    return vectors
