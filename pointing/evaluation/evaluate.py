"""Scores of runs, or of files of outputs that other programs wrote, against references.

source → outputs of every system → measures → a report
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from pointing import __version__
from pointing.config import Parallel, Search, Text
from pointing.corpus.lexicon import make_protector, make_tokenizer
from pointing.corpus.sources import open_split
from pointing.corpus.training_words import TRAINING_WORDS, load_counts
from pointing.errors import Misuse
from pointing.evaluation.evaluation_set import EvaluationSet, paths, read_texts
from pointing.evaluation.format_check import format_lines, format_measure
from pointing.evaluation.measures import (
    TrainingWords,
    copy_measures,
    count_training_words,
    count_words_of_split,
    delivered,
    form_name,
    switch_measures,
    text_measures,
)
from pointing.evaluation.report import AS_IT_IS, Report, Scored, compare
from pointing.evaluation.significance import Resampling
from pointing.evaluation.span_metrics import span_measures, term_measure
from pointing.generation.generator import Generator
from pointing.generation.glossary import Glossary, make_terms
from pointing.generation.output import UNKNOWN, Output
from pointing.model.exported import folder_of, is_exported
from pointing.model.run import Run, load_run
from pointing.system.files import resolved
from pointing.system.progress import track
from pointing.text.entities import Tagged
from pointing.text.protected import Protector
from pointing.text.tokenizer import Tokenizer
from pointing.text.vocabulary import Vocabulary

LINES_PER_WINDOW = 512  # lines that are generated between two movements of the progress bar


class System(NamedTuple):
    """A run with its search settings, or outputs that exist already, or both."""

    name: str
    run: Run | None = None
    search: Search = Search()
    outputs: Sequence[Output | str] | None = None  # None: the run generates them
    path: Path | None = None  # the run's folder, or the file of outputs


class Terms(NamedTuple):
    """The files of a user's glossary."""

    glossary: Path | None
    keep: Path | None


class TextForm(NamedTuple):
    """In which form words are compared.

    With a run among the systems, all texts are tokenised and normalised as the first run's text settings say. If that
    has learned forms, it writes text for people: BLEU, chrF, ROUGE and the exact match of tokens then do not normalise.
    Without a run, texts are left as they are and tokenised by the regex tokenizer. Exact match never normalises.
    """

    raw: bool = False  # nothing is normalised, and the words of an output are those of its text as it is delivered
    lowercase: bool = False  # without a run: lower-case everything
    tokenized: bool = False  # without a run: tokens are separated by spaces
    unk: str = UNKNOWN  # how an unknown word is written

    def text_settings(self, systems: Sequence[System]) -> tuple[Text, tuple[str, str]]:
        """The text settings and the languages by which all systems are scored. All runs must agree on them."""
        runs = [(system.name, system.run.config) for system in systems if system.run is not None]
        if runs and (self.lowercase or self.tokenized):
            raise Misuse("--lowercase and --tokenized are for files alone: with a run, its own text settings count")
        if self.raw and self.lowercase:
            raise Misuse("--raw and --lowercase exclude each other")
        if not runs:
            kind = "whitespace" if self.tokenized else "regex"
            settings = {"tokenizer": kind, "lowercase": self.lowercase, "unicode": "keep"}
            return Text.model_validate(settings), ("en", "en")
        first_name, first = runs[0]
        for name, config in runs[1:]:
            for key, value in _deciding(config.text).items():
                if value != (expected := getattr(first.text, key)) and not (config.text.forms and first.text.forms):
                    settings_of_both = f"{first_name} was trained with text.{key} {expected}, {name} with {value}"
                    raise Misuse(f"{settings_of_both}: their words cannot be compared; score their outputs as files")
        return first.text, first.data.languages


def _deciding(text: Text) -> dict[str, Any]:
    """The settings that decide what a word is, and how it is compared."""
    return text.model_dump(exclude={"max_tokens", "subwords"})


def open_systems(paths: Sequence[str | Path], search: Search | None = None) -> list[System]:
    """Runs and files of hypotheses, each named by its folder or file, or by its path if two names are equal."""
    systems: list[System] = []
    names = [resolved(path).name for path in paths]
    for path, name in zip(map(Path, paths), names, strict=True):
        name = name if names.count(name) == 1 else str(path)
        name = name if all(name != system.name for system in systems) else f"{name} ({len(systems) + 1})"
        if path.is_dir() or is_exported(path):
            systems.append(System(name, load_run(path), search or Search(), None, path))
        elif path.exists():
            systems.append(System(name, outputs=read_texts(path), path=path))
        else:
            raise Misuse(f"there is no run in {path}, and no file of outputs with that name")
    return systems


def generate(
    system: System, source: Sequence[str | bytes], tags: Sequence[Tagged] | None = None, terms: Terms | None = None
) -> list[Output]:
    """The outputs of a system's run, one for each line."""
    assert system.run is not None
    if system.run.config.pointers.needs_tags and tags is None:
        raise Misuse(f"{system.name} was trained on tagged entities: the source needs tags too (--source-tags)")
    generator = Generator(system.run)
    glossary = None if terms is None else generator.glossary(*terms)
    outputs = generator.stream(source, system.search, tags=tags, glossary=glossary, window=LINES_PER_WINDOW)
    return list(track(outputs, f"{system.name}: generating", len(source), "lines"))


