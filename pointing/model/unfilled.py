"""Models without first weights, for those that are read from a file: drawing them takes longer than reading."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torch.overrides import TorchFunctionMode

DRAWN = {"normal_", "uniform_", "xavier_uniform_", "kaiming_uniform_", "orthogonal_"}


class Unfilled(TorchFunctionMode):
    """Inside of it, random numbers are not drawn into tensors, which keep whatever is in their memory.

    On the device `meta` this also spares the import of torch's compiler, which takes more than a second.
    """

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        if getattr(func, "__name__", "") in DRAWN:
            return args[0] if args else kwargs["tensor"]
        return func(*args, **kwargs)
