"""Runs, or files of outputs that other programs wrote, scored against references.

source → outputs of every system → measures → a report
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pointing import __version__
from pointing.config import Search, Text
from pointing.corpus.lexicon import make_tokenizer
from pointing.errors import Misuse
from pointing.evaluation.measures import copy_measures, form, frequencies, switch_measures, text_measures
from pointing.evaluation.report import Report, Scored, compare
from pointing.evaluation.significance import RESAMPLES, SEED, TRIALS
from pointing.generation.generator import Generator
from pointing.generation.output import UNKNOWN, Output
from pointing.model.run import Run, load_run
from pointing.system.files import read_lines, read_text
from pointing.system.progress import progress
from pointing.text.dictionary import Dictionary
from pointing.text.entities import Tagged, read_tags
from pointing.text.tokenizer import Tokenizer
from pointing.text.vocabulary import Vocabulary

WINDOW = 512  # lines that are generated between two movements of the progress bar

Lines = str | Path | Sequence[str]  # a file, or its lines
Tags = Sequence[Tagged]


class System(NamedTuple):
    """What is scored: a run with the way that it searches, or outputs that are there already, or both."""

    name: str
    run: Run | None = None
    search: Search = Search()
    outputs: Sequence[Output | str] | None = None  # None: the run is to generate them
    path: Path | None = None  # where it came from


def open_systems(paths: Sequence[str | Path], search: Search | None = None) -> list[System]:
    """Run folders and files of hypotheses, each by the name of its folder or file, or by its path if two are alike."""
    found: list[System] = []
    names = Counter(Path(path).resolve().name for path in paths)
    for path in map(Path, paths):
        name = path.resolve().name if names[path.resolve().name] == 1 else str(path)
        name = name if all(name != one.name for one in found) else f"{name} ({len(found) + 1})"
        if path.is_dir():
            found.append(System(name, load_run(path), search or Search(), None, path))
        else:
            found.append(System(name, outputs=_read(path), path=path))
    return found


def generate(system: System, source: Sequence[str | bytes], tags: Tags | None = None) -> list[Output]:
    """The outputs of a system's run, one for each line."""
    assert system.run is not None
    if system.run.config.pointers.needs_tags and tags is None:
        raise Misuse(f"{system.name} was trained on tagged entities: the source needs tags too (--source-tags)")
    outputs = []
    with progress(f"{system.name}: generating", len(source), "lines") as bar:
        for output in Generator(system.run).stream(source, system.search, tags=tags, window=WINDOW):
            outputs.append(output)
            bar.advance()
    return outputs


class _Test(NamedTuple):
    """What the systems are tested on, and how their words are compared."""

    source: Sequence[str | bytes] | None
    references: list[list[str]]
    source_tags: Tags | None
    reference_tags: Tags | None
    read: tuple[Tokenizer, Tokenizer]  # of source and target: words as the models read them
    written: Tokenizer  # of the target: words as texts are compared
    first: Run | None
    vocabulary: Vocabulary | None
    words: Vocabulary | None  # the first run's whose words are not cut
    training: Path | None
    frequency: Mapping[str, int] | None
    unk: str


