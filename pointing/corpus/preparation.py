"""Raw text → prepared corpus: tokens, vocabularies, pointers, statistics, streamed in blocks over all cores.

    tokenise blocks → count words → vocabularies → dictionary → choose pointers → Arrow files

Files of lines are read once, and hashed meanwhile. Nothing holds more than a few blocks: what is between two passes
lies on disk, in the folder that becomes the corpus only when everything is there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from hashlib import sha256
from itertools import accumulate, chain, pairwise
from pathlib import Path

import pyarrow as pa

from pointing import __version__
from pointing.config import CORPUS, Config, Data, Parallel, Text
from pointing.corpus.base import Base, extended
from pointing.corpus.blocks import (
    Block,
    TokenizedPairs,
    encode_block,
    set_up_encoding,
    set_up_tokenizing,
    tokenize_block,
    unprotected_words,
    words_file,
)
from pointing.corpus.examples import PREPARED, ROW_GROUP, Corpus, schema
from pointing.corpus.familiarity import Familiar
from pointing.corpus.lexicon import Lexicon, Tokenization, make_tokenizer
from pointing.corpus.sources import RawSplit, keep_held_out, open_splits
from pointing.corpus.statistics import Statistics
from pointing.corpus.training_words import TRAINING_WORDS, merge_counts
from pointing.corpus.vectors import make_vectors, require_gensim, save_vectors
from pointing.corpus.word_counts import Tally, WordCounts
from pointing.errors import Misuse
from pointing.settings_file import named_files
from pointing.system.border import check_regular
from pointing.system.digests import Digests
from pointing.system.files import finish_replacing, keep_apart, read_text, whole_folder, write_text
from pointing.system.manifest import describe
from pointing.system.progress import progress, say
from pointing.system.workers import in_order
from pointing.text.aligner import Integers, associated, estimate, induce
from pointing.text.dictionary import Dictionary
from pointing.text.forms import usual_writings
from pointing.text.subwords import require_tokenizers
from pointing.text.vocabulary import Vocabulary

# The first version that prepared corpora as this one does. Raised when the same text and settings give another corpus:
# corpora are then prepared anew, and runs made from older ones cannot be resumed.
PREPARES_AS = "0.1.0"


def prepare(config: Config, folder: Path, workers: int | None = None, base: Base | None = None) -> tuple[Corpus, bool]:
    """The prepared corpus of a configuration; False if it was there already, made from the same files and settings.

    With `base`, the vocabularies are those of another run, and words of this text are added to them if it says so.
    """
    if base is not None:
        base.check(config)
    finish_replacing(folder)
    digests = Digests.load(folder / READ)
    if (corpus := _made_already(config, folder, base, digests)) is not None:
        digests.save(folder / READ)
        return corpus, False
    splits = open_splits(config.data, config.pointers.uses_entities, digests)
    for path in named_files(config):
        check_regular(path)
    _check_folder(folder)
    keep_apart(named_files(config), [folder])
    with whole_folder(folder) as part:
        _prepare(config, part, splits, digests, workers, base)
    return Corpus(folder), True


def _made_already(config: Config, folder: Path, base: Base | None, digests: Digests) -> Corpus | None:
    """The corpus in the folder, if it was made from these settings and files."""
    splits = [*config.data.given(), *config.data.split_off()]
    if not all((folder / name).exists() for name in (PREPARED, *(f"{split}.arrow" for split in splits))):
        return None
    if not all(path.exists() for path in named_files(config)):
        return None  # what is missing is said when it is opened
    corpus = Corpus(folder)
    return corpus if corpus.about["made_from"] == _fingerprint(config, base, digests) else None


def _prepare(
    config: Config, part: Path, splits: dict[str, RawSplit], digests: Digests, workers: int | None, base: Base | None
) -> None:
    if config.text.uses_subwords and base is None:
        require_tokenizers()  # before all the work, not after half of it
    if "word2vec" in (config.embeddings.source, config.embeddings.target):
        require_gensim()
    statistics = {
        name: Statistics(skipped=dict(split.left_out), first_skipped=dict(split.first_left_out))
        for name, split in splits.items()
    }
    for note in (note for split in splits.values() for note in split.notes):
        say(note)
    blocks, counts, writings = _tokenize_all(config, part, splits, statistics, workers)
    if config.vocabulary.copied_min_count is not None:
        counts = counts.without_rare_copies(config.vocabulary.copied_min_count)
    source, target = _vocabularies(config, counts, writings, base)
    dictionary, linked = _aligned(config, blocks["train"])
    lexicon = Lexicon(config, source, target, dictionary, _familiar(config, counts, base))
    lexicon.save(part)
    del counts, writings  # they grow with the text's different words, and are not needed any more
    merge_counts(map(words_file, blocks["train"]), part / TRAINING_WORDS)
    for name, paths in blocks.items():
        jobs = [TokenizedPairs(path, linked.get(path), name == "train") for path in paths]
        encoded = in_order(encode_block, jobs, workers, set_up_encoding, lexicon)
        total, columns = statistics[name].pairs, schema(config)
        with progress(f"pointing {name}", total, "pairs") as bar, _writer(part / f"{name}.arrow", columns) as write:
            for batch, counted in encoded:
                statistics[name].add(counted)
                write(batch)
                bar.advance(batch.num_rows)
    about = {
        "made_from": _fingerprint(config, base, digests),
        "made_by": __version__,
        "settings": config.model_dump(mode="json"),
        "statistics": {name: asdict(counted) | counted.shares() for name, counted in statistics.items()},
    }
    write_text(part / PREPARED, json.dumps(about, indent=1) + "\n")
    for name in config.data.split_off():
        keep_held_out(splits[name], name, part)
    _embed(config, part)
    for path in part.glob("*-block-*"):
        path.unlink()
    describe(part, [path.name for path in part.iterdir()])
    digests.save(part / READ)


def _tokenize_all(
    config: Config, part: Path, splits: dict[str, RawSplit], statistics: dict[str, Statistics], workers: int | None
) -> tuple[dict[str, list[Path]], WordCounts, Tally]:
    """The tokenised blocks of each split, and how often each word of the training text stands on either side.

    Also how often each target word is written in which way, if forms are learned.
    """
    smallest_first = sorted(splits, key=lambda name: name == "train")  # what is wrong with dev is said soon
    jobs = chain.from_iterable(_blocks(name, splits[name], part) for name in smallest_first)
    blocks: dict[str, list[Path]] = {name: [] for name in splits}
    words = Tally(3)  # in the source, in the target, and in the target of a pair whose source has the word too
    writings = Tally(2)  # in all, and after another word
    with progress("tokenising", sum(split.pairs for split in splits.values()), "pairs") as bar:
        for done in in_order(tokenize_block, jobs, workers, set_up_tokenizing, config):
            blocks[done.split].append(done.path)
            statistics[done.split].add(done.statistics)
            bar.advance(done.statistics.pairs + sum(done.statistics.skipped.values()))
            if done.split == "train":
                words.add(done.words, done.counts)
                writings.add(done.writings.pairs, done.writings.counts)
    for name, split in splits.items():
        if statistics[name].pairs == 0:
            pairs = sum(statistics[name].skipped.values())
            raise Misuse(f"no pair is left of {pairs:,}: {statistics[name].reasons()}", split.path)
    return blocks, WordCounts(*words.of_texts()), writings


def _vocabularies(
    config: Config, counts: WordCounts, writings: Tally, base: Base | None
) -> tuple[Vocabulary, Vocabulary]:
    """Of source and target: made from the training text, or from those of another run."""
    sizes = config.vocabulary
    if base is None:
        source = _vocabulary(config, counts.source, sizes.source, kinds=True)
        target = _vocabulary(config, counts.target, sizes.target)
        if config.text.uses_subwords and not config.points_at_words:  # pieces have no writing of their own
            return source, target
        return source, target.written_as(_usual_writings(writings, target))
    if config.text.uses_subwords:  # other merges would cut known words in another way
        return base.source, base.target
    if not base.grow:
        counts = WordCounts({}, {}, {})
    source = extended(
        base.source, _vocabulary(config, counts.source, None, kinds=True), sizes.source, "vocabulary.source"
    )
    target = extended(base.target, _vocabulary(config, counts.target, None), sizes.target, "vocabulary.target")
    if config.text.forms:
        target = target.written_as(base.writings(_usual_writings(writings, target)))
    return source, target


def _familiar(config: Config, counts: WordCounts, base: Base | None) -> Familiar | None:
    """The words of the training text, and of the text of another run that this one begins with."""
    if not config.pointers.familiarity:
        return None
    familiar = Familiar.of(counts.source, counts.copied)
    return familiar if base is None or base.familiar is None else base.familiar.with_text(familiar)


def _vocabulary(config: Config, counts: Mapping[str, int], size: int | None, kinds: bool = False) -> Vocabulary:
    if not config.text.uses_subwords:
        placeholders = config.text.max_tokens if config.pointers.anonymous else 0
        return Vocabulary.build(counts, size, config.vocabulary.min_count, placeholders, kinds)
    assert size is not None
    with progress("merging", len(counts), "words") as bar:
        kinds = kinds and config.points_at_words
        vocabulary = Vocabulary.of_pieces(counts, size, config.vocabulary.min_count, kinds)
        bar.advance(len(counts))
    return vocabulary


def _usual_writings(tally: Tally, vocabulary: Vocabulary) -> dict[str, str]:
    """How people usually write the words of a vocabulary."""
    counts: dict[tuple[str, str], tuple[int, int]] = {}
    for pair, in_all, inside in zip(tally.numbers, *tally.counts.tolist(), strict=True):
        word, _, writing = pair.partition("\t")
        if word in vocabulary:
            counts[word, writing] = in_all, inside
    return usual_writings(counts)


def _embed(config: Config, part: Path) -> None:
    """Embeddings to start from, where the settings ask for them."""
    origins = {"source": config.embeddings.source, "target": config.embeddings.target}
    for side, origin in origins.items():
        if origin is not None:
            vectors = make_vectors(Corpus(part), side, origin, config.embeddings.width)
            save_vectors(part / f"{side}.vectors.npy", vectors)


READ = "read.json"  # hashes of the files that the corpus was made from, and how to know these files again
OWN_FILES = re.compile(
    r"(prepared|read)\.json|manifest\.json|\w+\.arrow|(source|target)\.(vocabulary|merges|vectors\.npy)|(dictionary|familiar|training-words)\.tsv"
    r"|held-out-(dev|test)\.(source|target)"
)


def _check_folder(folder: Path) -> None:
    """A corpus replaces its folder, so there must be nothing in it but a corpus."""
    if folder.exists() and not folder.is_dir():
        raise Misuse("this is a file: give a folder for the corpus", folder)
    names = sorted(path.name for path in folder.iterdir()) if folder.exists() else []
    foreign = [name for name in names if PREPARED not in names or not OWN_FILES.fullmatch(name)]
    if foreign:
        raise Misuse(f"there is something else in this folder ({foreign[0]}): give another one for the corpus", folder)


def _fingerprint(config: Config, base: Base | None, digests: Digests) -> str:
    """Of everything that decides what the corpus will hold: settings, what is in the files, how we prepare, the base.

    Files may move. Settings at their default do not count, so that a new setting makes no corpus out of date.
    """
    decides = config.model_dump(include=CORPUS, exclude_defaults=True)
    if config.pointers.guidance:
        decides["pointers"]["guidance"] = True  # a corpus has links or none; their weight is training's
    tagger = Path(config.pointers.tagger or "")
    pipeline = sorted(path for path in tagger.rglob("*") if path.is_file()) if config.pointers.tagger else []
    decisive = [decides, pipeline, PREPARES_AS, *([] if base is None else [base.fingerprint])]
    text = json.dumps(decisive, default=digests)  # JSON has no paths: their digests
    return sha256(text.encode()).hexdigest()


def _blocks(name: str, split: RawSplit, folder: Path) -> Iterator[Block]:
    for number, lines in enumerate(split.blocks()):
        yield Block(name, folder / f"{name}-block-{number:06d}", lines)


def _aligned(config: Config, blocks: list[Path]) -> tuple[Dictionary | None, dict[Path, Integers]]:
    """What a word aligner finds in the training text: a dictionary, and the links of each block, if they are wanted.

    A dictionary may also be the user's own file.
    """
    induces, links = config.pointers.dictionary == "induced", config.pointers.guidance > 0
    dictionary = None
    if config.pointers.dictionary is not None and not induces:
        dictionary = Tokenization(config).read_dictionary(config.pointers.dictionary)
    if not induces and not links:
        return dictionary, {}
    target_words = dict.fromkeys(blocks, 0)

    def pairs() -> Iterator[tuple[list[str], list[str]]]:
        for path in blocks:
            for source, target in unprotected_words(path):
                target_words[path] += len(target)
                yield source, target

    estimates = estimate(pairs())
    if induces:
        dictionary = associated(estimates)
    ends = pairwise(accumulate(target_words.values(), initial=0))
    linked = {path: estimates.linked[slice(*ends_of_block)] for path, ends_of_block in zip(blocks, ends, strict=True)}
    return dictionary if dictionary else None, linked if links else {}  # in a tiny text nothing is certain


def induce_dictionary(files: Parallel, text: Text, languages: tuple[str, str]) -> Dictionary:
    """A dictionary straight from two files."""
    open_splits(Data(train=files, dev=files))
    source, target = (make_tokenizer(text, language) for language in languages)
    lines = zip(read_text(files.source), read_text(files.target), strict=True)
    return induce((source.words(line), target.words(translation)) for (_, line), (_, translation) in lines)


@contextmanager
def _writer(path: Path, schema: pa.Schema) -> Iterator[Callable[[pa.RecordBatch], None]]:
    """with _writer(path) as write: write(batch) …: batches gathered into row groups of one size."""
    waiting: list[pa.RecordBatch] = []
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, schema) as writer:

        def write(batch: pa.RecordBatch) -> None:
            waiting.append(batch)
            if sum(batch.num_rows for batch in waiting) >= ROW_GROUP:
                flush()

        def flush() -> None:
            if waiting:
                writer.write_batch(pa.concat_batches(waiting))
                waiting.clear()

        yield write
        flush()
