"""From the user's files to a settings file: look, propose, prepare, time, write."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Any

import torch

from pointing.config import Config, Table
from pointing.corpus.examples import Corpus
from pointing.corpus.preparation import prepare
from pointing.corpus.statistics import corpus_warnings
from pointing.documents.pairs import is_data
from pointing.errors import Misuse
from pointing.init.findings import Findings, data_settings, look
from pointing.init.proposal import Proposal, propose
from pointing.init.settings_text import settings_text
from pointing.init.timing import seconds_per_update
from pointing.settings_file import check_names, read_config
from pointing.system.files import resolved, write_text
from pointing.system.program import process_count
from pointing.system.progress import say

_IS_TRAINING_PART = re.compile(r"train(ing)?(\W|_|$)", re.IGNORECASE)  # the file's name says nothing of its content
MINUTES = 30.0  # of training, unless the user has more or less


@dataclass(frozen=True)
class Initialized:
    """A settings file, and what it was made from."""

    settings: Path
    findings: Findings
    proposal: Proposal
    corpus: Corpus
    minutes: float  # that training will take

    @property
    def config(self) -> Config:
        return self.proposal.config

    @property
    def left_out(self) -> dict[str, int]:
        """Pairs of all splits that were left out, by reason."""
        skipped = (Counter(counted["skipped"]) for counted in self.corpus.about["statistics"].values())
        return dict(sum(skipped, Counter[str]()))

    def text(self) -> str:
        """What was found and written, for people."""
        findings, statistics = self.findings, self.corpus.about["statistics"]
        train, dev = statistics["train"], statistics["dev"]
        source, target = (code or "not known" for code in findings.guessed_languages)
        lines = [
            f"pairs: {', '.join(f'{pairs:,} {name}' for name, pairs in findings.splits.items())}",
            *(f"left out: {count:,} with {reason}" for reason, count in self.left_out.items()),
            f"languages: {source} → {target}{self._other_way()}",
            f"lengths: {findings.lengths[0]:.1f} → {findings.lengths[1]:.1f} tokens on average, "
            f"99 of 100 pairs within {findings.longest}",
            f"words that the target copies from the source: {findings.copied_share:.1%}",
            f"sources with placeholders, tags, paths and the like: {findings.with_spans:.1%}"
            + (f", {findings.spans_kept:.1%} of them kept whole in the target" if findings.with_spans else ""),
            f"vocabulary: {len(self.corpus.lexicon.source):,} source words, {len(self.corpus.lexicon.target):,} target "
            f"words; {dev['unknown_share']:.1%} of the dev part's words are not in it, "
            f"{dev['reached_by_same_word']:.0%} of those stand in their source",
            f"pointers: {train['pointers_per_100']:.0f} in 100 training pairs, "
            f"{dev['pointers_per_100']:.0f} in 100 dev pairs",
            *(f"warning: {warning}" for warning in corpus_warnings(self.corpus, self.config)),
            f"{self.settings}: {time_in_words(self.minutes)}, {self.config.training.updates:,} updates",
        ]
        return "\n".join(lines)

    def _other_way(self) -> str:
        """How to turn the direction around, where it was guessed and can be meant otherwise."""
        source, target = self.findings.guessed_languages
        if source is None or target is None or self.findings.summarizes:
            return ""
        if source == target:
            return "; the same language on both sides: if that is wrong, give --source-column and --target-column"
        return f" (the other way round: --languages {target} {source})"

    def json(self) -> dict[str, Any]:
        return {
            "settings": str(self.settings),
            "minutes": self.minutes,
            "notes": self.findings.notes,
            "pairs": self.findings.splits,
            "left_out": self.left_out,
            "languages": self.findings.guessed_languages,
            "copied_share": self.findings.copied_share,
            "sources_with_spans": self.findings.with_spans,
            "statistics": self.corpus.about["statistics"],
            "warnings": corpus_warnings(self.corpus, self.config),
        }


def time_in_words(minutes: float) -> str:
    """The time of training on this machine, roundly."""
    cores = torch.get_num_threads()
    amount = f"{minutes:.0f} minutes" if minutes >= 1.5 else "a minute"
    return f"about {amount} of training on {cores} core{'s' if cores > 1 else ''}"


def initialize(
    files: Sequence[Path],
    settings: Path,
    corpora: Path,
    *,
    minutes: float = MINUTES,
    languages: tuple[str, str] | None = None,
    columns: Table | None = None,
) -> Initialized:
    """Writes `settings` for the files. The corpus is prepared below `corpora`, where `pointing train` looks for it."""
    if settings.exists():
        raise Misuse(
            "there is such a file already: train with it, remove it, or give another name with --out", settings
        )
    if not settings.parent.is_dir():
        raise Misuse("there is no such folder to write into", settings.parent)
    for file in files:
        if not file.exists():
            raise Misuse("there is no such file", file)
    check_names(files)
    findings = look(data_settings(files, languages, columns), languages is not None)
    first = propose(findings)
    corpus, _ = prepare(first.config, corpora / settings.stem)
    seconds = seconds_per_update(first.config, corpus)
    proposal, needed = first.for_time(minutes, seconds, corpus.about["statistics"]["train"]["pairs"])
    head = (
        f"Settings for {', '.join(path.name for path in files)}, written by `pointing init`: {time_in_words(needed)}.\n"
        f"Next: pointing train {quote(settings.name)}. What each setting means: docs/configuration.md."
    )
    write_text(settings, settings_text(proposal, head, settings.parent))
    return Initialized(settings, findings, proposal, corpus, needed)


def settings_name(files: Sequence[Path]) -> str:
    """The settings file's name: strings.yaml for `strings.csv`, shop.yaml for `shop/train.en` and `shop/train.fr`."""
    first = files[0].with_suffix("") if files[0].suffix == ".gz" else files[0]
    stem, folder = first.stem, resolved(first).parent.name
    return f"{folder if folder and _IS_TRAINING_PART.match(stem) else stem}.yaml"


def settings_for(file: Path | None, minutes: float | None) -> Path | None:
    """The file itself if it has settings; if it has data, the settings that were written for them, now or before."""
    if file is None or not is_data(file):
        if minutes is not None:
            raise Misuse("--minutes is for data, not for settings: set training.updates there", file)
        return file
    if not file.exists():
        raise Misuse("there is no such file", file)
    settings = Path(settings_name([file]))
    if not settings.exists():
        if process_count() > 1:  # processes of torchrun, which would all write
            raise Misuse("on several processes, write settings first: `pointing init`", file)
        say(initialize([file], settings, Path("corpora"), minutes=MINUTES if minutes is None else minutes).text())
        return settings
    train = read_config(settings).data.train
    if not isinstance(train, Table) or not any(path.exists() and path.samefile(file) for path in train.files):
        raise Misuse(f"these settings are not for {file}: write others with `pointing init --out NAME.yaml`", settings)
    if minutes is not None:
        raise Misuse("the settings for these data are there already: change training.updates, or remove it", settings)
    say(f"settings: {settings}, which was there already")
    return settings
