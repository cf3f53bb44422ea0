"""Every kind of file, damaged: it is used as it is, or refused in a line that names it. Never a traceback or a hang."""

import os
import random
import shutil
import signal
from contextlib import contextmanager
from pathlib import Path
from zlib import crc32

import numpy as np
import pytest
import tiny
from mutations import PLACES, flip, lines_swapped, mutant, put_back, put_in_place, without_a_piece, zeroed

from pointing.config import Search
from pointing.corpus.examples import Corpus
from pointing.corpus.statistics import show_example, statistics_tables
from pointing.corpus.vectors import load_vectors, read_vectors, save_vectors
from pointing.errors import Failure, Misuse
from pointing.generation.command import load_generator
from pointing.generation.confidence import FEATURES, Bin, Confidence, Feature, save_confidence, weights_id
from pointing.generation.glossary import make_terms
from pointing.model.run import read_header, read_tensors, write_tensors
from pointing.settings_file import read_config
from pointing.system.border import MANIFEST, read_manifest
from pointing.text.entities import read_tags
from pointing.text.vocabulary import Vocabulary

MUTANTS = int(os.environ.get("MUTANTS", "12"))  # of each file
SEED = int(os.environ.get("SEED", "0"))
SECONDS = 20  # for the use of a damaged file
FEW = {"training": {"updates": 3, "validate_every": 2}}
DICTIONARY = {"pointers": {"policy": "dictionary", "dictionary": "induced"}}
RUN = (
    "config.yaml",
    "model.safetensors",
    "source.vocabulary",
    "target.vocabulary",
    "dictionary.tsv",
    "confidence.json",
)
RESUMED = ("training.safetensors", "metrics.jsonl", "config.yaml", "model.safetensors", "started_from.json")
CORPUS = ("prepared.json", "train.arrow", "dev.arrow", "source.vocabulary", "target.vocabulary", "source.vectors.npy")


class TooLate(BaseException):
    """Raised by the alarm."""


@contextmanager
def in_time(seconds=SECONDS):
    def stop(number, frame):
        raise TooLate

    old = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)


def confidence(about):
    names = [Feature(name=name, mean=0.0, scale=1.0, weight=0.1) for name in FEATURES]
    numbers = {"intercept": 0.5, "knots": ((0.1, 0.5), (0.5, 0.9)), "review_below": 0.5, "lines": 9, "damaged_lines": 8}
    bins = (Bin(low=0, high=1, lines=9, confidence=0.6, chrf=0.6),)
    return Confidence(features=names, **numbers, error=0.1, bins=bins, signature="chrF2", weights=weights_id(about))


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A corpus with a dictionary and vectors, a run that began with another one's weights, and files of users."""
    folder = tmp_path_factory.mktemp("place")
    tiny.train_in(folder, folder / "first", FEW, DICTIONARY)
    config = read_config(tiny.write(folder, FEW, DICTIONARY))
    tiny.train(config, folder / "corpus", folder / "run", start=folder / "first")
    corpus = folder / "corpus"
    for side, words in zip(
        ("source", "target"), (Corpus(corpus).lexicon.source, Corpus(corpus).lexicon.target), strict=True
    ):
        save_vectors(corpus / f"{side}.vectors.npy", np.full((len(words), 8), 0.5, np.float32))
    frozen = tiny.ROOT / "tests" / "frozen"
    shutil.copytree(frozen / "bpe", folder / "bpe")
    save_confidence(confidence(read_header(folder / "run" / "model.safetensors")), folder / "run")
    (folder / "glove.txt").write_text("".join(f"{word} 0.1 0.2 0.3\n" for word in "abcdef"))
    (folder / "tags.conll").write_text("a O\nb B-PER\n\nc O\n")
    (folder / "terms.tsv").write_text("a b\tc d\n# no\nx\ty\n")
    return folder


def generate(place):
    generator = load_generator(place / "run", "cpu")
    list(generator.stream(["a b name17 c"], Search(beam=2, max_length=5)))


def generate_pieces(place):
    list(load_generator(place / "bpe", "cpu").stream(["a b name17 c"], Search(beam=2, max_length=5)))


def copy_of_anything(source, target):
    if Path(source).is_fifo():
        os.mkfifo(target)
    else:
        shutil.copy2(source, target)


def resume(place):
    """Goes on for one update, in a copy; a damaged record may want another corpus."""
    for name in ("run", "corpus"):
        shutil.rmtree(place / "copy" / name, ignore_errors=True)
        shutil.copytree(place / name, place / "copy" / name, symlinks=True, copy_function=copy_of_anything)
    config = read_config(tiny.write(place, FEW, DICTIONARY, {"training": {"updates": 4}}))
    tiny.train(config, place / "copy" / "corpus", place / "copy" / "run", resume=True)


def use_corpus(place):
    """What `prepare --show` and the beginning of training do."""
    corpus = Corpus(place / "corpus")
    config = read_config(tiny.write(place, FEW, DICTIONARY))
    statistics_tables(corpus, config.training)
    train = corpus.split("train")
    for row in range(0, len(train), 50):
        show_example(corpus, row)
    for name in ("train", "dev"):
        corpus.split(name).check()
    load_vectors(corpus.folder / "source.vectors.npy")


def read_all(place):
    """Files that users give."""
    read_config(place / "tiny.yaml")
    read_vectors(place / "glove.txt", {"a", "b"})
    list(read_tags(place / "tags.conll"))
    make_terms(place / "terms.tsv", place / "terms.tsv")