def evaluate(
    systems: Sequence[System],
    test: EvaluationSet,
    *,
    form: TextForm | None = None,
    vocabulary: Vocabulary | None = None,
    training: Path | None = None,
    protector: Protector | None = None,
    terms: Terms | None = None,
    resampling: Resampling | None = None,
) -> Report:
    """Scores of every system, and the differences of the others from the first one.

    Copy measures need a source and a shortlist. A run has its own; for a system without a run it is `vocabulary`, or
    else the first run's. Recall by frequency needs the target side's `training` text; by default it is the first
    run's, if that file still exists. Protected spans are those that `protector` finds in the source; by default the
    first run's that has some. With `terms`, runs that can point generate with this glossary.
    """
    form = form or TextForm()
    if not systems:
        raise Misuse("there is nothing to score: give a run or a file of hypotheses")
    if test.source is None and (generating := [system.name for system in systems if system.outputs is None]):
        raise Misuse(f"{generating[0]} is a run, which generates from a source: give --source")
    if test.source is None and protector is not None:
        raise Misuse("protected spans are those of the source: give --source")
    _check_counts(systems, test)
    text, languages = form.text_settings(systems)
    source, target = (make_tokenizer(text, language) for language in languages)
    as_it_is = text.model_copy(update={"lowercase": False, "digits": "keep", "unicode": "keep"})
    written = make_tokenizer(as_it_is, languages[0]), make_tokenizer(as_it_is, languages[1])
    runs = [system.run for system in systems if system.run is not None]
    shortlists = [run.lexicon.target for run in runs if run.lexicon.target.merges is None]
    first = runs[0] if runs else None
    notes = list(test.notes)
    training_words = None
    if test.source is not None and (first is not None or vocabulary is not None):
        training_words = _training_words(training, systems, target, notes)
    else:
        notes.append("no copy measures: they take a source, and a run or a vocabulary")
    protector = protector or next((found for run in runs if (found := make_protector(run.config.text))), None)
    scorer = _Scorer(
        test=test,
        raw=form.raw,
        read=(source, target),
        compared=written[1] if form.raw or text.forms else target,
        copied=written if form.raw else (source, target),
        first=first,
        shortlist=vocabulary or next(iter(shortlists), None),
        training=training_words,
        protector=protector,
        formats=None if protector is None else _formats(test, protector, notes),
        terms=terms,
        glossary=None if terms is None else Glossary(make_terms(*terms), source),
        unk=form.unk,
    )
    about = {
        "source": test.source_name,
        "references": list(test.reference_names),
        "examples": len(test.references[0]),
        "data": test.description,
        "form": form_name(scorer.compared) or AS_IT_IS,  # of text
        "copy_form": form_name(scorer.copied[1]) or AS_IT_IS,  # of the words that copy measures compare
        "training": None if training_words is None else str(training_words.path),
        "version": __version__,
    }
    scored = [scorer.score(system, notes) for system in systems]
    return compare(scored, about=about, notes=notes, resampling=resampling)


