"""`POST /files`: a translator's file in, the same file filled and its review page out."""

from __future__ import annotations

import asyncio
import base64
import json
import re
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError, Future
from concurrent.futures import TimeoutError as Late  # not the builtin one before Python 3.11
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from fastapi import APIRouter, Request
from pydantic import BaseModel, ValidationError
from starlette.concurrency import run_in_threadpool

from pointing.config import Search
from pointing.errors import Failure
from pointing.generation.glossary import Glossary
from pointing.generation.output import Output
from pointing.server.batching import Manner
from pointing.server.forms import MULTIPART, content_kind, read_form
from pointing.server.limits import Refused, busy
from pointing.server.models import Model
from pointing.server.schema import PROBLEMS, terms_of_form
from pointing.server.service import LATE, Service, abandon
from pointing.server.words_of_errors import in_words
from pointing.translation.translate import Options, fill, prepare

NO_FILE = "send the file as multipart/form-data, with the name `file`"
AT_A_TIME = 32  # lines that a file has in the queue, so that others get their turn


@dataclass
class Stream:
    """A generator as `translation.filling` wants it, through the server's queue. It is used in a thread."""

    service: Service
    model: Model
    waiting: Sequence[Future[Output]] = ()  # of the lines that are in the queue now
    has_ended: bool = False

    def stream(
        self, lines: Sequence[str], settings: Search, *, window: int = AT_A_TIME, glossary: Glossary | None = None
    ) -> Iterator[Output]:
        manner = Manner(self.model.generator, settings)
        limits, size = self.service.limits, min(window, AT_A_TIME)
        for first in range(0, len(lines), size):
            part = lines[first : first + size]
            self.waiting = self.service.batcher.submit(part, manner, glossary, limits.file_seconds)
            if self.has_ended:
                self.end()
            try:
                yield from [future.result(limits.file_seconds) for future in self.waiting]
            except (CancelledError, Late):
                raise busy(LATE) from None
            finally:
                abandon(self.waiting)

    def end(self) -> None:
        """Abandons the file: nobody waits for it any more. It is called outside the thread."""
        self.has_ended = True
        abandon(self.waiting)


FORM = {
    "type": "object",
    "properties": {
        "file": {"type": "string", "format": "binary", "description": "PO, POT, XLIFF, CSV, TSV, JSONL or text."},
        "run": {"type": "string"},
        "beam": {"type": "integer", "minimum": 1},
        "glossary": {"type": "string", "description": "A JSON object of terms and how they are written."},
        "keep": {"type": "string", "description": "A JSON list of terms that stay as they are."},
    },
    "required": ["file"],
}
BODY = {"requestBody": {"required": True, "content": {"multipart/form-data": {"schema": FORM}}}}


def router(service: Service) -> APIRouter:
    """The path."""
    routes = APIRouter(tags=["files"])
    Terms = terms_of_form(service.limits)

    @routes.post("/files", openapi_extra=BODY, responses=PROBLEMS)
    async def files(request: Request) -> dict[str, Any]:
        """Fill the untranslated entries of a file. What is there already stays as it is, to the byte."""
        service.keys.check(request)
        if content_kind(request) != MULTIPART:
            raise Refused(400, NO_FILE)
        async with read_form(request, files=1, fields=10) as form:
            file = form.get("file")
            if file is None or isinstance(file, str):
                raise Refused(400, NO_FILE)
            data, name = await file.read(), safe_name(file.filename or "")
            values = {key: str(form[key]) for key in ("run", "beam", "glossary", "keep") if form.get(key)}
        model = service.models.named(values.get("run"))
        beam = _number(values.get("beam", "5"), service.limits.beam)
        terms = _terms(Terms, values)
        glossary = await service.glossary(model, terms.glossary, terms.keep)
        if service.files_at_work.locked():
            raise busy(f"{service.limits.files} files are being translated already", 5)
        work = Stream(service, model)
        async with service.files_at_work:
            filled = run_in_threadpool(_filled, work, name, data, Search(beam=beam), glossary)
            try:
                return await asyncio.wait_for(filled, service.limits.file_seconds)
            except asyncio.TimeoutError:
                raise busy(LATE) from None
            finally:
                work.end()

    return routes


def safe_name(name: str) -> str:
    """A file's name without anything that a shell, a path or a page could take for something else."""
    plain = re.sub(r"[^\w.-]+", "_", name.replace("\\", "/").rpartition("/")[2], flags=re.ASCII)
    return plain[-80:].lstrip(".-") or "file"


def _filled(work: Stream, name: str, data: bytes, search: Search, glossary: Glossary | None) -> dict[str, Any]:
    config = work.model.config
    with TemporaryDirectory() as folder:
        given, out, html = Path(folder) / "in", Path(folder) / "out", Path(folder) / "review.html"
        given.mkdir()
        out.mkdir()
        source = given / name
        source.write_bytes(data)

        def told(text: str) -> str:
            """A text that names files alone, without the server's own folders."""
            return text.replace(f"{given}/", "").replace(f"{out}/", "").replace(f"{folder}/", "")

        try:
            job = prepare([source], config.data.languages, Options(), out=out, html=html)
            (summary,) = fill(job, work, search, config.text.protect_patterns, False, glossary=glossary)
        except Failure as failure:
            raise Refused(400, told(str(failure))) from None
        return {
            "name": summary.output.name,
            "data": base64.b64encode(summary.output.read_bytes()).decode(),
            "summary": {**summary.counts(), "msgfmt": summary.msgfmt, "notes": [told(note) for note in summary.notes]},
            "review": told(html.read_text(encoding="utf-8")),
        }


def _number(text: str, most: int) -> int:
    if not re.fullmatch("[0-9]{1,9}", text) or not 1 <= int(text) <= most:
        raise Refused(400, f"beam: should be a number from 1 to {most}")
    return int(text)


def _terms(schema: type[BaseModel], values: dict[str, str]) -> Any:
    try:
        found = {name: json.loads(values[name]) for name in ("glossary", "keep") if name in values}
        return schema.model_validate(found)
    except ValidationError as error:
        raise Refused(400, in_words(error.errors())) from None
    except (ValueError, RecursionError):
        raise Refused(400, "glossary and keep are JSON: an object, and a list") from None
