"""The settings: typed, validated before any work, every default in one place."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from pointing.errors import Misuse

Positive = Annotated[int, Field(gt=0)]
Probability = Annotated[float, Field(gt=0, lt=1)]


class Settings(BaseModel):
    """What all settings share: an unknown key is an error, and nothing changes after the check."""

    model_config = ConfigDict(extra="forbid", frozen=True)


Checked = TypeVar("Checked", bound=Settings)


def checked(kind: type[Checked], values: Mapping[str, Any], file: str | Path | None = None) -> Checked:
    """The settings, or a Misuse that names every wrong key and suggests the nearest right one."""
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        raise Misuse("; ".join(_explain(kind, problem) for problem in error.errors()), file) from None


def _explain(kind: type[BaseModel], problem: Any) -> str:
    key = ".".join(str(part) for part in problem["loc"])
    if problem["type"] == "extra_forbidden":
        near = get_close_matches(problem["loc"][-1], _keys(kind, problem["loc"][:-1]), n=1, cutoff=0.5)
        return f"{key}: there is no such setting" + (f"; did you mean {near[0]}?" if near else "")
    message = problem["msg"].removeprefix("Value error, ")
    given = (
        "" if isinstance(problem["input"], Mapping) or problem["type"] == "missing" else f", not {problem['input']!r}"
    )
    return f"{key}: {message}{given}" if key else message


def _keys(kind: type[BaseModel], path: tuple[Any, ...]) -> list[str]:
    """The names that are right at some place of nested settings."""
    for name in path:
        annotation = kind.model_fields[name].annotation if name in kind.model_fields else None
        if not (isinstance(annotation, type) and issubclass(annotation, BaseModel)):
            return []
        kind = annotation
    return list(kind.model_fields)


class RarestWord(Settings):
    """One run of the rarest-word task (paper §5.1). The defaults are the paper's, where it gives them."""

    head: Literal["softmax", "summary", "annotations"] = "summary"
    """softmax: over all words. summary: pointer softmax, l_t from the last state alone, as the paper's text has it.
    annotations: pointer softmax, l_t a pointer network over all the states."""
    words: Positive = 600
    rare: Positive = 60  # the rarest so many words are pointed at
    length: Positive = 7
    p: Probability = 0.001  # a word of rank k is drawn with weight (1 - p)^k; the paper does not give p
    training: Positive | None = None  # so many fixed sequences; None: drawn afresh, as in the paper
    min_count: Positive = 5  # words seen less often in a fixed training set are read as unknown (paper §5.2)
    validation: Positive = 5_000
    test: Positive = 50_000
    hidden: Positive = 1000
    batch: Positive = 250
    learning_rate: Annotated[float, Field(gt=0)] = 8e-4
    inverse_temperature: Annotated[float, Field(gt=0)] = 2.0
    updates: Positive = 2_000
    validate_every: Positive = 100
    seed: int = 1

    @model_validator(mode="after")
    def _rare_words_are_some_of_the_words(self) -> RarestWord:
        if self.rare >= self.words:
            raise ValueError(f"rare ({self.rare}) must be below words ({self.words})")
        return self
