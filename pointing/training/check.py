"""`pointing check`: reads a run, or a prepared corpus, wholly. What is wrong with any file is said."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pointing.corpus.examples import PREPARED, Corpus
from pointing.corpus.preparation import READ
from pointing.corpus.vectors import load_vectors
from pointing.errors import Misuse
from pointing.generation.confidence import load_confidence
from pointing.model.exported import folder_of
from pointing.model.run import METRICS, MODEL, SETTINGS, STARTED_FROM, STATE, check_is_run, load_run, own_files
from pointing.system.border import MANIFEST, read_manifest
from pointing.system.manifest import problems
from pointing.system.progress import say
from pointing.training.journal import read_journal
from pointing.training.start import read_record
from pointing.training.state import read_whole_state

CHANGE = {MANIFEST, READ, SETTINGS, METRICS}  # files that people, the next `prepare` or every update may change


@dataclass(frozen=True)
class Checked:
    """What was found to be in order."""

    folder: str
    kind: str
    compared: int  # files that are as they were written
    unlisted: list[str]  # files that no manifest lists; they can be read

    def __str__(self) -> str:
        told = f"{self.folder}: a {self.kind} in order; {self.compared} files are as they were written"
        return told + (f"; not in a manifest, but readable: {', '.join(self.unlisted)}" if self.unlisted else "")


def check_folder(folder: Path) -> Checked:
    """Compares all files with the manifest, and uses each of them as training and generation would."""
    told, folder = folder, folder_of(folder)
    is_corpus = (folder / PREPARED).exists()
    if not is_corpus:
        check_is_run(folder)
    found = problems(folder)
    for problem in found:
        say(problem)
    if found:
        raise Misuse(f"{len(found)} of {len(read_manifest(folder))} files are damaged", told)
    if is_corpus:
        _use_corpus(folder)
    else:
        _use_run(folder)
    listed = read_manifest(folder)
    there = folder.iterdir() if is_corpus else own_files(folder)
    unlisted = sorted(path.name for path in there if path.name not in listed.keys() | CHANGE)
    return Checked(str(told), "prepared corpus" if is_corpus else "run", len(listed), unlisted)


def _use_corpus(folder: Path) -> None:
    corpus = Corpus(folder)
    for name in corpus.about["statistics"]:
        corpus.split(name).check()
    for path in folder.glob("*.vectors.npy"):
        load_vectors(path)


def _use_run(folder: Path) -> None:
    if (folder / MODEL).exists() or not (folder / STATE).exists():
        load_run(folder)
    if (folder / STATE).exists():
        read_whole_state(folder)
    if (folder / STARTED_FROM).exists():
        read_record(folder)
    load_confidence(folder)
    read_journal(folder)
