"""pointing: sequence-to-sequence models that copy the words they do not know."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pointing.generation.generator import Generator

__version__ = "0.1.0"


def load(run: str | Path, device: str = "auto") -> Generator:
    """A trained run, ready to use: `pointing.load("runs/x").generate(["a line"])`."""
    from pointing.generation import command as generating

    return generating.load(run, device)
