"""Matrix products for search: weights that are laid out once, for many small products.

On a CPU they go through oneDNN, which has kernels for few rows and uses AVX-512 on every make of CPU: with 5 rows 2.7
times as fast as torch's own product (MKL) on an AMD EPYC, with 160 rows 2.3 times (docs/performance.md). With
`use_wide_products` torch's own products go through oneDNN too, but lay out the weights at every call: a whole search
takes 1.1 times as long. That is for the layers that are no part of these products: encoders and Transformers. The
numbers are the same float32 sums in another order.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from pointing.kernels import exact
from pointing.pointer_softmax import Switch

# What torch.compile uses; they are no part of torch's promised interface, so they may be missing some day.
_HAS_ONEDNN = torch.backends.mkldnn.is_available() and all(
    hasattr(torch.ops.mkldnn, name) for name in ("_reorder_linear_weight", "_linear_pointwise")
)


class Products:
    """x → W x + b for several W (N, R) and b at once, from x (M, R), for as long as the weights stay as they are."""

    def __init__(self, *layers: tuple[Tensor, Tensor | None]) -> None:
        weights, biases = zip(*layers, strict=True)
        self.widths = [len(weight) for weight in weights]
        parts = [w.new_zeros(len(w)) if b is None else b for w, b in zip(weights, biases, strict=True)]
        weight, self.bias = torch.cat(weights).detach(), torch.cat(parts).detach()
        self.by_onednn = _HAS_ONEDNN and weight.device.type == "cpu" and weight.dtype == torch.float32
        if self.by_onednn:
            self.weight = torch.ops.mkldnn._reorder_linear_weight(weight, None)
        else:
            self.weight = weight.t().contiguous()

    @classmethod
    def of(cls, layer: nn.Linear) -> Products:
        return cls((layer.weight, layer.bias))

    def all(self, x: Tensor) -> Tensor:
        """All products side by side, (M, N)."""
        if not self.by_onednn:
            return torch.addmm(self.bias, x, self.weight)
        product: Tensor = torch.ops.mkldnn._linear_pointwise(x, self.weight, self.bias, "none", [], "")
        return product

    def __call__(self, x: Tensor) -> tuple[Tensor, ...]:
        """The product with each W, (M, …) each."""
        if len(self.widths) == 1:
            return (self.all(x),)
        parts: tuple[Tensor, ...] = self.all(x).split(self.widths, -1)
        return parts


class FastSwitch:
    """The fast twin of `Switch`: the logit of d_t from evidence (M, Q), (M,)."""

    def __init__(self, switch: Switch) -> None:
        self.layers = [Products.of(layer) for layer in switch.layers if isinstance(layer, nn.Linear)]
        beta = switch.inverse_temperature
        self.last, self.bias = (beta * switch.last.weight).detach(), (beta * switch.last.bias).detach()
        self.activation, self.residual = switch.activation, switch.residual

    def __call__(self, evidence: Tensor) -> Tensor:
        a = evidence
        for k, layer in enumerate(self.layers):
            upper = self.activation(layer.all(a))
            a = upper + a if self.residual and k > 0 else upper
        return exact(a.mul(self.last).sum(-1).add_(self.bias))  # quicker than a product