def evaluate(
    systems: Sequence[System],
    source: Lines | None,
    references: Sequence[Lines],
    *,
    raw: bool = False,
    lowercase: bool = False,
    tokenized: bool = False,
    vocabulary: Vocabulary | None = None,
    training: Path | None = None,
    source_tags: Path | None = None,
    reference_tags: Path | None = None,
    unk: str = UNKNOWN,
    resamples: int = RESAMPLES,
    trials: int = TRIALS,
    seed: int = SEED,
) -> Report:
    """Scores of every system; the others are compared with the first one.

    With a run among the systems, words are what its text settings make of a line, and compared in that form; `raw`
    leaves BLEU, chrF, ROUGE and exact match to text as it is. Without a run the text is as it is, or `lowercase`, cut
    by the regex tokenizer, or at spaces if it is `tokenized`.

    Copy measures take a source, and a shortlist: a run's own; for outputs of no run the `vocabulary` given, or the
    first run's. Bands of frequency take the target side's `training` text: by default the first run's, if it is there.
    """
    runs = [(system.name, system.run) for system in systems if system.run is not None]
    if not systems or not references:
        raise Misuse("there is nothing to score: give a run or a file of hypotheses, and at least one reference")
    if runs and (lowercase or tokenized):
        raise Misuse("--lowercase and --tokenized are for files alone: with a run, its own text settings count")
    if raw and lowercase:
        raise Misuse("--raw and --lowercase exclude each other")
    if source is None and any(system.outputs is None for system in systems):
        raise Misuse(f"{runs[0][0]} is a run, which generates from a source: give --source")
    asked: Sequence[str | bytes] | None = list(read_lines(source)) if isinstance(source, str | Path) else source
    meant = [_read(reference) for reference in references]
    _check_counts(systems, (source, asked), list(zip(references, meant, strict=True)))
    tags, meant_tags = (_tags(path, len(meant[0])) for path in (source_tags, reference_tags))
    text, languages = _text(runs, lowercase, tokenized)
    plain = text.model_copy(update={"lowercase": False, "digits": "keep", "unicode": "keep"})
    read = make_tokenizer(text, languages[0]), make_tokenizer(text, languages[1])

    first = runs[0][1] if runs else None
    notes: list[str] = []
    counted = None
    if asked is not None and (first is not None or vocabulary is not None):
        counted = _training(training, first, notes)
    else:
        notes.append("no copy measures: they take a source, and a run or a vocabulary")
    test = _Test(
        asked,
        meant,
        tags,
        meant_tags,
        read,
        make_tokenizer(plain, languages[1]) if raw else read[1],
        first,
        vocabulary,
        next((run.lexicon.target for _, run in runs if run.lexicon.target.merges is None), None),
        counted,
        None if counted is None else frequencies(counted, read[1], _training_tags(counted, first)),
        unk,
    )
    about = {
        "source": _name(source),
        "references": [_name(one) for one in references],
        "examples": len(meant[0]),
        "form": form(test.written) or "as it is",
        "training": None if counted is None else str(counted),
        "version": __version__,
    }
    scored = [_score(system, test, notes) for system in systems]
    return compare(scored, about=about, notes=notes, resamples=resamples, trials=trials, seed=seed)


def _score(system: System, test: _Test, notes: list[str]) -> Scored:
    """One system: what it writes, unless that is known, and all its measures."""
    about: dict[str, Any] = {"path": None if system.path is None else str(system.path)}
    outputs, run = system.outputs, system.run
    if run is not None:
        about |= {"update": run.about.get("update"), "search": system.search.model_dump()}
    if outputs is None:
        start = time.monotonic()
        outputs = generate(system, test.source or [], test.source_tags)
        about["seconds"] = round(time.monotonic() - start, 3)
    warned = [one for one in outputs if not isinstance(one, str) and one.warning]
    if warned:
        notes.append(f"{system.name}: source line {warned[0].line}: {warned[0].warning} ({len(warned):,} such lines)")
    tags = test.reference_tags if run is not None and run.config.pointers.policy == "entities" else None
    measures, bins = text_measures(outputs, test.references, test.written, tags), None
    shortlist = _shortlist(system, test, notes)
    if test.source is not None and shortlist is not None:
        source = [line if isinstance(line, str) else line.decode("utf-8", "replace") for line in test.source]
        dictionary = _dictionary(run or test.first)
        measures += copy_measures(
            outputs,
            source,
            test.references,
            test.read,
            shortlist,
            tags=tags,
            frequency=test.frequency,
            seen_in="" if test.training is None else test.training.name,
            translations=None if dictionary is None else dictionary.translations,
            unk=test.unk,
        )
        switching = None
        if run is not None:
            switching = switch_measures(run, source, test.references, test.source_tags, test.reference_tags)
        if switching is not None:
            measures, bins = measures + switching.measures, switching.bins
            all_pairs = len(source) * len(test.references)
            if switching.pairs < all_pairs:
                what = f"the switch is measured on {switching.pairs:,} of {all_pairs:,} pairs"
                notes.append(f"{system.name}: {what}; the others are empty, or longer than those of training")
    return Scored(system.name, outputs, measures, bins, run is not None, about)


