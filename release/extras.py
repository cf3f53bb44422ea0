"""Which command needs which extra, and what it has to say where that extra is not installed: one line that names it."""

from __future__ import annotations

from typing import NamedTuple


class Need(NamedTuple):
    """A command that needs an extra. CONFIG and RUN stand for a settings file and for a run."""

    packages: tuple[str, ...]  # that the extra brings, as they are imported
    arguments: tuple[str, ...]


NEEDS = {
    "plots": Need(("matplotlib",), ("plot", "RUN")),
    "moses": Need(("sacremoses",), ("prepare", "CONFIG", "--out", "moses", "--set", "text.tokenizer=moses")),
    "embeddings": Need(("gensim",), ("prepare", "CONFIG", "--out", "vectors", "--set", "embeddings.source=word2vec")),
    "entities": Need(
        ("spacy",),
        (
            *("prepare", "CONFIG", "--out", "entities", "--set", "pointers.policy=entities"),
            *("--set", "pointers.tagger=en_core_web_sm"),
        ),
    ),
    "subwords": Need(("tokenizers",), ("prepare", "CONFIG", "--out", "pieces", "--set", "text.subwords=bpe")),
    "huggingface": Need(("datasets",), ("data", "huggingface", "owner/name", "en", "fr", "--out", "downloaded")),
    "hub": Need(("huggingface_hub",), ("export", "RUN", "owner/name", "--hub")),
    "serve": Need(("fastapi", "uvicorn", "starlette", "prometheus_client"), ("serve", "RUN")),
}
ELSEWHERE = {  # extras that no command needs, and where they are missed
    "transformers": "import pointing.huggingface",
    "tensorboard": "a note of `pointing train`, which goes on",
    "all": "the extras above",
    "dev": "the extras above, and what tests need",
}


def sentence(extra: str) -> str:
    """What the line has to end with."""
    return f"which is not installed: pip install 'pointing[{extra}]'"


def is_named(error: str, extra: str) -> bool:
    """Is standard error one line that names the extra?"""
    lines = error.splitlines()
    return len(lines) == 1 and lines[0].startswith("pointing: ") and lines[0].endswith(sentence(extra))
