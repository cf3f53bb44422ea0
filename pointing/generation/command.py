"""`pointing generate`: from files or a pipe to lines, JSON, colours or a page, by one process or several."""

from __future__ import annotations

import io
import json
import os
import stat
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from itertools import chain
from pathlib import Path
from typing import Literal

import torch

from pointing.config import Search
from pointing.errors import Misuse
from pointing.generation.confidence import confidence_for
from pointing.generation.generator import WINDOW, Generator
from pointing.generation.glossary import Mode
from pointing.generation.html_page import page
from pointing.generation.output import Output, show
from pointing.model.run import load_run, own_files
from pointing.system.binary_files import check_is_text, check_standard_input
from pointing.system.files import check_folder, keep_apart, read_as_they_come, read_lines, whole_file
from pointing.system.progress import say
from pointing.system.terminal import visible
from pointing.system.world import processes
from pointing.text import entities

Kind = Literal["text", "tokenized", "json", "show"]
STDIN = Path("-")


def load_generator(folder: str | Path, device: str = "auto", dictionary: str | Path | None = None) -> Generator:
    """The best model of a run, ready to generate; with a dictionary, what it copies is written as that translates."""
    with processes(device) as here:
        return _load(folder, here.device, dictionary)


def _load(folder: str | Path, device: torch.device, dictionary: str | Path | None) -> Generator:
    run = load_run(folder)
    if dictionary is not None:
        run = run.with_dictionary(dictionary)
    run.model.to(device)
    return Generator(run, confidence_for(folder, run.about))


def print_outputs(
    run: Path,
    files: list[Path],
    settings: Search,
    kind: Kind,
    *,
    html: Path | None = None,
    tags: Path | None = None,
    dictionary: Path | None = None,
    glossary: Path | None = None,
    keep: Path | None = None,
    glossary_mode: Mode = "guaranteed",
    min_confidence: float | None = None,
    device: str = "auto",
    threads: int | None = None,
) -> None:
    """Everything on standard output as it comes; under torchrun, by the first process."""
    if threads is not None:
        torch.set_num_threads(threads)
    _check(files, html)
    keep_apart([*files, tags, dictionary, glossary, keep, *own_files(run)], [html])
    with processes(device) as here:
        generator = _load(run, here.device, dictionary)
        lines = chain.from_iterable(map(_lines, files or [STDIN]))
        if tags is not None and not generator.read.takes_tags:
            raise Misuse("tags are for runs that point at entities, which this one does not: leave out --tags", tags)
        tagged = None if tags is None else entities.read_tags(tags)
        typed = (not files or STDIN in files) and sys.stdin.isatty()  # somebody waits for the answer to each line
        window, on_all = 1 if typed else WINDOW, here.world_size > 1
        terms = None if glossary is None and keep is None else generator.glossary(glossary, keep, glossary_mode)
        outputs = generator.stream(
            lines,
            settings,
            locations=html is not None,
            tags=tagged,
            glossary=terms,
            min_confidence=min_confidence,
            window=window,
            on_all=on_all,
        )
        if html is None or not here.first:  # only one process may write the page
            _print(outputs, kind, settings)
        else:
            with whole_file(html) as part, part.open("w", encoding="utf-8") as file:
                file.writelines(page(_printed(outputs, kind, settings), str(run)))


def _check(files: list[Path], html: Path | None) -> None:
    """What would go wrong later is said before any work. A pipe is as good as a file."""
    for file in files:
        if file != STDIN and not file.exists():
            raise Misuse("there is no such file", file)
        if file.is_dir():
            raise Misuse("this is a folder, not a file of lines", file)
        if file != STDIN:
            check_is_text(file)
    if sys.stdin is None and (not files or STDIN in files):
        raise Misuse("there is nothing to read: standard input is closed; give a file")
    if not files or STDIN in files:
        check_standard_input()
    if sys.stdout is None:
        raise Misuse("there is nowhere to write: standard output is closed")
    if html is not None and html.is_dir():
        raise Misuse("this is a folder: give a file for the page", html)
    if html is not None:
        check_folder(html)
    _check_standard_output(files)
    if isinstance(sys.stdout, io.TextIOWrapper):  # UTF-8 in, UTF-8 out, whatever the locale
        sys.stdout.reconfigure(encoding="utf-8")


def _check_standard_output(files: list[Path]) -> None:
    """Refuses `>> file` for a file that is read: there would be no end."""
    try:
        out = os.fstat(sys.stdout.fileno())
    except (OSError, ValueError):  # no file at all: a test's, or a notebook's
        return
    for file in files:
        if stat.S_ISREG(out.st_mode) and file.exists() and os.path.samestat(out, file.stat()):
            raise Misuse("the output goes into this file, which is read: give it another one", file)


def _lines(file: Path) -> Iterator[bytes]:
    """The lines of a file; of standard input, or a pipe with a name, as they come."""
    if file != STDIN and not file.is_fifo():
        yield from read_lines(file)
        return
    with nullcontext(sys.stdin.buffer) if file == STDIN else file.open("rb") as lines:
        yield from read_as_they_come(lines, "standard input" if file == STDIN else file)


def _print(outputs: Iterable[Output], kind: Kind, settings: Search) -> None:
    for _ in _printed(outputs, kind, settings):
        pass


def _printed(outputs: Iterable[Output], kind: Kind, settings: Search) -> Iterator[Output]:
    """The outputs again, each printed on its way; what went wrong with a line is said on stderr."""
    from rich.console import Console

    console = Console(highlight=False, soft_wrap=True)
    safe: Callable[[str], str] = visible if sys.stdout.isatty() else str  # texts must not command a terminal
    kept = 0
    for output in outputs:
        kept += output.fallback
        if output.warning is not None:
            say(f"line {output.line:,}: {output.warning}")
        if kind == "show":
            for each in [output, *output.alternatives]:
                console.print(show(each))
        elif kind == "json":
            print(safe(json.dumps(output.json(), ensure_ascii=False)))
        else:
            for each in [output, *output.alternatives]:
                text = each.tokenized if kind == "tokenized" else each.text
                print(safe(text if settings.nbest == 1 else f"{each.line} ||| {text} ||| {each.score:.4f}"))
        sys.stdout.flush()
        yield output
    if kept:
        say(f"of {kept:,} lines the source was kept: the confidence of what the model wrote was too low")
