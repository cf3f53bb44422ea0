"""What the pointer softmax refuses, and how it says so: every argument's kind, shape, dtype, device and values.

All but the values is checked in every call. That reads no numbers, so no GPU is waited for. Values are checked on a CPU
only: a look at the targets and one pass over log l_t, which is little beside a softmax over the shortlist. A GPU would
have to be waited for, and `torch.compile` would have to leave its graph.

Every error is a ValueError that says what was given, what is expected, and what to do. The functions are meant to be
called by the module's name: `check.inputs(...)`.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from pointing.kernels import exact


class Argument(NamedTuple):
    """What a tensor has to be like."""

    axes: str  # a letter each; the same letter is the same size in all arguments
    kind: str  # float, int64 or bool
    meaning: str


ARGUMENTS = {
    "readout": Argument("BTR", "float", "what the shortlist softmax reads"),
    "evidence": Argument("BTE", "float", "what the switch reads"),
    "log_l": Argument("BTJ", "float", "the log-probabilities of the source positions"),
    "query": Argument("BTQ", "float", "what the pointer network points with"),
    "h": Argument("BJA", "float", "what the pointer network points at"),
    "x_mask": Argument("BJ", "bool", "True where there is a word to copy"),
    "target": Argument("BT", "int64", "a word's id, or V + the position that is copied"),
    "y": Argument("BT", "int64", "a word's id, or V + the first position of the same word"),
    "mask": Argument("BT", "bool", "True at the steps that count"),
    "source_words": Argument("BJ", "int64", "each position's word: its id, or V + the first position of the same word"),
    "candidates": Argument("C", "int64", "the ids of the words that compete"),
    "log_f": Argument("BTF", "float", "what the layer's forward returns"),
}
OPTIONAL = "mask", "candidates"
ADVICE = {  # where an axis has two sizes
    "B": "all arguments hold the same examples, batch first",
    "T": "step t of all arguments is one step. A decoder that reads y[:, :-1] predicts y[:, 1:]; cut the longer ones "
    "to the same steps, as in readout[:, :-1]",
    "J": "all arguments have the same source positions, padding included",
    "R": "make the layer for this width, PointerSoftmax(words, readout=...), or project the readout",
    "E": "make the switch for this width, Switch(evidence=...), or project the evidence",
    "Q": "make the pointer network for this width, PointerNetwork(query=...), or project the query",
    "A": "make the pointer network for this width, PointerNetwork(annotation=...), or project the annotations",
    "F": "give what the layer's forward returned for the same sources",
}
IGNORED_LABEL = -100  # the label that cross_entropy, and with it Hugging Face, leaves out
PRECISE, COARSE = 1e-3, 0.1  # how far from 1 a row of l_t may sum up, and in float16 and bfloat16


def inputs(
    given: Mapping[str, Any], reads: Mapping[str, nn.Linear | None], words: int = 0, values: bool = False
) -> None:
    """Refuses arguments, by their names, that a layer cannot take.

    `reads` are the layer's matrices, each by the axis that it reads. `values` asks for a look at the numbers, too.
    """
    if "query" in given and "Q" not in reads:
        raise ValueError(
            "log_l is Annotations, and the layer has no pointer network to read them: make it with one, "
            "PointerSoftmax(..., network=PointerNetwork(query=..., annotation=...)), or give a tensor (B, T, J)"
        )
    tensors = {name: x for name, x in given.items() if x is not None or name not in OPTIONAL}
    for name, x in tensors.items():
        _check_kind(name, x, ARGUMENTS[name].kind, ARGUMENTS[name].meaning)
    sizes = {axis: (matrix.in_features, "the layer") for axis, matrix in reads.items() if matrix is not None}
    for name, x in tensors.items():
        _check_shape(name, x, sizes)
    if "F" in sizes and sizes["F"][0] != words + sizes["J"][0]:
        F, J = sizes["F"][0], sizes["J"][0]
        raise ValueError(f"log_f has {F} columns, but V + J = {words} + {J} = {words + J} are expected: {ADVICE['F']}")
    for name, x in tensors.items():
        _check_device_and_precision(name, x, reads.get(ARGUMENTS[name].axes[-1]), tensors)
    if "candidates" in tensors and tensors["candidates"].numel() == 0:
        raise ValueError("the set of candidate words is empty: give at least one word id, or None for all words")
    if values and next(iter(tensors.values())).device.type == "cpu" and not torch.compiler.is_compiling():
        _check_values(tensors, words, sizes["J"][0])


def masked(e: Any, mask: Any) -> None:
    """Refuses scores and a mask that `masked_log_softmax` cannot take."""
    _check_kind("e", e, "float", "the scores")
    _check_kind("mask", mask, "bool", "True where the softmax is taken")
    if mask.dim() != e.dim() or any(m not in (1, n) for m, n in zip(mask.shape, e.shape, strict=True)):
        raise ValueError(
            f"mask is {_shape(mask)}, but e is {_shape(e)}: each axis of the scores needs one in the mask, of the same "
            "size or of size 1. With scores (B, T, J), a mask (B, J) of the source is given as x_mask.unsqueeze(1)"
        )


def size(name: str, value: Any, least: int, most: int | None = None, advice: str = "") -> None:
    """Refuses what is no whole number, or too small, or too large."""
    try:
        fits = not isinstance(value, bool) and operator.index(value) >= least and (most is None or value <= most)
    except TypeError:
        fits = False
    if not fits:
        between = f"of at least {least}" if most is None else f"from {least} to {most}"
        raise ValueError(f"{name} is {value!r}, but has to be a whole number {between}{advice and f': {advice}'}")


def widths(**widths: Any) -> None:
    """Refuses widths that are no whole numbers from 1."""
    for name, width in widths.items():
        size(name, width, least=1)


def switch(layers: Any, activation: Any, activations: Mapping[str, Any], bias: Any, inverse_temperature: Any) -> None:
    """Refuses settings of a switch that make no sense."""
    size("layers", layers, least=0)
    if activation not in activations:
        raise ValueError(f"activation is {activation!r}, but has to be one of {', '.join(map(repr, activations))}")
    for name, value in (("bias", bias), ("inverse_temperature", inverse_temperature)):
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise ValueError(f"{name} is {value!r}, but has to be a finite number")
    if inverse_temperature <= 0:
        raise ValueError(
            f"inverse_temperature is {inverse_temperature!r}, but has to be more than 0: 1 leaves the switch as it is, "
            "more makes it sharper"
        )


def shortlist(shortlist: Any, words: int, readout: int, is_used: bool) -> None:
    """Refuses an output matrix of the model's own that the layer cannot use."""
    instance("shortlist", shortlist, nn.Linear, optional=True)
    if shortlist is None:
        return
    if not is_used:
        raise ValueError("a shortlist is given, but AlwaysPoint() chooses no word of one: leave it out")
    if shortlist.weight.shape != (words, readout):
        raise ValueError(
            f"shortlist.weight is {_shape(shortlist.weight)}, but has to be (words, readout) = ({words}, {readout}): "
            f"give {shortlist.weight.shape[0]} words and a readout of width {shortlist.weight.shape[1]}"
        )