FILES = [
    *((generate, f"run/{name}") for name in RUN),
    *((generate_pieces, f"bpe/{name}") for name in ("source.merges", "target.vocabulary", "config.yaml")),
    *((resume, f"run/{name}") for name in RESUMED),
    *((use_corpus, f"corpus/{name}") for name in CORPUS),
    *((read_all, name) for name in ("tiny.yaml", "glove.txt", "tags.conll", "terms.tsv")),
]


def outcome(use, place, path):
    """What became of a damaged file: used, or a line. Everything else is an error of ours."""
    said = None
    try:
        with in_time():
            use(place)
    except Failure as failure:
        said = str(failure)
    except TooLate:
        pytest.fail(f"{path}: no end")
    assert said is None or (len(said.splitlines()) == 1 and len(said) < 2000), said
    return said


@pytest.mark.parametrize(("use", "name"), FILES, ids=[name for _, name in FILES])
def test_a_damaged_file_is_used_or_refused_in_a_line(place, name, use):
    path = place / name
    whole, manifest = path.read_bytes(), path.parent / MANIFEST
    listed = manifest.read_bytes() if manifest.exists() else None
    rng = random.Random(crc32(name.encode()) + SEED)
    try:
        manifest.unlink(missing_ok=True)  # as in folders that were made before there were manifests
        for _ in range(MUTANTS):
            damaged = mutant(path, whole, rng)
            path.write_bytes(damaged)
            try:
                outcome(use, place, path)
            except BaseException as error:
                kept = Path(os.environ.get("KEEP", place)) / path.name
                kept.write_bytes(damaged)
                error.add_note(f"the damaged file: {kept}") if hasattr(error, "add_note") else None
                raise
    finally:
        put_back(path, whole)
        if listed is not None:
            manifest.write_bytes(listed)


def test_nothing_but_a_file_is_read_in_a_files_place(place):
    for use, name in FILES:
        path = place / name
        whole = path.read_bytes()
        for kind in PLACES:
            put_in_place(path, kind)
            try:
                refusal = outcome(use, place, path)
            finally:
                put_back(path, whole)
            is_optional = path.name in ("confidence.json", "metrics.jsonl", "dictionary.tsv", "started_from.json")
            is_rewritten = use is resume and path.name == "model.safetensors"  # by a validation that is the best so far
            if kind != "missing" and not (kind == "link to itself" and is_optional) and not is_rewritten:
                assert refusal is not None, f"{name} as a {kind}"
                assert kind == "link to itself" or path.name in refusal or "there is no run" in refusal, refusal


def test_no_changed_bit_of_a_listed_file_is_used(place):
    rng = random.Random(20)
    for use, name in FILES:
        path = place / name
        if path.name not in read_manifest(path.parent) or (use, path.name) == (resume, "model.safetensors"):
            continue  # not listed, or not read
        whole = path.read_bytes()
        for change in (flip, lines_swapped, without_a_piece, zeroed):
            damaged = change(whole, rng)
            if damaged == whole:
                continue
            path.write_bytes(damaged)
            try:
                refusal = outcome(use, place, path)
            finally:
                path.write_bytes(whole)
            assert refusal is not None, f"{name}: {change.__name__}"
            assert path.name in refusal
    for use in (generate, resume, use_corpus):
        use(place)  # nothing is damaged any more


HEADERS = [
    ("done", 10**9, r"training\.safetensors: done|the checkpoint is at batch 1,000,000,000 of an epoch of"),
    ("done", 1e9, "done: Input should be a valid integer, not 1000000000.0"),
    ("update", -1, "update: Input should be greater than or equal to 0"),
    ("best", "low", "best: Input should be a valid number, not 'low'"),
    ("since", [1], "since: Input should be a valid dictionary"),
    ("of_tomorrow", 1, "its state has 'of_tomorrow': a newer version of pointing made it"),
]


@pytest.mark.parametrize(("key", "value", "message"), HEADERS)
def test_a_state_that_cannot_be_is_refused(place, key, value, message):
    path = place / "run" / "training.safetensors"
    manifest = path.parent / MANIFEST
    whole, listed = path.read_bytes(), manifest.read_bytes()
    tensors, about = read_tensors(path)
    try:
        write_tensors(path, tensors, {**about, "state": {**about["state"], key: value}})
        with in_time(), pytest.raises(Misuse, match=message):
            resume(place)
    finally:
        path.write_bytes(whole)
        manifest.write_bytes(listed)


@pytest.mark.parametrize("value", [10**12, -1, "3", 1e9, None])
def test_placeholders_that_cannot_be_are_refused(place, value):
    path = place / "bpe" / "model.safetensors"
    whole = path.read_bytes()
    tensors, about = read_tensors(path)
    try:
        write_tensors(path, tensors, {**about, "placeholders": value})
        with in_time(), pytest.raises(Misuse, match=r"model\.safetensors: placeholders: Input should be"):
            generate_pieces(place)
    finally:
        path.write_bytes(whole)
        (path.parent / MANIFEST).unlink()


def test_counts_of_thousands_of_digits_are_refused(tmp_path):
    for count in ("9" * 5000, "1" * 19, "٣", "-1", "1.5", ""):
        (tmp_path / "x.vocabulary").write_text(f"a\t3\nb\t{count}\n")
        with pytest.raises(Misuse, match=r"x\.vocabulary:2: not a word, a tab and its count"):
            Vocabulary.load(tmp_path / "x.vocabulary")


def test_a_wrong_width_in_the_settings_takes_no_memory(place):
    path = place / "run" / "config.yaml"
    whole = path.read_text()
    try:
        path.write_text(whole.replace("hidden: 10\n", "hidden: 3000000\n"))
        assert path.read_text() != whole
        with in_time(), pytest.raises(Misuse, match=r"are of another model: .* in the file, .* in the model"):
            generate(place)
    finally:
        path.write_text(whole)
