"""A few dev outputs at every validation."""

from typing import Any


class Samples:
    def __init__(self, *a: Any) -> None: ...
    def take(self, *a: Any) -> dict[str, Any]:
        return {}

    def show(self, *a: Any) -> None: ...