def instance(name: str, value: Any, *kinds: type, optional: bool = False) -> None:
    """Refuses what is of another type, or a class in place of its instance."""
    if isinstance(value, kinds) or (optional and value is None):
        return
    expected = " or ".join([f"{kind.__name__}(...)" for kind in kinds] + ["None"] * optional)
    if isinstance(value, type):
        raise ValueError(f"{name} is a class, but has to be {expected}: call it, {value.__name__}(...)")
    raise ValueError(f"{name} is of type {type(value).__name__}, but has to be {expected}")


# What can be told without a look at the numbers.


def _check_kind(name: str, x: Any, kind: str, meaning: str) -> None:
    if not isinstance(x, Tensor):
        expected = "a tensor (B, T, J), or Annotations(query, h, x_mask)" if name == "log_l" else "a tensor"
        raise ValueError(f"{name} is of type {type(x).__name__}, but has to be {expected}: {meaning}")
    if x.is_floating_point() if kind == "float" else x.dtype == getattr(torch, kind):
        return
    advice = f"{name}.{'long' if kind == 'int64' else kind}()"
    if kind == "bool" and x.is_floating_point():
        advice = f"{name} > 0 if it holds ones and zeros, {name} == 0 if it holds zeros and -inf"
    raise ValueError(f"{name} is {_dtype(x)}, but has to be {kind}, {meaning}: give {advice}")


def _check_shape(name: str, x: Tensor, sizes: dict[str, tuple[int, str]]) -> None:
    """Refuses axes that have another size than in the arguments before; adds the others to `sizes`."""
    axes, _, meaning = ARGUMENTS[name]
    if x.dim() != len(axes):
        one_step = axes[1:2] == "T" and x.dim() == len(axes) - 1
        advice = f"one step is T = 1, so give {name}.unsqueeze(1)" if one_step else meaning
        raise ValueError(f"{name} is {_shape(x)}, but has to be ({', '.join(axes)}): {advice}")
    for axis, size in zip(axes, x.shape, strict=True):
        expected, of = sizes.setdefault(axis, (size, name))
        if size != expected:
            raise ValueError(
                f"{name} {_shape(x)} has {axis} = {size}, but {of} has {axis} = {expected}: {ADVICE[axis]}"
            )


