"""LibreTranslate's interface: `POST /translate`, `POST /detect`, `GET /languages`, with its parameters and errors.

Its clients send parameters as JSON, as a form or in the query, so all three are read. What we know beyond a translation
comes in one more key, `provenance`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from fastapi import APIRouter, Request
from fastapi.responses import Response
from pydantic import BaseModel, ValidationError
from starlette.concurrency import run_in_threadpool

from pointing.config import Search
from pointing.generation.output import Output
from pointing.server.answers import described, json_answer
from pointing.server.forms import content_kind, read_form
from pointing.server.html_text import Page, Segment, read_html, split_at_lost_tags, write_html
from pointing.server.limits import Refused
from pointing.server.models import Model
from pointing.server.schema import PROBLEMS, detect_request, translate_request
from pointing.server.service import Service
from pointing.server.words_of_errors import in_words
from pointing.text.languages import language_name

Schema = TypeVar("Schema", bound=BaseModel)
BEAM = 5


def router(service: Service) -> APIRouter:
    """The paths."""
    routes = APIRouter(tags=["LibreTranslate"])
    Translate, Detect = translate_request(service.limits), detect_request(service.limits)

    @routes.post("/translate", openapi_extra=_body(Translate), responses=PROBLEMS, response_model=dict[str, Any])
    async def translate(request: Request) -> Response:
        """Translate a text or several. Parameters come as JSON, as a form, or in the query."""
        values = await _parameters(request)
        service.keys.check(request, _key(values), status=403)
        asked: Any = _checked(Translate, values)
        texts = [asked.q] if isinstance(asked.q, str) else asked.q
        detected = None
        if asked.source == "auto":
            model, confidence = await run_in_threadpool(service.models.for_text, texts, asked.target)
            detected = {"language": model.source, "confidence": confidence}
        else:
            model = service.models.between(asked.source, asked.target)
        answers_of_texts = await _translated(service, model, texts, asked.format == "html", asked.alternatives)

        def answer() -> dict[str, Any]:
            answers = answers_of_texts()
            columns = {name: [answer[name] for answer in answers] for name in ("text", "alternatives", "provenance")}
            found: dict[str, Any] = {"translatedText": columns["text"]}
            if detected is not None:
                found["detectedLanguage"] = [detected] * len(texts)
            if asked.alternatives:
                found["alternatives"] = columns["alternatives"]
            found["provenance"] = columns["provenance"]
            return {name: values[0] for name, values in found.items()} if isinstance(asked.q, str) else found

        return await json_answer(answer)

    @routes.post("/detect", openapi_extra=_body(Detect), responses=PROBLEMS)
    async def detect(request: Request) -> list[dict[str, Any]]:
        """Which of the served languages a text is in, most probable first."""
        values = await _parameters(request)
        service.keys.check(request, _key(values), status=403)
        asked: Any = _checked(Detect, values)
        found = service.models.detect([asked.q])
        return [{"language": code, "confidence": confidence} for code, confidence in found]

    few: dict[int | str, dict[str, Any]] = {status: PROBLEMS[status] for status in (403, 408, 413, 421)}

    @routes.get("/languages", responses=few)
    async def languages() -> list[dict[str, Any]]:
        """The languages that are served, and into which each is translated."""
        models = service.models
        return [
            {
                "code": code,
                "name": language_name(code),
                "targets": [model.target for model in models.served if model.source == code],
            }
            for code in models.codes()
        ]

    @routes.post("/languages", responses=few)
    async def languages_too() -> list[dict[str, Any]]:
        """The same, for clients that send an empty form for it."""
        return await languages()

    return routes


def _body(schema: type[BaseModel]) -> dict[str, Any]:
    described = schema.model_json_schema()
    kinds = "application/json", "application/x-www-form-urlencoded", "multipart/form-data"
    return {"requestBody": {"required": True, "content": {kind: {"schema": described} for kind in kinds}}}


async def _parameters(request: Request) -> dict[str, Any]:
    """Of the query and of the body, which comes second."""
    values: dict[str, Any] = _single(request.query_params.multi_items())
    kind = content_kind(request)
    body = await request.body()
    if kind == "application/json" or (body.lstrip()[:1] == b"{" and "form" not in kind):
        try:
            found = json.loads(body or b"{}")
        except (ValueError, RecursionError):
            raise Refused(400, "Invalid request: the body is not JSON") from None
        if not isinstance(found, dict):
            raise Refused(400, "Invalid request: the body is not a JSON object")
        return values | found
    if "form" in kind:
        async with read_form(request) as form:
            return values | _single(form.multi_items())
    return values


def _single(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Names with their values; a list of those that come several times."""
    values: dict[str, Any] = {}
    for name, value in pairs:
        values[name] = [*_listed(values[name]), value] if name in values else value
    return values


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _key(values: Mapping[str, Any]) -> str | None:
    """The parameter `api_key`; None if it is empty, or if it is no text and so no key."""
    key = values.get("api_key")
    return key if isinstance(key, str) and key else None


