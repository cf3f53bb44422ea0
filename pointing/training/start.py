"""Going on from another run (`--from`): a new run that begins with its vocabularies and its best weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from pointing.config import Config, Model
from pointing.corpus.base import Base
from pointing.corpus.lexicon import Lexicon
from pointing.errors import Misuse
from pointing.model.exported import folder_of
from pointing.model.run import SETTINGS, STARTED_FROM, STATE, Run, load_lexicon, load_run, run_settings
from pointing.system.border import entering, read_object
from pointing.system.files import resolved
from pointing.training.state import dotted_keys
from pointing.training.taken import Taken

SAID = ("data.languages", "text.", "pointers.", "model.")  # settings that weights are learned for


class Places(NamedTuple):
    """Where the parts of a training run are."""

    settings: Path
    corpus: Path
    folder: Path


def places(settings: Path | None, corpus: Path | None, folder: Path | None, start: Path | None, resume: bool) -> Places:
    """What the command was given, with defaults. The settings file may be left out where a run has settings already.

    A run that began with another one has a corpus by its own name, since its vocabularies are of its own.
    """
    check_one_of(start, resume)
    if settings is None:
        if folder is None or (start is None and not resume):
            raise Misuse("give a settings file; only with --from or --resume, and with --out, it may be left out")
        run = start or folder
        run_settings(run)  # says what is wrong with it
        return Places(folder_of(run) / SETTINGS, corpus or _own_corpus(folder), folder)
    folder = folder or Path("runs") / settings.stem
    if start is not None or (resume and (folder / STARTED_FROM).exists()):
        return Places(settings, corpus or _own_corpus(folder), folder)
    return Places(settings, corpus or Path("corpora") / settings.stem, folder)


def check_one_of(start: Path | None, resume: bool) -> None:
    """A run either begins with another one or goes on."""
    if start is not None and resume:
        raise Misuse("--from begins a new run, --resume goes on with one: give one of them")


def vocabularies(start: Path | None, keep_vocabulary: bool) -> Base | None:
    """Those of the run that a new one begins with, if there is one; words are added to them unless they are kept."""
    if start is None:
        if keep_vocabulary:
            raise Misuse("--keep-vocabulary is for --from: without it there is no vocabulary to keep")
        return None
    return Base.of(load_lexicon(start), grow=not keep_vocabulary)


def _own_corpus(folder: Path) -> Path:
    return Path("corpora") / resolved(folder).name


class Start(NamedTuple):
    """The run that a new one begins with."""

    folder: Path
    run: Run
    base: Base  # its vocabularies

    def record(self, config: Config, taken: Taken) -> dict[str, Any]:
        """What the new run writes down of its beginning. It never has to read the other run again."""
        before, now = (dict(dotted_keys(c.model_dump(mode="json"))) for c in (self.run.config, config))
        changed = [key for key in now if key.startswith(SAID) and now[key] != before.get(key)]
        return {
            "run": str(self.folder),
            "run_update": self.run.about.get("update", 0),
            "vocabularies": self.base.fingerprint,
            "keep_vocabulary": not self.base.grow,
            **taken._asdict(),
            "changed": {key: [before.get(key), now[key]] for key in changed},
        }


def read_start(start: Path | None, keep_vocabulary: bool, folder: Path, config: Config) -> Start | None:
    """The run that a new one in `folder` begins with, if there is one. What cannot go well is refused here."""
    base = vocabularies(start, keep_vocabulary)
    if start is None or base is None:
        return None
    if resolved(start) == resolved(folder):
        raise Misuse("a new run needs a folder of its own, not that of --from: choose one with --out", folder)
    base.check(config)
    run = load_run(start)
    _check_widths(run.config.model, config.model, start)
    return Start(start, run, base)


def _check_widths(old: Model, new: Model, start: Path) -> None:
    widths = [("embedding", old.embedding, new.embedding), ("hidden", old.hidden, new.hidden)]
    if old.encoder is not None or new.encoder is not None:  # else it is as wide as hidden
        widths.append(("encoder", old.encoder or old.hidden, new.encoder or new.hidden))
    if differ := [f"model.{key}={before} (it is {now})" for key, before, now in widths if before != now]:
        raise Misuse(f"its weights fit a model of the same widths only: set {', '.join(differ)}", start)


def lines(record: dict[str, Any]) -> list[str]:
    """What a run begins with, for people: the words of its record."""
    told = [f"begins with the weights of {record['run']} at update {record['run_update']:,}: {record['taken']} tensors"]
    (source, new_source), (target, new_target) = record["source_words"], record["target_words"]
    told.append(f"  new words: {new_source:,} of {source:,} source words, {new_target:,} of {target:,} target words")
    if record["fresh"]:
        told.append(f"  not in that run, so with first values: {', '.join(record['fresh'])}")
    if record["unused"]:
        told.append(f"  only in that run, so not used: {', '.join(record['unused'])}")
    if record["changed"]:
        changes = (f"{key} is {now}, was {before}" for key, (before, now) in record["changed"].items())
        told.append(f"  settings that differ: {', '.join(changes)}")
    return told


def resumed_vocabularies(folder: Path) -> Base | None:
    """What the corpus of a run was prepared with, if the run began with another one, which may be gone by now.

    All words that the new text brought are in the run's own vocabularies, so that nothing has to be added to these.
    """
    if not (folder / STARTED_FROM).exists():
        return None
    if not (folder / STATE).exists():
        raise Misuse("this run was stopped before its first checkpoint: begin it again with --from", folder)
    lexicon = Lexicon.load(folder, run_settings(folder))
    return Base.of(lexicon, grow=False)._replace(fingerprint=read_record(folder)["vocabularies"])


def read_record(folder: Path) -> dict[str, Any]:
    """What `Start.record` gave, as the run has kept it."""
    path = folder / STARTED_FROM
    kind = "what a run that began with --from writes"
    record = read_object(path, kind)
    with entering(path, kind):
        if not isinstance(record["vocabularies"], str):
            raise ValueError("vocabularies should be text")
        lines(record)  # has whatever is said of it
    return record
