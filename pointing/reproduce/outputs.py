"""Every row's outputs on a test set, kept in files as `generate --json` prints them; none is generated twice."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from pointing import __version__
from pointing.config import Parallel, Search, checked
from pointing.corpus.lexicon import DICTIONARY
from pointing.evaluation import evaluate as evaluation
from pointing.generation.output import Output
from pointing.generation.reader import LineReader
from pointing.model.run import MODEL, Run
from pointing.reproduce.experiments import Row
from pointing.reproduce.runs import PlannedRun, PlannedRuns
from pointing.system.border import digest, entering, read_text_file
from pointing.system.files import read_lines, write_text
from pointing.text.entities import read_tags

KIND = "outputs of a run, a JSON object a line; remove this file, and they are made anew"


class OutputOrigin(NamedTuple):
    """Where a row's outputs come from."""

    row: Row
    seed: int
    planned: PlannedRun
    dictionary: Path | None  # translates the words that the row copies

    @classmethod
    def of(cls, row: Row, seed: int, planned: PlannedRuns) -> OutputOrigin:
        path = None if row.translated_by is None else planned[row.translated_by, seed].corpus / DICTIONARY
        return cls(row, seed, planned[row.run_key, seed], path if path is not None and path.exists() else None)

    def identity(self) -> list[object]:
        """Everything about a row that decides its outputs."""
        dictionary = [] if self.dictionary is None else [digest(self.dictionary)]
        return [self.row.key, dict(self.row.search), digest(self.planned.folder / MODEL), __version__, *dictionary]


def system_with_outputs(origin: OutputOrigin, run: Run, files: Parallel, folder: Path) -> evaluation.System:
    """A row's system with its outputs, which are read from `folder`, or generated if they are not there."""
    row, seed, planned, dictionary = origin
    run = run if dictionary is None else run.with_dictionary(dictionary)
    system = evaluation.System(row.name, run, checked(Search, row.search))
    source = list(read_lines(files.source))
    entities = planned.config.pointers.uses_entities
    tags = list(read_tags(files.source_tags)) if entities and files.source_tags is not None else None
    made_from = json.dumps([origin.identity(), [digest(path) for path in (files.source, files.source_tags) if path]])
    path = folder / f"{row.key}-{seed}.{sha256(made_from.encode()).hexdigest()[:8]}.jsonl"
    if not path.exists():
        outputs = evaluation.generate(system, source, tags)
        write_text(path, "".join(json.dumps(output.json()) + "\n" for output in outputs))
        return system._replace(outputs=outputs)
    written = read_text_file(path, KIND).splitlines()
    lines = LineReader(run.lexicon)(source, tags)
    with entering(path, KIND):
        outputs = [Output.from_json(json.loads(values), line) for values, line in zip(written, lines, strict=True)]
    return system._replace(outputs=outputs)
