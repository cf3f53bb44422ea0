"""What systems are tested on: lines that the user gives, or the test part of the data that a run was trained on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, get_args

from pointing.config import Config, Data, Parallel, Table
from pointing.corpus.sources import HELD_OUT_FILES, read_split
from pointing.errors import Misuse
from pointing.system.files import read_lines, read_text
from pointing.text.entities import Tagged, read_tags

FileOrLines = str | Path | Sequence[str]
Part = Literal["dev", "test"]
PARTS: tuple[Part, ...] = get_args(Part)
GIVE_FILES = "give --source and --reference"


@dataclass(frozen=True)
class EvaluationSet:
    """Line n of the source, of each reference and of their tags is example n."""

    source: Sequence[str | bytes] | None  # None: outputs are only compared with references
    references: Sequence[Sequence[str]]
    source_tags: Sequence[Tagged] | None
    reference_tags: Sequence[Tagged] | None  # of the only reference, or of all
    source_name: str | None  # the file; None: lines were given
    reference_names: Sequence[str | None]
    description: str | None = None  # which part of which run's data this is, and from which file; None: it is none
    notes: tuple[str, ...] = ()  # what the reader of the scores should know about it

    @classmethod
    def read(
        cls,
        source: FileOrLines | None,
        references: Sequence[FileOrLines],
        source_tags: Path | None = None,
        reference_tags: Path | None = None,
    ) -> EvaluationSet:
        """Texts are read from files or given as lines; tags are read from files."""
        if not references:
            raise Misuse("there is nothing to score against: give at least one reference")
        lines = list(read_lines(source)) if isinstance(source, str | Path) else source
        texts = [read_texts(reference) for reference in references]
        tags, target_tags = (_read_tags(path, len(texts[0])) for path in (source_tags, reference_tags))
        source_name, *names = (str(text) if isinstance(text, str | Path) else None for text in (source, *references))
        return cls(lines, texts, tags, target_tags, source_name, names)

    @property
    def source_texts(self) -> list[str]:
        lines = self.source or ()
        return [line if isinstance(line, str) else line.decode("utf-8", "replace") for line in lines]


def read_texts(lines: FileOrLines) -> list[str]:
    return [text for _, text in read_text(lines)] if isinstance(lines, str | Path) else list(lines)


def _read_tags(path: Path | None, lines: int) -> list[Tagged] | None:
    tags = None if path is None else list(read_tags(path))
    if tags is not None and len(tags) != lines:
        raise Misuse(f"tags of {len(tags):,} lines, but there are {lines:,} examples", path)
    return tags


def parse_part(name: str) -> Part:
    for part in PARTS:
        if part == name:
            return part
    raise Misuse(f"--split {name}: there are {' and '.join(PARTS)}")


def own_part(runs: Mapping[Path, Config], part: Part | None = None) -> EvaluationSet:
    """The test part of the data of some runs, which must be the same for all; their dev part if one has no test part.

    The runs are given by their folders, with the settings of `load_run`, in which paths lead to files from here.
    """
    if not runs:
        raise Misuse("files of outputs are compared with references: give --reference")
    without_test = [folder for folder, config in runs.items() if not _has(config.data, "test")]
    chosen = part or ("dev" if without_test else "test")
    for folder, config in runs.items():
        if not _has(config.data, chosen):
            raise Misuse(f"the data of this run have no {chosen} part: {GIVE_FILES}", folder)
    sets = {folder: _part_of_run(folder, config, chosen) for folder, config in runs.items()}
    (first, test), *others = sets.items()
    for folder, other in others:
        if (other.source_texts, other.references) != (test.source_texts, test.references):
            raise Misuse(f"{first} and {folder} have different {chosen} parts: {GIVE_FILES}, the same for all")
    test = next((each for each in sets.values() if each.source_tags is not None), test)
    if without_test and part is None:
        reason = "its weights were chosen by this part, so other text may score lower"
        return replace(test, notes=(f"{without_test[0]} has no test part, so this is its dev part: {reason}",))
    return test


def _has(data: Data, part: Part) -> bool:
    return part in data.given() or part in data.split_off()


def _part_of_run(folder: Path, config: Config, part: Part) -> EvaluationSet:
    """The pairs of a part: from its own files, or as they were split off when the corpus was prepared."""
    data = config.data
    with_tags = config.pointers.uses_entities and config.pointers.tagger is None
    files = data.given().get(part)
    source, target = (folder / name for name in HELD_OUT_FILES[part])
    if files is None and not with_tags and source.exists() and target.exists():
        test = EvaluationSet.read(source, [target])
    else:
        _check_files(folder, data, part, with_tags)
        if isinstance(files, Parallel):
            tags = (files.source_tags, files.target_tags) if with_tags else (None, None)
            test = EvaluationSet.read(files.source, [files.target], *tags)
        else:
            texts = read_split(data, part, with_tags)
            assert texts is not None
            test = EvaluationSet.read(texts.source, [texts.target])
            if texts.tags is not None:
                source_tags, target_tags = zip(*texts.tags, strict=True)
                test = replace(test, source_tags=source_tags, reference_tags=target_tags)
    origin = ", split off from " if files is None else ": "
    names = ", ".join(map(str, paths(files or data.train)))
    return replace(test, description=f"the {part} part of {folder}{origin}{names}")


def _check_files(folder: Path, data: Data, part: Part, with_tags: bool) -> None:
    """Says which files of a part are missing, and what to do then."""
    needed = paths(data.given().get(part, data.train), with_tags)
    if missing := [str(path) for path in needed if not path.exists()]:
        listed = f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} not there"
        places = f"looked for in {Path.cwd()} and in the folders above the run"
        advice = f"start where the run was trained, or {GIVE_FILES}"
        raise Misuse(f"the {part} part cannot be read: {listed} ({places}); {advice}", folder)


def paths(files: Parallel | Table, with_tags: bool = False) -> list[Path]:
    """The files of a part of the data."""
    if isinstance(files, Table):
        return list(files.files)
    tags = (files.source_tags, files.target_tags) if with_tags else ()
    return [path for path in (files.source, files.target, *tags) if path is not None]
