"""What every row writes on a test set, kept as `generate --json` prints it: another row costs none of these again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pointing import __version__
from pointing.config import Parallel, checked
from pointing.reproduce.experiments import Row
from pointing.reproduce.runs import Job
from pointing.system.files import digest, read_lines, write_text

if TYPE_CHECKING:
    from pointing.evaluation.evaluate import System
    from pointing.model.run import Run


class Origin(NamedTuple):
    """Where what a row writes comes from."""

    row: Row
    seed: int
    job: Job
    dictionary: Path | None  # which translates what it copies

    @classmethod
    def of(cls, row: Row, seed: int, jobs: Mapping[tuple[str, int], Job]) -> Origin:
        from pointing.corpus.lexicon import DICTIONARY

        by = None if row.translated_by is None else jobs[row.translated_by, seed].corpus / DICTIONARY
        return cls(row, seed, jobs[row.trained, seed], by if by is not None and by.exists() else None)

    def told(self) -> list[object]:
        """Everything about a row that decides what it writes."""
        from pointing.model.run import MODEL

        by = [] if self.dictionary is None else [digest(self.dictionary)]
        return [self.row.key, dict(self.row.search), digest(self.job.folder / MODEL), __version__, *by]


def system(origin: Origin, run: Run, files: Parallel, folder: Path) -> System:
    """A row with what it writes, which is generated if `folder` does not have it."""
    from pointing.config import Search
    from pointing.evaluation.evaluate import System, generate
    from pointing.generation.output import Output
    from pointing.generation.reader import LineReader
    from pointing.text.entities import read_tags

    row, seed, job, dictionary = origin
    run = run if dictionary is None else run.with_dictionary(dictionary)
    one = System(row.name, run, checked(Search, row.search))
    source = list(read_lines(files.source))
    tags = list(read_tags(files.source_tags)) if tagged(job) and files.source_tags is not None else None
    made_from = json.dumps([origin.told(), [digest(path) for path in (files.source, files.source_tags) if path]])
    path = folder / f"{row.key}-{seed}.{sha256(made_from.encode()).hexdigest()[:8]}.jsonl"
    if not path.exists():
        outputs = generate(one, source, tags)
        write_text(path, "".join(json.dumps(output.json()) + "\n" for output in outputs))
        return one._replace(outputs=outputs)
    told = path.read_text(encoding="utf-8").splitlines()
    lines = LineReader(run.lexicon)(source, tags)
    return one._replace(outputs=[Output.from_json(json.loads(t), line) for t, line in zip(told, lines, strict=True)])


def tagged(job: Job) -> bool:
    """Does a run need to be told which words are entities?"""
    return job.config.pointers.policy == "entities"