def _check_device_and_precision(name: str, x: Tensor, matrix: nn.Linear | None, tensors: Mapping[str, Tensor]) -> None:
    """Refuses a tensor on another device than the first one, or in another precision than what it meets."""
    first_name, first = next(iter(tensors.items()))
    if x.device != first.device:
        raise ValueError(
            f"{name} is on {x.device}, but {first_name} is on {first.device}: give {name}.to({first_name}.device)"
        )
    if matrix is not None and x.device != matrix.weight.device:
        raise ValueError(
            f"{name} is on {x.device}, but the layer is on {matrix.weight.device}: move one of them, as in "
            f"layer.to({name}.device)"
        )
    if not x.is_floating_point():
        return
    if (x.dtype == torch.float64) != (first.dtype == torch.float64):
        raise ValueError(
            f"{name} is {_dtype(x)}, but {first_name} is {_dtype(first)}: float64 does not mix with others; give "
            f"{name}.to({first_name}.dtype)"
        )
    if matrix is None or x.dtype == matrix.weight.dtype:
        return
    if torch.float64 in (x.dtype, matrix.weight.dtype) or not torch.is_autocast_enabled(x.device.type):
        raise ValueError(
            f"{name} is {_dtype(x)}, but the layer is {_dtype(matrix.weight)}: change one of them, as in "
            f"layer.to({name}.dtype); for mixed precision, call the layer inside torch.autocast"
        )


# What the numbers tell.


def _check_values(tensors: Mapping[str, Tensor], words: int, positions: int) -> None:
    mask = tensors.get("mask")
    last = words + positions - 1
    choices = f"a word's id below V = {words}, or V + a source position, {last} at most as J = {positions}"
    for name in ("target", "y"):
        if name in tensors:
            advice = "Steps that are not to count are left out by the mask, which is False there"
            _check_range(name, tensors[name], last, f"{choices}. {advice}", mask)
    if "source_words" in tensors:
        advice = "At padding any of these will do, such as 0"
        _check_range("source_words", tensors["source_words"], last, f"{choices}. {advice}")
    if "candidates" in tensors:
        expected = f"a word's id, 0 to {words - 1}. Positions always compete"
        _check_range("candidates", tensors["candidates"], words - 1, expected)
    if "log_l" in tensors:
        _check_log_l(tensors["log_l"].detach(), mask)
    if "log_f" in tensors and tensors["log_f"].numel() and bool(tensors["log_f"].amax() > PRECISE):
        raise ValueError("log_f has positive numbers, and logs of probabilities have none: give what forward returned")


def _check_range(name: str, x: Tensor, last: int, expected: str, mask: Tensor | None = None) -> None:
    """Refuses numbers below 0 or above `last`, unless the mask leaves them out."""
    if x.numel() == 0:
        return
    lowest, highest = x.aminmax()
    if lowest.item() >= 0 and highest.item() <= last:
        return
    outside = (x < 0) | (x > last)
    if mask is not None:
        outside &= mask
    if not bool(outside.any()):
        return
    place, value = _first(outside), x[outside][0].item()
    if value == IGNORED_LABEL and name in ("target", "y"):
        raise ValueError(
            f"{name} is -100 at {name}{place}: the layer leaves no label out by its number; give mask={name} != -100"
        )
    raise ValueError(f"{name} is {value} at {name}{place}, but has to be {expected}")


def _check_log_l(log_l: Tensor, mask: Tensor | None) -> None:
    """Refuses rows that are no logs of probabilities; those that are -inf throughout have nothing to copy."""
    tolerance = COARSE if log_l.dtype in (torch.float16, torch.bfloat16) else PRECISE
    total = exact(log_l).exp().sum(-1)  # (B, T)
    wrong = ~((total - 1).abs() <= tolerance)  # NaN is wrong, too
    if not bool(wrong.any()):
        return
    wrong &= ~(log_l == -math.inf).all(-1)
    if mask is not None:
        wrong &= mask
    if not bool(wrong.any()):
        return
    place, row, sums_to = _first(wrong), log_l[wrong][0], total[wrong][0].item()
    if bool(row.isnan().any()):
        raise ValueError(
            f"log_l{place} has NaN. A softmax over scores that are all -inf is NaN: "
            "masked_log_softmax(scores, x_mask.unsqueeze(1)) gives -inf there"
        )
    if bool((row >= 0).all()) and abs(row.sum().item() - 1) <= tolerance:
        raise ValueError(f"log_l{place} are probabilities, but their logs are expected: give log_l.log()")
    raise ValueError(
        f"log_l{place} are no logs of probabilities: exp(log_l) sums to {sums_to:.4g} there, not to 1. Scores are "
        "given as masked_log_softmax(scores, x_mask.unsqueeze(1)), attention weights as weights.log(), without dropout"
    )


def _first(wrong: Tensor) -> list[int]:
    """The index of the first True."""
    index: list[int] = wrong.nonzero()[0].tolist()
    return index


def _shape(x: Tensor) -> str:
    return str(tuple(x.shape))


def _dtype(x: Tensor) -> str:
    return str(x.dtype).removeprefix("torch.")
