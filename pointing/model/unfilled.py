"""Models without first weights, for those that are read from a file: making these takes longer than reading."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torch.overrides import TorchFunctionMode

DRAWN = {"normal_", "uniform_", "xavier_uniform_", "kaiming_uniform_"}


class Unfilled(TorchFunctionMode):
    """Inside of it, random numbers are not drawn into tensors, which keep whatever is in their memory.

    Nor are they made orthogonal, which would take a QR decomposition of each of them.

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
        name = getattr(func, "__name__", "")
        if name in DRAWN:
            return args[0] if args else kwargs["tensor"]
        if name == "linalg_qr":  # all that `nn.init.orthogonal_` takes long for
            return args[0], args[0]
        return func(*args, **kwargs)
