"""Importing torch in less time, for commands that somebody waits for.

While modules are being imported nothing becomes garbage, so looking for it costs time for nothing. And the module in
which torch registers shapes for its compiler, a quarter of the import's time, is only loaded if somebody uses it.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import LazyLoader
from types import ModuleType

FOR_THE_COMPILER = "torch._meta_registrations"  # with torch._refs and torch._decomp; no search needs them


class _Later:
    """An import hook: one module is loaded when one of its names is first asked for."""

    @classmethod
    def find_spec(
        cls, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != FOR_THE_COMPILER:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = LazyLoader(spec.loader)
        return spec


@contextmanager
def quick_start() -> Iterator[None]:
    """Around the imports of a command that only searches. What is imported inside stays out of garbage collections."""
    was_enabled = gc.isenabled()
    gc.disable()
    sys.meta_path.insert(0, _Later)
    try:
        yield
    finally:
        sys.meta_path.remove(_Later)
        gc.freeze()
        if was_enabled:
            gc.enable()