def _checked(schema: type[Schema], values: Mapping[str, Any]) -> Schema:
    for name, field in schema.model_fields.items():
        if field.is_required() and values.get(name) in (None, ""):
            if name == "q" and values.get(name) == "":
                continue
            raise Refused(400, f"Invalid request: missing {name} parameter")
    try:
        return schema.model_validate(values)
    except ValidationError as error:
        raise Refused(400, f"Invalid request: {in_words(error.errors())}") from None


async def _translated(
    service: Service, model: Model, texts: Sequence[str], is_html: bool, alternatives: int
) -> Callable[[], list[dict[str, Any]]]:
    """What writes of each text: its translation, the next best ones, and where the words of its parts came from.

    A text is translated line by line, or of HTML paragraph by paragraph; white space around the parts is kept.
    """
    nbest = alternatives + 1
    settings = Search(beam=max(BEAM, nbest), nbest=nbest)
    pages = await run_in_threadpool(_pages, model, texts, is_html, service.limits.waiting)
    wanted = list(dict.fromkeys(segment.core for page in pages for segment in _segments(page)))
    found = await service.outputs(model, wanted, settings) if wanted else []
    outputs = dict(zip(wanted, found, strict=True))

    def written(page: Page, rank: int) -> str:
        def choose(segment: Segment) -> Output | None:
            if not segment.has_words:
                return None
            ranked = [outputs[segment.core], *outputs[segment.core].alternatives]
            return ranked[min(rank, len(ranked) - 1)]

        if is_html:
            return write_html(page, choose)
        return "".join(part if isinstance(part, str) else _line(part, choose(part)) for part in page)

    def answer(page: Page) -> dict[str, Any]:
        first, *others = dict.fromkeys(written(page, rank) for rank in range(nbest))
        origins = [described(outputs[segment.core]) for segment in _segments(page)]
        return {"text": first, "alternatives": others, "provenance": origins}

    return lambda: [answer(page) for page in pages]


def _pages(model: Model, texts: Sequence[str], is_html: bool, most: int) -> list[Page]:
    """Each text as its lines, or as HTML; refused if they have more than `most` parts to translate."""

    def check(pages: Sequence[Page]) -> None:
        if sum(len(_segments(page)) for page in pages) > most:
            raise Refused(400, f"Invalid request: more than {most} lines or paragraphs")

    pages = [read_html(text, model.keeps_tags) if is_html else _lines(text) for text in texts]
    check(pages)
    if is_html and model.keeps_tags:
        pages = [split_at_lost_tags(page, model.generator.read) for page in pages]
        check(pages)
    return pages


def _segments(page: Page) -> list[Segment]:
    """What there is to translate."""
    return [part for part in page if isinstance(part, Segment) and part.has_words]


def _lines(text: str) -> Page:
    """Lines as texts, each with its end."""
    return [Segment(line) for line in text.splitlines(keepends=True)]


def _line(segment: Segment, output: Output | None) -> str:
    core = segment.core
    return segment.text if output is None else segment.text.replace(core, output.text, 1)
