"""Requests: what may be in them. FastAPI makes the OpenAPI description from these."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, Field, StringConstraints, create_model
from pydantic_core import PydanticCustomError

from pointing.config import Search
from pointing.generation.glossary import Mode
from pointing.server.limits import Limits


class Problem(BaseModel):
    """The body of every error."""

    error: str = Field(description="What is wrong, and what to do.")


PROBLEMS: dict[int | str, dict[str, Any]] = {
    400: {"model": Problem, "description": "The request is not understood, or beyond a limit."},
    401: {"model": Problem, "description": "An API key is needed, or this one is not known."},
    403: {"model": Problem, "description": "Another host or origin, or (LibreTranslate's paths) no such API key."},
    404: {"model": Problem, "description": "There is no such run."},
    408: {"model": Problem, "description": "The request took too long to arrive."},
    413: {"model": Problem, "description": "The body is too large."},
    421: {"model": Problem, "description": "The Host header names another host."},
    422: {"model": Problem, "description": "The parts of the request do not fit together, or the run cannot do this."},
    429: {"model": Problem, "description": "Too many requests of this key; Retry-After says when to try again."},
    503: {"model": Problem, "description": "Too much to do; Retry-After says when to try again."},
}


MEANINGS = {
    "ranking": "Whether a word's probability is that of its best route (joint) or the sum of all (marginal).",
    "normalize": "What a log-probability is divided by: the length (dl4mt), a power of it (gnmt), or nothing.",
    "alpha": "The power, with gnmt.",
    "coverage": "Penalty for source words that got little attention.",
    "min_length": "Words of an output, at least.",
    "max_length": "Words of an output, at most.",
    "max_ratio": "At most this many words for each source word, plus ten.",
    "block_ngrams": "No sequence of so many words twice.",
    "allow_unk": "Whether the unknown word may be written.",
    "unk_replace": "Whether it becomes the source word with the most attention.",
    "large_vocabulary": "So many candidate words in place of the whole shortlist.",
    "glossary_mode": "Whether every term is written for certain, or only made more probable.",
}


def _integer(**bounds: Any) -> Any:
    """Whole numbers. JSON has only one kind of numbers, so 3.0 is 3; true and false are none."""

    def whole(value: Any) -> Any:
        if isinstance(value, bool):
            raise PydanticCustomError("int_type", "Input should be a valid integer")
        return int(value) if isinstance(value, float) and value.is_integer() else value

    return Annotated[int, Field(**bounds), BeforeValidator(whole)]


def generate_request(limits: Limits, runs: list[str]) -> type[BaseModel]:
    """The body of POST /generate: a text or several, and all that `Generator.generate` takes."""
    text = Annotated[str, StringConstraints(max_length=limits.characters)]
    texts = Annotated[list[text], Field(min_length=1, max_length=limits.texts)]
    term = Annotated[str, StringConstraints(min_length=1, max_length=limits.term_characters)]
    fields: dict[str, Any] = {
        "text": (text | texts, Field(description="A line, or several.", examples=["open my.conf with emacs29"])),
        "run": (Literal[tuple(runs)] | None, Field(None, description="Which run; the first by default.")),
        "beam": (_integer(ge=1, le=limits.beam), Field(5, description="Hypotheses; 1 is greedy.")),
        "nbest": (_integer(ge=1, le=limits.beam), Field(1, description="Outputs of each text.")),
        "max_length": (_integer(ge=1, le=limits.length), 200),
        "min_length": (_integer(ge=0, le=limits.length), 0),
        "block_ngrams": (_integer(ge=1, le=limits.length) | None, None),
        "large_vocabulary": (_integer(ge=1, le=1_000_000) | None, None),
        "alpha": (Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)], 0.6),
        "coverage": (Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)], 0.0),
        "max_ratio": (Annotated[float, Field(gt=0, le=100, allow_inf_nan=False)] | None, 3.0),
        **{
            name: (Search.model_fields[name].annotation, Search.model_fields[name].default)
            for name in ("ranking", "normalize", "allow_unk", "unk_replace")
        },
        "glossary": (
            Annotated[dict[term, term], Field(max_length=limits.terms)] | None,
            Field(None, description="Terms and how they are to be written, each exactly once."),
        ),
        "keep": (
            Annotated[list[term], Field(max_length=limits.terms)] | None,
            Field(None, description="Terms that stay as they are."),
        ),
        "glossary_mode": (Mode, "guaranteed"),
        "min_confidence": (
            Annotated[float, Field(ge=0, le=1)] | None,
            Field(None, description="Below it the source text is kept; for calibrated runs."),
        ),
        "locations": (bool, Field(False, description="Each word with the attention over the source (l_t).")),
        "choices": (
            _integer(ge=0, le=limits.choices),
            Field(0, description="Each word with so many of the best words of its step."),
        ),
    }
    for name, meaning in MEANINGS.items():
        kind, default = fields[name]
        fields[name] = kind, Field(default, description=meaning)
    return create_model("GenerateRequest", __config__={"extra": "forbid", "strict": True}, **fields)


SEARCH = tuple(Search.model_fields)  # the fields of a request that say how to search


def translate_request(limits: Limits) -> type[BaseModel]:
    """The parameters of LibreTranslate's POST /translate, however they come."""
    text = Annotated[str, StringConstraints(max_length=limits.characters)]
    texts = Annotated[list[text], Field(max_length=limits.texts)]
    fields: dict[str, Any] = {
        "q": (text | texts, Field(description="A text, or several.", examples=["Hello, world!"])),
        "source": (Annotated[str, StringConstraints(min_length=1, max_length=20)], Field(examples=["en", "auto"])),
        "target": (Annotated[str, StringConstraints(min_length=1, max_length=20)], Field(examples=["fr"])),
        "format": (Literal["text", "html"], "text"),
        "alternatives": (_integer(ge=0, lt=limits.beam), 0),
        "api_key": (Annotated[str, StringConstraints(max_length=500)] | None, None),
    }
    return create_model("TranslateRequest", **fields)


def detect_request(limits: Limits) -> type[BaseModel]:
    """The parameters of LibreTranslate's POST /detect."""
    fields: dict[str, Any] = {
        "q": (Annotated[str, StringConstraints(min_length=1, max_length=limits.characters)], ...),
        "api_key": (Annotated[str, StringConstraints(max_length=500)] | None, None),
    }
    return create_model("DetectRequest", **fields)


def terms_of_form(limits: Limits) -> type[BaseModel]:
    """The terms of POST /files, as JSON inside a form."""
    term = Annotated[str, StringConstraints(max_length=limits.term_characters)]
    return create_model("Terms", glossary=(dict[term, term], {}), keep=(list[term], []))
