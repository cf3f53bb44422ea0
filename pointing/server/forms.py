"""Forms as HTTP has them, urlencoded and multipart."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from python_multipart.multipart import parse_options_header
from starlette.datastructures import FormData
from starlette.requests import Request

from pointing.server.limits import Refused

MULTIPART = "multipart/form-data"


def content_kind(request: Request) -> str:
    """The body's media type in small letters, without its parameters."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


@asynccontextmanager
async def read_form(request: Request, *, files: int = 0, fields: int = 1000) -> AsyncIterator[FormData]:
    """The form of a request, with so many files and fields at most; files are closed afterwards."""
    if content_kind(request) == MULTIPART and not _has_end(request, await request.body()):
        raise Refused(400, "the form has no end: its last boundary is missing")
    try:
        form = await request.form(max_files=files, max_fields=fields)
    except UnicodeError:
        raise Refused(400, "the form is in a character set that cannot be read: send UTF-8") from None
    try:
        yield form
    finally:
        await form.close()


def _has_end(request: Request, body: bytes) -> bool:
    """True if the last boundary is there. Starlette does not say if it is not, and leaves its file open."""
    boundary = parse_options_header(request.headers["content-type"])[1].get(b"boundary")
    return not boundary or b"--" + boundary + b"--" in body