@dataclass(frozen=True)
class _Scorer:
    """What the scores of all systems have in common."""

    test: EvaluationSet
    raw: bool  # everything is computed from the text that is delivered
    read: tuple[Tokenizer, Tokenizer]  # of source and target: words in the form that the models read
    compared: Tokenizer  # of the target: words in the form in which texts are compared
    copied: tuple[Tokenizer, Tokenizer]  # of source and target: words in the form in which copies are compared
    first: Run | None  # the first run
    shortlist: Vocabulary | None  # of whole words, for systems that have none
    training: TrainingWords | None
    protector: Protector | None  # finds the spans that must come through unchanged
    formats: Mapping[int, list[str]] | None  # the source lines that msgfmt knows as formats, if it is asked
    terms: Terms | None  # the files of the user's glossary
    glossary: Glossary | None  # the same as the texts' tokenizer finds it
    unk: str

    def score(self, system: System, notes: list[str]) -> Scored:
        """All measures of a system, whose outputs are generated if they do not exist yet."""
        about: dict[str, Any] = {"path": None if system.path is None else str(system.path)}
        outputs, run = system.outputs, system.run
        if run is not None:
            about |= {"update": run.about.get("update"), "search": system.search.model_dump()}
        if outputs is None:
            start = time.monotonic()
            terms = self.terms if run is not None and run.model.output.can_point else None
            outputs = generate(system, self.test.source or [], self.test.source_tags, terms)
            about["seconds"] = round(time.monotonic() - start, 3)
        if (
            run is not None
            and self.first is not None
            and _deciding(run.config.text) != _deciding(self.first.config.text)
        ):
            outputs = delivered(outputs)
            notes.append(f"{system.name}: its words are another tokenizer's; its text is scored as that of a file")
        if warnings := [o for o in outputs if not isinstance(o, str) and o.warning]:
            line, count = f"source line {warnings[0].line}: {warnings[0].warning}", len(warnings)
            notes.append(f"{system.name}: {line} ({count:,} such lines)")
        test = self.test  # only models with entities write words that are split as tags are
        if run is None or not run.config.pointers.uses_entities:
            test = replace(test, reference_tags=None)
        texts = delivered(outputs)
        of_text = (texts, replace(test, reference_tags=None)) if self.raw else (outputs, test)
        measures, bins = text_measures(*of_text, self.compared), None
        if test.source is not None and self.protector is not None:
            measures += span_measures(test.source_texts, texts, self.protector)
        if self.formats:
            accepted = format_measure(test.source_texts, texts, self.formats)
            measures += [] if accepted is None else [accepted]
        if test.source is not None and self.glossary is not None:
            measures.append(term_measure(test.source_texts, texts, self.glossary, self.read[0]))
        shortlist = self._shortlist(system, notes)
        if test.source is not None and shortlist is not None:
            own = run or self.first
            dictionary = own.lexicon.dictionary if own is not None and own.config.pointers.translates else None
            measures += copy_measures(
                outputs,
                test,
                self.copied,
                shortlist,
                training=self.training,
                translations=None if dictionary is None else dictionary.translations,
                unk=self.unk,
                read=self.read[1] if self.raw else None,
            )
            switch = None if run is None else switch_measures(run, test)
            if switch is not None:
                measures, bins = measures + switch.measures, switch.bins
                pairs = len(test.source) * len(test.references)
                if switch.pairs < pairs:
                    part = f"the switch is measured on {switch.pairs:,} of {pairs:,} pairs"
                    notes.append(f"{system.name}: {part}; the others are empty, or longer than those of training")
        return Scored(system.name, outputs, measures, bins, run is not None, about)

    def _shortlist(self, system: System, notes: list[str]) -> Vocabulary | None:
        """The words that need not be copied.

        A run with subwords has no shortlist of words: it is scored by that of another system, if there is one.
        """
        own = None if system.run is None else system.run.lexicon.target
        if own is not None and own.merges is None:
            return own
        if self.shortlist is not None:
            return self.shortlist
        if own is not None and self.test.source is not None:
            problem = "words of several pieces count as outside the shortlist"
            notes.append(
                f"{system.name}: {problem}; give one of words (--vocabulary), or put a run with words beside it"
            )
        return own or (self.first and self.first.lexicon.target)


def _check_counts(systems: Sequence[System], test: EvaluationSet) -> None:
    """Source, references and outputs must have the same number of lines, and at least one."""
    counts = [
        (name or f"reference {number}", len(texts))
        for number, (name, texts) in enumerate(zip(test.reference_names, test.references, strict=True), 1)
    ]
    counts += [] if test.source is None else [(test.source_name or "the source", len(test.source))]
    counts += [
        (str(system.path or system.name), len(system.outputs)) for system in systems if system.outputs is not None
    ]
    first, lines = counts[0]
    for name, count in counts:
        if count == 0:
            raise Misuse("this is empty: there is nothing to score", name)
        if count != lines:
            raise Misuse(f"{count:,} lines, but {first} has {lines:,}: line n of both must be one example", name)


def _formats(test: EvaluationSet, protector: Protector, notes: list[str]) -> Mapping[int, list[str]] | None:
    """The source lines that are formats to msgfmt, if formats are protected and msgfmt is there."""
    if test.source is None or not {"printf", "braces"} & set(protector.kinds):
        return None
    formats = format_lines(test.source_texts)
    if formats is None:
        notes.append("no verdict of msgfmt --check-format: msgfmt is not there; it is in the package gettext")
    return formats


def _training_words(
    given: Path | None, systems: Sequence[System], target: Tokenizer, notes: list[str]
) -> TrainingWords | None:
    """Word counts of the target side's training text: of the given file, else those that the first run has kept.

    A run that was made before runs kept them has its training text counted, if that still exists.
    """
    if given is not None:
        return count_training_words(given, target)
    first = next((system for system in systems if system.run is not None), None)
    nothing, advice = "no recall by frequency, none of unseen words", "give the target's training text (--training)"
    if first is None or first.run is None:
        notes.append(f"{nothing}; {advice}")
        return None
    data, pointers = first.run.config.data, first.run.config.pointers
    name = data.train.target if isinstance(data.train, Parallel) else data.train.files[0]
    kept = None if first.path is None else folder_of(first.path) / TRAINING_WORDS
    if kept is not None and kept.exists():
        return TrainingWords(name, load_counts(kept))
    # Models with entities write words that are split as tags are.
    with_tags = pointers.uses_entities and pointers.tagger is None
    nothing = f"{nothing}: {first.name} has no {TRAINING_WORDS}, as exported runs have none, and"
    if missing := [path for path in paths(data.train, with_tags) if not path.exists()]:
        notes.append(f"{nothing} {missing[0]} is not there; {advice}")
        return None
    try:
        split = open_split(data, "train", with_tags)
    except Misuse as error:
        notes.append(f"{nothing} {error}; {advice}")
        return None
    return None if split is None else count_words_of_split(split, target)._replace(path=name)
