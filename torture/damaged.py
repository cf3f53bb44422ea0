"""Damaged files: mutants of every kind of file that any command reads, each given to a real command.

It is used rightly, or refused with exit code 2 and one line that names it: no traceback, no hang, no more than 2 GB.
A file that a manifest lists is refused whatever has changed in it.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from mutations import PLACES, mutant, put_in_place

from pointing.documents.document import Unit
from pointing.system.border import MANIFEST, read_manifest
from torture.place import DATA_FILES, SCRATCH, contents, copy_into
from torture.trials import Command, Found, Make, Part, Trial, check_said

Check = Callable[["Damaged"], None]


@dataclass
class Damaged:
    """A command that has used a damaged file."""

    folder: Path
    place: Path
    command: Command


@dataclass(frozen=True)
class Use:
    """A command, the files and folders that it needs, and what must be so once it has ended with 0."""

    arguments: str
    needs: tuple[str, ...]
    files: tuple[str, ...]  # that are damaged
    check: Check
    codes: tuple[int, ...] = (0, 2)
    unnamed: tuple[str, ...] = ()  # files that a refusal does not have to name
    streams: tuple[str, ...] = ()  # files in whose place a pipe may be, which is waited for


def a_line_for_each(file: str, used: Damaged) -> None:
    """Every line has an output."""
    lines = (used.folder / file).read_bytes().removesuffix(b"\n").count(b"\n") + bool(
        (used.folder / file).stat().st_size
    )
    outputs = used.command.out().decode("utf-8").count("\n")
    if lines != outputs:
        raise Found(f"{used.command}: {outputs} outputs for {lines} lines")


def is_whole(name: str, used: Damaged) -> None:
    """What was written can be opened again, wholly."""
    from pointing.training.check import check_folder

    check_folder(used.folder / name)


def is_trained_rightly(used: Damaged) -> None:
    is_whole("run", used)
    if any(name.startswith(".") for name in contents(used.folder)):
        raise Found(f"{used.command}: leaves something half-written")


def trained_to_the_same_bits(used: Damaged) -> None:
    """What is not read for the next update cannot change it."""
    import tiny

    is_trained_rightly(used)
    whole = used.place / "resumed"
    if not tiny.same(used.folder / "run", whole):
        raise Found(f"{used.command}: other weights than from whole files")


def is_filled(file: str, used: Damaged) -> None:
    """The file was written whole, and is read again as one with as many entries; its own bytes are as they were."""
    from pointing.documents.columns import Wanted
    from pointing.documents.kinds import Reading, open_document

    how = Reading("fr", Wanted())
    written = used.folder / f"out{Path(file).suffix}"
    before, after = (open_document(path, how).units for path in (used.folder / file, written))
    is_text = written.suffix == ".txt"  # which has its translations in the place of its lines
    if len(before) != len(after) or not (is_text or all(map(_same_sources, before, after))):
        raise Found(f"{used.command}: other entries than before")


def _same_sources(one: Unit, other: Unit) -> bool:
    return one.sources == other.sources


def nothing(used: Damaged) -> None:
    pass


RUN = (
    "config.yaml",
    "model.safetensors",
    "source.vocabulary",
    "target.vocabulary",
    "dictionary.tsv",
    "confidence.json",
)
CORPUS = ("prepared.json", "train.arrow", "dev.arrow", "source.vocabulary", "target.vocabulary", "source.vectors.npy")
GENERATE = "generate run lines.txt --beam 2 --set max_length=6"
TRAIN = "train tiny.yaml --out new --corpus corpus"
RESUME = "train more.yaml --out run --corpus corpus --resume"


def _in(folder: str, *names: str) -> tuple[str, ...]:
    return tuple(f"{folder}/{name}" for name in names)


def uses() -> Iterator[Use]:
    """Every command that reads files, with every kind of file that it reads."""
    texts = partial(a_line_for_each, "lines.txt")
    whole = partial(is_whole, "new")
    run = ("run", "lines.txt")
    yield Use(
        GENERATE,
        run,
        ("lines.txt", *_in("run", *RUN, MANIFEST)),
        texts,
        unnamed=("config.yaml",),
        streams=("lines.txt",),
    )
    pieces = ("source.merges", "target.merges", "target.vocabulary", "model.safetensors", "config.yaml")
    yield Use("generate pieces lines.txt --json", ("pieces", "lines.txt"), _in("pieces", *pieces), texts)
    yield Use("generate run.pointing lines.txt --beam 1", ("run.pointing", "lines.txt"), ("run.pointing",), texts)
    tagged = ("entities", "tagged.txt", "tags.txt", "tags.conll")
    for tags in ("tags.txt", "tags.conll"):
        check = partial(a_line_for_each, "tagged.txt")
        named = ("tagged.txt", tags)  # a refusal may name the other one: they have to have the same words
        yield Use(f"generate entities tagged.txt --tags {tags}", tagged, named, check, unnamed=named, streams=named)
    terms = ("terms.tsv", "keep.txt", "words.tsv")
    options = "--glossary terms.tsv --keep keep.txt --dictionary words.tsv --html page.html"
    yield Use(f"{GENERATE} {options}", (*run, *terms), terms, texts)
    for kind in ("csv", "tsv", "jsonl", "po", "xlf", "txt"):
        file = f"strings.{kind}"
        check = partial(is_filled, file)
        yield Use(f"translate pieces {file} -o out.{kind} --beam 1 --html page.html", ("pieces", file), (file,), check)
    glossary = "translate pieces strings.csv -o out.csv --beam 1 --glossary terms.tsv --keep keep.txt"
    yield Use(glossary, ("pieces", "strings.csv", *terms), ("terms.tsv", "keep.txt"), partial(is_filled, "strings.csv"))
    settings = "prepare tiny.yaml --out new --workers 1"
    needed = ("tiny.yaml", "glove.txt", *DATA_FILES)
    yield Use(settings, needed, ("tiny.yaml", "glove.txt", *DATA_FILES), whole, unnamed=DATA_FILES)
    yield Use(f"{settings} --set pointers.dictionary=words.tsv", (*needed, "words.tsv"), ("words.tsv",), whole)
    for kind in ("csv", "tsv", "jsonl", "po", "xlf"):
        needed, file = (f"from-{kind}.yaml", f"pairs.{kind}"), f"pairs.{kind}"
        yield Use(f"prepare from-{kind}.yaml --out new --workers 1", needed, (file,), whole)
    yield Use(
        TRAIN, ("tiny.yaml", "glove.txt", *DATA_FILES, "corpus"), _in("corpus", *CORPUS, MANIFEST), whole, (0, 1, 2)
    )
    needed = ("more.yaml", "glove.txt", *DATA_FILES, "corpus", "run")
    damaged = _in("run", "training.safetensors", "config.yaml", "source.vocabulary")
    yield Use(RESUME, needed, damaged, is_trained_rightly, (0, 1, 2), ("config.yaml",))
    unread = _in("run", "metrics.jsonl", "model.safetensors", "confidence.json")  # a run goes on without them
    yield Use(RESUME, needed, unread, trained_to_the_same_bits, unnamed=("model.safetensors",))
    start = f"train tiny.yaml --from run --out new --corpus new-corpus {' '.join(SCRATCH)}"
    damaged = _in("run", "model.safetensors", "target.vocabulary", "config.yaml")
    yield Use(start, ("tiny.yaml", *DATA_FILES, "run"), damaged, whole, (0, 1, 2))
    grown = f"train more.yaml --resume --out grown --corpus grown-corpus {' '.join(SCRATCH)}"
    needed = ("more.yaml", *DATA_FILES, "grown", "grown-corpus", "run")
    yield Use(grown, needed, ("grown/started_from.json",), nothing, unnamed=("started_from.json",))
    pair = ("lines.txt", "dev.target", "run")
    yield Use("evaluate dev.target --reference dev.target --raw", ("dev.target",), ("dev.target",), nothing)
    scores = "evaluate lines.txt --reference lines.txt --source lines.txt"
    scores += " --vocabulary run/target.vocabulary --training dev.target"
    yield Use(scores, pair, ("run/target.vocabulary", "dev.target"), nothing)
    learn = "calibrate run --source dev.source --reference dev.target"
    needed, both = ("run", "dev.source", "dev.target"), ("dev.source", "dev.target")
    yield Use(learn, needed, both, partial(is_whole, "run"), unnamed=both)
    yield Use(
        "plot run --out curves.png --measure nll", ("run",), _in("run", "metrics.jsonl", "confidence.json"), nothing
    )
    yield Use("check run", ("run",), _in("run", *RUN, "training.safetensors", "metrics.jsonl", MANIFEST), nothing)
    yield Use("check corpus", ("corpus",), _in("corpus", *CORPUS, MANIFEST), nothing)
    yield Use("export run new.pointing", ("run",), _in("run", *RUN), nothing)
    yield Use("init strings.csv --minutes 1", ("strings.csv",), ("strings.csv",), nothing)
    yield Use("init pairs.jsonl --minutes 1", ("pairs.jsonl",), ("pairs.jsonl",), nothing)
    yield Use("reproduce report results", ("results",), ("results/results.json",), nothing)
    results = _in("results-2", "results.json", "examples.json")
    yield Use("reproduce report results-2 --out .", ("results-2",), results, nothing)


def damaged_files(place: Path, seed: int, number: int) -> list[Make]:
    """`number` mutants, as many of each file as of any other."""
    pairs = [(use, file) for use in uses() for file in use.files]
    return [partial(_mutant, place, *pairs[turn % len(pairs)], f"{seed} {turn}") for turn in range(number)]


def _mutant(place: Path, use: Use, file: str, seed: str, part: Part, folder: Path) -> Trial:
    rng = random.Random(seed)
    copy_into(folder, place, use.needs)
    path = folder / file
    whole = path.read_bytes()
    manifest = path.parent / MANIFEST
    is_listed = path.name in read_manifest(path.parent)
    if is_listed and rng.random() < 0.7:
        manifest.unlink()  # as in folders from before there were manifests: other checks must hold
        is_listed = False
    is_file = rng.random() < 0.9
    damaged = mutant(path, whole, rng) if is_file else b""
    if is_file:
        path.write_bytes(damaged)
    else:
        put_in_place(path, rng.choice([place for place in PLACES if place != "pipe" or file not in use.streams]))
    command = Command(folder, *use.arguments.split())
    code = yield command.ended()
    check_said(command, code, *use.codes)
    part.count("refused" if code else "used")
    said = command.last_line()
    is_named = path.name in said or (path.parent != folder and path.parent.name in said)
    if path.suffix == ".yaml":  # it may ask for a file that is not there, or that does not fit what it says
        is_named |= "the settings file" in said or any(other.name in said for other in folder.iterdir())
    if path.name in use.unnamed:
        pass
    elif code == 2 and not is_named:
        raise Found(f"{command}: the refusal does not name {file}: {said}")
    elif code == 0 and is_listed and is_file and path.read_bytes() == damaged != whole:  # it was not made anew
        raise Found(f"{command}: used {file}, whose manifest says that it is damaged")
    if code == 0 and is_file:
        use.check(Damaged(folder, place, command))
