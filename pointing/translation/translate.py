"""Files in, the same files out with their untranslated entries filled, each whole or not at all."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from pointing.config import Search
from pointing.documents import msgfmt
from pointing.documents.columns import Wanted
from pointing.documents.document import Document, Fill, Unit
from pointing.documents.kinds import Reading, check_kind, open_document
from pointing.documents.po import Po
from pointing.errors import Failure, Misuse
from pointing.generation.command import load_generator
from pointing.generation.glossary import Mode
from pointing.model.run import own_files, run_settings
from pointing.system.border import read_bytes
from pointing.system.files import keep_apart, resolved, whole_file
from pointing.system.progress import say
from pointing.text.protected import PRESETS, Protector
from pointing.translation.filling import Filler, Result, Translates, provenance
from pointing.translation.names import check_writable, output_paths
from pointing.translation.review_page import review_page
from pointing.translation.summary import Summary


@dataclass(frozen=True)
class Options:
    """What is filled, and how it is marked."""

    everything: bool = False  # also what is translated already
    fuzzy_too: bool = False  # also what is marked for review
    fuzzy: bool = True  # what is filled is marked for review
    provenance: bool = False  # with a comment about where its words came from
    language: str | None = None  # that is written into the files; None: the run's
    source_column: str | None = None
    target_column: str | None = None
    encoding: str = "utf-8"  # of tables and text
    min_confidence: float | None = None  # what has less stays untranslated

    def wants(self, unit: Unit) -> bool:
        return unit.state == "empty" or self.everything or (self.fuzzy_too and unit.state == "fuzzy")


class Terms(NamedTuple):
    """The user's files of terms: how they are written, and those that stay as they are."""

    glossary: Path | None = None
    keep: Path | None = None
    mode: Mode = "guaranteed"


NO_TERMS = Terms()


@dataclass(frozen=True)
class Job:
    """Documents that were read, where each is written, and what into."""

    documents: list[Document]
    outputs: dict[Path, Path]
    options: Options
    html: Path | None = None


def prepare(
    files: Sequence[Path],
    languages: tuple[str, str],
    options: Options,
    *,
    out: Path | None = None,
    in_place: bool = False,
    html: Path | None = None,
) -> Job:
    """All that can be refused is refused here, before a model is loaded; `languages` are the run's."""
    languages = languages[0], options.language or languages[1]
    for file in files:
        check_kind(file)
        read_bytes(file)
    outputs = output_paths(files, out, in_place, languages)
    if html is not None:
        check_writable(html)
        keep_apart([*files, *outputs.values()], [html])
    wanted = Wanted(options.source_column, options.target_column, languages)
    documents = [open_document(file, Reading(languages[1], wanted, options.encoding)) for file in files]
    for document in documents:
        _check_language(document, languages[1], is_told=options.language is not None)
    return Job(documents, outputs, options, html)


def fill(
    job: Job, generator: Translates, search: Search, patterns: Sequence[str] = (), is_shown: bool = True, **more: Any
) -> list[Summary]:
    """Fills and writes the documents one by one, then the review page.

    What the user's `patterns` match must be kept, too. `is_shown`: with progress on stderr. `more` are further
    arguments of the generator's `stream`.
    """
    search = search.model_copy(update={"nbest": search.beam})  # every hypothesis may be the one that passes
    protect = Protector(PRESETS["software"], patterns)
    filler = Filler(generator, search, protect, job.options.min_confidence, more, is_shown)
    summaries = []
    for document in job.documents:
        results = filler.results(document, job.options.wants, accelerators=document.kind != "text")
        output = job.outputs[document.path]
        if isinstance(document, Po):
            results = without_rejected(document, results, job.options)
        write(document, results, output, job.options)
        verdict = msgfmt.verdict(output) if document.kind in ("PO", "POT") else None
        summaries.append(Summary(document.path, output, document.kind, results, document.notes, verdict))
    if job.html is not None:
        with whole_file(job.html) as part, part.open("w", encoding="utf-8") as file:
            file.writelines(review_page(summaries, job.options.fuzzy))
    return summaries


def _check_language(document: Document, language: str, is_told: bool) -> None:
    """Text in one language must not go into a file of another."""
    if document.language is None or _main(document.language) == _main(language):
        return
    what = f"this file is a translation into {document.language!r}, but"
    if is_told:
        raise Misuse(f"{what} --language says {language!r}", document.path)
    advice = f"give --language {document.language} if it does write that"
    raise Misuse(f"{what} the run writes {language!r}: {advice}", document.path)


def _main(language: str) -> str:
    return language.replace("-", "_").partition("_")[0].lower()


def contents(document: Document, results: Sequence[Result], options: Options) -> bytes:
    """The file with its new translations."""
    fills = {
        result.unit.number: Fill(result.texts, provenance(result) if options.provenance else None)
        for result in results
        if result.status == "filled"
    }
    return document.written(fills, options.fuzzy)


def without_rejected(document: Po, results: list[Result], options: Options) -> list[Result]:
    """The results without translations that msgfmt rejects, if it is there: it knows formats that we do not check."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "new.po"
        data = contents(document, results, options)
        path.write_bytes(data)
        found = msgfmt.complaints(path)
    if not found:
        return results
    new = Po(document.path, data, document.target_language)
    wrong = {new.unit_at(line): complaint for line, complaint in found}
    return [
        result.failed(f"msgfmt: {wrong[result.unit.number]}")
        if result.status == "filled" and result.unit.number in wrong
        else result
        for result in results
    ]


def write(document: Document, results: Sequence[Result], output: Path, options: Options) -> None:
    """Writes the file, whole or not at all; if its original has changed meanwhile, nothing."""
    data = contents(document, results, options)
    target = resolved(output)  # a link stays a link
    with whole_file(target) as part:
        part.write_bytes(data)
        if target.exists():
            part.chmod(stat.S_IMODE(target.stat().st_mode))
        with part.open("rb") as file:
            os.fsync(file.fileno())
        if target == resolved(document.path) and read_bytes(document.path) != document.data:
            raise Failure(f"{document.path}: was changed by somebody while it was translated; it stays as it is now")


def translate(
    run: Path,
    files: Sequence[Path],
    search: Search,
    options: Options,
    *,
    out: Path | None = None,
    in_place: bool = False,
    html: Path | None = None,
    dictionary: Path | None = None,
    terms: Terms = NO_TERMS,
    device: str = "auto",
) -> list[Summary]:
    """`pointing translate`: a run's model fills files."""
    config = run_settings(run)
    also_read = [dictionary, terms.glossary, terms.keep, *own_files(run)]
    job = prepare(files, config.data.languages, options, out=out, in_place=in_place, html=html)
    keep_apart(also_read, [*job.outputs.values(), html])
    for note in (note for document in job.documents for note in document.notes):
        say(note)
    generator = load_generator(run, device, dictionary)
    if options.min_confidence is not None:
        generator.check_confidence(options.min_confidence)
    glossary = generator.glossary(*terms) if terms.glossary or terms.keep else None
    return fill(job, generator, search, config.text.protect_patterns, glossary=glossary)