def _shortlist(system: System, test: _Test, notes: list[str]) -> Vocabulary | None:
    """The words that need not be copied: a run's own; else those given, or the first run's.

    A run of subwords has no shortlist of words, so it is measured by another's, if there is one.
    """
    own = None if system.run is None else system.run.lexicon.target
    if own is not None and own.merges is None:
        return own
    if test.vocabulary is not None or test.words is not None:
        return test.vocabulary or test.words
    if own is not None and test.source is not None:
        what = "words of several pieces count as outside the shortlist"
        notes.append(f"{system.name}: {what}; give one of words (--vocabulary), or put a run with words beside it")
    return own or (test.first and test.first.lexicon.target)


def _dictionary(run: Run | None) -> Dictionary | None:
    """What a copied word may have been translated by."""
    return run.lexicon.dictionary if run is not None and run.config.pointers.policy == "dictionary" else None


def _text(runs: Sequence[tuple[str, Run]], lowercase: bool, tokenized: bool) -> tuple[Text, tuple[str, str]]:
    """The text settings and languages that all are scored by."""
    if not runs:
        kind = "whitespace" if tokenized else "regex"
        return Text.model_validate({"tokenizer": kind, "lowercase": lowercase, "unicode": "keep"}), ("en", "en")
    (name, first), *others = runs
    for other_name, other in others:
        for key, value in other.config.text.model_dump(exclude={"max_tokens", "subwords"}).items():
            if value != getattr(first.config.text, key):
                what = (
                    f"{name} was trained with text.{key} {getattr(first.config.text, key)}, {other_name} with {value}"
                )
                raise Misuse(f"{what}: their words cannot be compared; score their outputs as files")
    return first.config.text, first.config.data.languages


def _training(given: Path | None, first: Run | None, notes: list[str]) -> Path | None:
    """The target side's training text: what was given, else the first run's, if it is still there."""
    if given is not None:
        return given
    known = None if first is None else first.config.data.train.target
    if known is not None and known.exists():
        return known
    where = "" if known is None else f": {known} is not there"
    notes.append(f"no bands of frequency{where}; give the target side's training text (--training)")
    return None


def _training_tags(training: Path, first: Run | None) -> Path | None:
    """What cut the training text into words, if the first run was trained on it and with entities."""
    known = None if first is None or first.config.pointers.policy != "entities" else first.config.data.train
    tags = None if known is None or known.target != training else known.target_tags
    return tags if tags is not None and tags.exists() else None


def _read(lines: Lines) -> list[str]:
    return [text for _, text in read_text(lines)] if isinstance(lines, str | Path) else list(lines)


def _name(lines: Lines | None) -> str | None:
    return str(lines) if isinstance(lines, str | Path) else None


def _check_counts(
    systems: Sequence[System],
    source: tuple[Lines | None, Sequence[str | bytes] | None],
    references: Sequence[tuple[Lines, Sequence[str]]],
) -> None:
    """Line n of all must be one example."""
    counted = [(_name(one) or f"reference {number}", len(lines)) for number, (one, lines) in enumerate(references, 1)]
    if source[1] is not None:
        counted.append((_name(source[0]) or "the source", len(source[1])))
    counted += [(str(one.path or one.name), len(one.outputs)) for one in systems if one.outputs is not None]
    first, lines = counted[0]
    for name, count in counted:
        if count == 0:
            raise Misuse("this is empty: there is nothing to score", name)
        if count != lines:
            raise Misuse(f"{count:,} lines, but {first} has {lines:,}: line n of both must be one example", name)


def _tags(path: Path | None, lines: int) -> Tags | None:
    if path is None:
        return None
    tags = list(read_tags(path))
    if len(tags) != lines:
        raise Misuse(f"tags of {len(tags):,} lines, but there are {lines:,} examples", path)
    return tags
