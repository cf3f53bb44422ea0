"""How settings are checked: every wrong key is named, with the nearest right one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, ValidationError

from pointing.errors import Misuse, shown


class Settings(BaseModel):
    """Base of all settings: an unknown key is an error, and values cannot change after the check."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


MOST = 10  # problems of a file that are told
LONGEST_KEY = 60  # characters of a part of a key that are repeated

Checked = TypeVar("Checked", bound=BaseModel)


def checked(kind: type[Checked], values: Mapping[str, Any], file: str | Path | None = None) -> Checked:
    """Settings made from `values`; raises a Misuse that names every wrong key and suggests the nearest right one."""
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        problems = [_explain(kind, problem) for problem in error.errors(include_url=False)]
        more = [f"and {len(problems) - MOST:,} more"] if len(problems) > MOST else []
        raise Misuse("; ".join([*problems[:MOST], *more]), file) from None


def _explain(kind: type[BaseModel], problem: Any) -> str:
    key = ".".join(str(part)[:LONGEST_KEY] for part in problem["loc"] if not _is_form(part))
    if problem["type"] == "extra_forbidden":
        near = _nearest(kind, problem["loc"])
        return f"{key}: there is no such setting" + (f"; did you mean {near}?" if near else "")
    message = problem["msg"].removeprefix("Value error, ")
    if problem["type"] != "missing" and not isinstance(problem["input"], Mapping):
        message += f", not {shown(problem['input'])}"
    return f"{key}: {message}" if key else message


def _is_form(part: Any) -> bool:
    """True for a part of a path that says which form a section has: the name of its class, in brackets."""
    return str(part).startswith("(")


def _nearest(kind: type[BaseModel], path: Sequence[Any]) -> str | None:
    """The key of the same section that is spelled most like the last one of `path`, or else a whole key elsewhere."""
    *outer, name = path
    name = str(name)[:LONGEST_KEY]
    kinds = [kind]
    for part in outer:
        if _is_form(part):
            kinds = [each for each in kinds if f"({each.__name__})" == part]
        else:
            kinds = [inner for each in kinds for inner in _sections(each).get(part, ())]
    own = {key: key for each in kinds for key in each.model_fields}
    anywhere = {key.rpartition(".")[2]: key for key in reversed(_whole_keys(kind))}
    longer = [key for key in own if key.startswith(f"{name}_")]  # source_column, if source was written
    if len(longer) == 1:
        return longer[0]
    for keys, cutoff in ((own, 0.7), (anywhere, 0.7), (own, 0.5)):
        if near := get_close_matches(name, keys, n=1, cutoff=cutoff):
            return keys[near[0]]
    return None


def _whole_keys(kind: type[BaseModel]) -> list[str]:
    """All keys, with dots: those of a section after the section's own."""
    keys = []
    for name, inner in _sections(kind).items():
        keys += [name, *(f"{name}.{key}" for section in inner for key in _whole_keys(section))]
    return keys


def _sections(kind: type[BaseModel]) -> dict[str, list[type[BaseModel]]]:
    """The keys of a section; of those that are sections themselves, the forms that they may have."""

    def forms(annotation: Any) -> list[type[BaseModel]]:
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            return [annotation]
        return [form for argument in get_args(annotation) for form in forms(argument)]

    return {name: forms(field.annotation) for name, field in kind.model_fields.items()}
