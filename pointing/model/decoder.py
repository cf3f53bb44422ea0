"""The one door for decoders: all that training and search know of a model.

Training calls the model with whole targets and gives what it returns to the model's output layer. Search asks the model
once for its search form, then steps with it. A decoder of another kind, such as a Transformer whose state is a cache of
keys and values, has to do what is written here and nothing else.

B sources, K hypotheses of each, T target steps, J source positions, V shortlist words.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, Protocol, TypeVar

import torch
from torch import Tensor, nn

from pointing.model.fast_output import FastOutput
from pointing.pointer_softmax import PointerSoftmax

State = TypeVar("State")


class Predicted(NamedTuple):
    """What the output layer asks of a decoder at each step; in search K hypotheses take the place of T steps."""

    readout: Tensor  # (B, T, R) what the shortlist softmax reads
    evidence: Tensor  # (B, T, Q) what the switch reads
    log_l: Tensor  # (B, T, J) log l_t, -inf at padding


class SearchForm(Protocol[State]):
    """A decoder as search uses it, for as long as the weights stay as they are.

    It is read-only, so several threads may search with it at a time. `State` is all that the decoder keeps of the
    sources and of their hypotheses. Search never looks into it.
    """

    output: FastOutput
    device: torch.device  # where the tensors that it reads have to be

    def read(self, x: Tensor, x_mask: Tensor, x_form: Tensor | None = None, place: Tensor | None = None) -> State:
        """Sources x → the state before the first step: one hypothesis of each source, without any word.

        x is (B, J), or (B, P) pieces with the position of each, `place` (B, P); `x_mask` is (B, J). `x_form`, of the
        shape of x, says how the source's words are written; a model without forms does not look at it.
        """

    def step(self, state: State) -> tuple[Predicted, State]:
        """One step of all hypotheses (B, K)."""

    def keep_sources(self, state: State, live: Tensor) -> State:
        """The state of some sources only; `live` (N,) are their rows."""

    def follow(self, state: State, parent: Tensor, y: Tensor) -> tuple[State, Tensor | None]:
        """The state of new hypotheses (B, K'), each of which adds one word to a hypothesis of the last step.

        `parent` (B, K') is the number of that hypothesis, `y` (B, K') the word: a target id, or V + the position
        from which it was copied. The second result (B, K') is the form of these words; None for a model without forms.
        """


class Decoder(Protocol):
    """A model as training uses it. `nn.Module` gives all but `output`, `forward`, `form_logits` and `for_search`."""

    output: PointerSoftmax
    training: bool

    def __call__(
        self, x: Tensor, x_mask: Tensor, y: Tensor, x_form: Tensor | None = None, place: Tensor | None = None
    ) -> Predicted:
        """All steps, teacher-forced, from sources as `SearchForm.read` has them, and words y (B, T) as `follow` has."""

    def form_logits(
        self, readout: Tensor, x: Tensor, x_mask: Tensor, y: Tensor, place: Tensor | None = None
    ) -> Tensor | None:
        """(B, T, FORMS) how each word of y is written, from the readouts of its step; None without forms."""

    def for_search(self) -> SearchForm[Any]:
        """Its search form, of a model in evaluation mode. When the weights have changed, ask for another one."""


@contextmanager
def not_training(model: nn.Module) -> Iterator[None]:
    """Evaluation mode, without dropout and noise; afterwards the model is in the mode that it was in before."""
    if not any(part.training for part in model.modules()):  # looking is quicker than telling each part
        yield
        return
    training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(training)


def of_parents(x: Tensor, parent: Tensor) -> Tensor:
    """The rows of x (B, K, …) of each new hypothesis' parent: (B, K', …)."""
    if x.dim() == 3:
        return x.gather(1, parent.unsqueeze(-1).expand(-1, -1, x.shape[-1]))
    first = torch.arange(0, x.shape[0] * x.shape[1], x.shape[1], device=x.device).unsqueeze(1)
    rows = x.flatten(0, 1).index_select(0, (first + parent).flatten())
    return rows.view(*parent.shape, *x.shape[2:])
