"""pointing: sequence-to-sequence models that copy the words they do not know."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pointing.config import Search
    from pointing.generation.generator import Generator
    from pointing.pointer_softmax import AlwaysPoint, NeverPoint, PointerNetwork, PointerSoftmax, Switch

__version__ = "0.1.0"
__all__ = ["AlwaysPoint", "NeverPoint", "PointerNetwork", "PointerSoftmax", "Search", "Switch", "load"]


def load(run: str | Path, device: str = "auto", dictionary: str | Path | None = None) -> Generator:
    """A trained run, ready to use: `pointing.load("runs/x").generate("a line").text`.

    With a dictionary of word pairs, copied words are written as it translates them.
    """
    from pointing.generation.command import load_generator

    return load_generator(run, device, dictionary)


def __getattr__(name: str) -> Any:
    """The other public names, imported when they are first asked for: torch takes seconds."""
    if name not in __all__:
        raise AttributeError(f"module 'pointing' has no attribute {name!r}")
    return getattr(import_module("pointing.config" if name == "Search" else "pointing.pointer_softmax"), name)
