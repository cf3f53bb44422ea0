"""What pydantic found wrong with a request, in a sentence. What the request said is not repeated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

LONGEST_NAME = 40


def in_words(errors: Sequence[Mapping[str, Any]]) -> str:
    """The first few problems, each with the name of the field."""
    told = dict.fromkeys(f"{_place(error['loc'])}: {_sentence(error)}" for error in errors)
    return "; ".join(list(told)[:3])


def _place(names: Sequence[str | int]) -> str:
    """The fields that lead to the problem, without the kinds of values that pydantic tried."""
    known = [str(name) for name in names if name != "body" and not _is_kind(str(name))]
    return ".".join(known)[:LONGEST_NAME] or "body"


def _is_kind(name: str) -> bool:
    return "[" in name or name in ("str", "constrained-str", "int", "float", "bool")


def _sentence(error: Mapping[str, Any]) -> str:
    message = str(error["msg"])
    if error["type"] == "json_invalid":
        return "is not JSON"
    if tuple(error["loc"]) == ("body",):  # no JSON by its Content-Type, or a list
        return "send a JSON object, with Content-Type: application/json"
    if error["type"] == "extra_forbidden":
        return "there is no such parameter"
    return message[:1].lower() + message[1:]
