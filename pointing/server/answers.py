"""Outputs → the JSON of an answer. Of a large one this takes seconds, which other requests do not have to wait for.

So it is made in a thread, and in parts: Python's encoder lets no other thread go on before it is through with its part.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from fastapi.responses import Response
from starlette.concurrency import run_in_threadpool

from pointing.generation.output import Output

DEPTH = 4  # the whole, its lists of outputs, an output, and the list of its alternatives


async def json_answer(make: Callable[[], Any]) -> Response:
    """The answer with what `make` returns."""
    return Response(await run_in_threadpool(lambda: encoded(make())), media_type="application/json")


def encoded(value: Any) -> bytes:
    """JSON as UTF-8."""
    return "".join(_parts(value, DEPTH)).encode()


def _parts(value: Any, depth: int) -> list[str]:
    """The JSON of a value in parts; objects and lists of the first levels are taken apart."""
    if depth and isinstance(value, dict) and value:
        parts = [part for name, each in value.items() for part in (f",{_dumped(name)}:", *_parts(each, depth - 1))]
        return ["{", parts[0][1:], *parts[1:], "}"]
    if depth and isinstance(value, list) and value:
        parts = [part for each in value for part in (",", *_parts(each, depth - 1))]
        return ["[", *parts[1:], "]"]
    return [_dumped(value)]


def _dumped(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def described(output: Output) -> dict[str, Any]:
    """What `generate --json` prints, with the source's tokens, and with the details of words that were asked for."""
    line = output.source
    spans = zip(line.starts.tolist(), line.ends.tolist(), strict=True)
    tokens = [
        {"text": line.text[start:end], "span": [start, end], "protected": line.is_span(position)}
        for position, (start, end) in enumerate(spans)
    ]
    values = {**_detailed(output), "source": {"text": line.text, "tokens": tokens}}
    return values if output.warning is None else {**values, "warning": output.warning}


def _detailed(output: Output) -> dict[str, Any]:
    values = output.json()
    for each, described in zip((output, *output.alternatives), (values, *values.get("alternatives", ())), strict=True):
        for token, word in zip(each.tokens, described["tokens"], strict=True):
            if token.location is not None:
                word["location"] = [round(weight, 4) for weight in token.location.tolist()]
            if token.choices:
                word["choices"] = [choice.json() for choice in token.choices]
    return values
