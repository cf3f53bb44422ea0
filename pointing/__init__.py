"""pointing: sequence-to-sequence models that copy the words they do not know."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pointing.config import Search
    from pointing.errors import Misuse
    from pointing.generation.generator import Generator
    from pointing.generation.output import Output, Token
    from pointing.pointer_softmax import (
        AlwaysPoint,
        Annotations,
        NeverPoint,
        NoisyTanh,
        PointerNetwork,
        PointerSoftmax,
        Switch,
        masked_log_softmax,
    )
    from pointing.sharing.export import export, save_pretrained
    from pointing.sharing.hub import from_pretrained, push_to_hub

__version__ = "0.2.0"  # the one place: pyproject.toml reads it here
__all__ = [  # docs/layer.md has a table of them
    "AlwaysPoint",
    "Annotations",
    "Generator",
    "Misuse",
    "NeverPoint",
    "NoisyTanh",
    "Output",
    "PointerNetwork",
    "PointerSoftmax",
    "Search",
    "Switch",
    "Token",
    "export",
    "from_pretrained",
    "load",
    "masked_log_softmax",
    "push_to_hub",
    "save_pretrained",
]
ELSEWHERE = {  # public names that are not of the layer
    "Generator": "pointing.generation.generator",
    "Misuse": "pointing.errors",
    "Output": "pointing.generation.output",
    "Search": "pointing.config",
    "Token": "pointing.generation.output",
    "export": "pointing.sharing.export",
    "from_pretrained": "pointing.sharing.hub",
    "push_to_hub": "pointing.sharing.hub",
    "save_pretrained": "pointing.sharing.export",
}


def load(run: str | Path, device: str = "auto", dictionary: str | Path | None = None) -> Generator:
    """A trained run, ready to use: `pointing.load("runs/x").generate("a line").text`. A folder, or what `export` wrote.

    With a dictionary of word pairs, copied words are written as it translates them.
    """
    from pointing.generation.command import load_generator

    return load_generator(run, device, dictionary)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]


if not TYPE_CHECKING:  # a type checker sees the imports above, and nothing else

    def __getattr__(name: str) -> Any:
        """The other public names, imported when they are first asked for: torch takes seconds."""
        if name not in __all__:
            raise AttributeError(f"module 'pointing' has no attribute {name!r}")
        return getattr(import_module(ELSEWHERE.get(name, "pointing.pointer_softmax")), name)
