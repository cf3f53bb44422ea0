"""The OpenAPI description as a page: no script, and nothing from another host, as the usual viewers would have."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from html import escape
from shlex import quote
from typing import Any


def docs_page(openapi: Mapping[str, Any]) -> str:
    """Every path with its parameters, an example to type, and its answers."""
    return "".join(_pieces(openapi))


def _pieces(openapi: Mapping[str, Any]) -> Iterator[str]:
    title = escape(f"{openapi['info']['title']} {openapi['info']['version']}")
    yield (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<title>{title}: the API</title><link rel="icon" href="data:,">'
        '<link rel="stylesheet" href="/page/page.css"></head>'
        f'<body class="docs"><main><h1>{title}: the API</h1><p>{escape(openapi["info"]["description"])} '
        'The same for programs: <a href="/openapi.json">openapi.json</a>. <a href="/">The page</a>.</p>'
    )
    for path, methods in openapi["paths"].items():
        for method, operation in methods.items():
            yield f"<section><h2><code>{method.upper()} {escape(path)}</code></h2>"
            yield f"<p>{escape(operation.get('description', operation.get('summary', '')))}</p>"
            yield from _body(openapi, operation, path)
            yield "<dl>" + "".join(_answer(*answer) for answer in operation["responses"].items()) + "</dl></section>"
    yield "</main></body></html>"


def _answer(status: str, answer: Mapping[str, Any]) -> str:
    return f"<dt><code>{escape(status)}</code></dt><dd>{escape(answer.get('description', ''))}</dd>"


def _body(openapi: Mapping[str, Any], operation: Mapping[str, Any], path: str) -> Iterator[str]:
    content = operation.get("requestBody", {}).get("content", {})
    for kind, described in list(content.items())[:1]:
        schema = described["schema"]
        if "$ref" in schema:
            schema = openapi["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
        required, fields = schema.get("required", []), schema["properties"]
        yield f"<p>Sent as {escape(', '.join(content))}:</p><table>"
        yield "<thead><tr><th>field</th><th>kind</th><th>needed</th><th>what</th></tr></thead><tbody>"
        for name, field in fields.items():
            default = "required" if name in required else f"default {json.dumps(field.get('default'))}"
            cells = [
                f"<code>{escape(name)}</code>",
                *map(escape, (_kind(field), default, field.get("description", ""))),
            ]
            yield f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"
        yield "</tbody></table>"
        if kind == "application/json":
            example = {name: fields[name].get("examples", ["…"])[0] for name in required}
            body = escape(quote(json.dumps(example)))
            yield f"<pre>curl -H 'Content-Type: application/json' -d {body} ADDRESS{path}</pre>"


def _kind(schema: Mapping[str, Any]) -> str:
    """What a value may be, in words."""
    if "anyOf" in schema:
        return " or ".join(_kind(each) for each in schema["anyOf"])
    if "enum" in schema or "const" in schema:
        return ", ".join(map(str, schema.get("enum", [schema.get("const")])))
    kind = str(schema["type"])
    lowest = schema.get("minimum", schema.get("exclusiveMinimum"))
    highest = schema.get("maximum", schema.get("exclusiveMaximum"))
    if highest is not None:
        return f"{kind}, {lowest:,.10g}–{highest:,.10g}"
    return f"{kind} of {_kind(schema['items'])}" if "items" in schema else kind
