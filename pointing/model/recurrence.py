"""The loops over time for training, with gradients by hand. Only what depends on the step before is inside a loop.

Autograd would add to the gradient of each weight at every step: it would read and write a (3S, S) matrix T times. Here
the gradients of all steps are kept, and the gradient of each weight is one matrix product after the loop. The largest
tensor by far, the hidden layer of the attention, is computed twice instead of kept. Weights are laid out once for all
steps. tanh x is computed as 2 σ(2 x) - 1, because PyTorch computes σ ten times faster on a CPU; in the attention both
factors are in the weights. All tensors are time-major: T steps, D directions, B examples; widths S state, A annotation.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from pointing.kernels import exact, tanh_

ATTENTION_NUMBERS_IN_CACHE = 2**16  # numbers of the attention's (B, J, A) tensor that are worked on at a time
MATRIX_NUMBERS_IN_CACHE = 2**20  # a matrix of more numbers does not fit into the cache of a core


def gru(gates: Tensor, s: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """GRUs side by side: every state (T, D, B, S), from gates = W x + b (T, D, B, 3S) and the first state s (D, B, S).

    s_t = u s_{t-1} + (1 - u) s̃_t; the reset gate multiplies U s_{t-1} + b, after the product, as in dl4mt and torch.
    `weight` is U (D, 3S, S), `bias` (D, 3S): reset, update, new.
    """
    with torch.autocast(gates.device.type, enabled=False):  # rounding would add up over the steps
        states: Tensor = _GRU.apply(*_exact(gates, s, weight, bias))  # type: ignore[no-untyped-call]
    return states


class Weights(NamedTuple):
    """The weights of the conditional GRU: first GRU, attention, second GRU."""

    first: Tensor  # (3S, S)
    first_bias: Tensor  # (3S,)
    query: Tensor  # (A, S)
    score: Tensor  # (1, A)
    context: Tensor  # (3S, A)
    context_bias: Tensor  # (3S,)
    second: Tensor  # (3S, S)
    second_bias: Tensor  # (3S,)


def conditional_gru(
    gates: Tensor, s: Tensor, keys: Tensor, h: Tensor, x_mask: Tensor, weights: Weights
) -> tuple[Tensor, Tensor, Tensor]:
    """s'_t = GRU(y_{t-1}, s_{t-1}), e_tj = v · tanh(key_j + Q s'_t), c_t = Σ_j softmax(e_t)_j h_j, s_t = GRU(c_t, s'_t)

    from gates = W y + b (T, B, 3S), s_0 (B, S), keys and h (B, J, A), x_mask (B, J): s (T, B, S), c (T, B, A) and
    e (T, B, J), which is -inf where the mask is False.
    """
    with torch.autocast(gates.device.type, enabled=False):
        s, c, e = _ConditionalGRU.apply(*_exact(gates, s, keys, h), x_mask, *_exact(*weights))  # type: ignore[no-untyped-call]
    return s, c, e


def step(gates: Tensor, recurrent: Tensor, s: Tensor) -> Tensor:
    """One step of a GRU in search, from gates = W x + b, recurrent = U s + b (…, 3S) and s (…, S)."""
    S = s.shape[-1]
    reset, update = torch.sigmoid(gates[..., : 2 * S] + recurrent[..., : 2 * S]).chunk(2, -1)
    return torch.lerp(torch.tanh(torch.addcmul(gates[..., 2 * S :], reset, recurrent[..., 2 * S :])), s, update)


class _GRU(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, gates: Tensor, s: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        states = gates.new_empty(len(gates) + 1, *s.shape)
        states[0] = s
        cell_values = _sums(gates, bias.unsqueeze(1))
        cell, s_t = _Cell(cell_values), states.unbind(0)
        across = _across(_to_cell(weight, 1))
        for t in range(len(gates)):
            cell.recurrent[t].baddbmm_(s_t[t], across)
            cell.forward(t, s_t[t], out=s_t[t + 1])
        ctx.save_for_backward(states, cell_values, weight)
        return states[1:]

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, ...]:
        states, cell_values, weight = ctx.saved_tensors
        gradients = torch.empty_like(cell_values)
        cell, grad_cell = _Cell(cell_values), _Cell(gradients)
        s_t, grad_t = states.unbind(0), grad.unbind(0)
        across = _to_cell(weight, 1)
        grad_s = torch.zeros_like(states[0])
        for t in reversed(range(len(cell_values))):
            grad_s += grad_t[t]
            direct = cell.backward(t, grad_s, s_t[t], grad_cell)
            grad_s = direct.baddbmm_(grad_cell.recurrent[t], across)
        S = states.shape[-1]
        grad_recurrent = gradients[..., : 3 * S].transpose(0, 1).flatten(1, 2)  # (D, T B, 3S)
        grad_weight = torch.bmm(grad_recurrent.mT, states[:-1].transpose(0, 1).flatten(1, 2))
        return gradients[..., S:], grad_s, _from_cell(grad_weight, 1), _from_cell(grad_recurrent.sum(1), 1)


class _ConditionalGRU(torch.autograd.Function):
    """All products with s'_t lie side by side in one tensor (T, B, A + 4S): Q s'_t, then those of the second cell."""

    @staticmethod
    def forward(ctx: Any, gates: Tensor, s: Tensor, keys: Tensor, h: Tensor, x_mask: Tensor, *weights: Tensor) -> Any:
        w = Weights(*weights)
        (T, B, _), S, (_, J, A) = gates.shape, s.shape[-1], h.shape
        new = gates.new_empty
        states, middles, c, e = new(T + 1, B, S), new(T, B, S), new(T, B, A), new(T, B, J)
        states[0] = s
        first_values, second_values = _sums(gates, w.first_bias), new(T, B, A + 4 * S)
        second_values[..., :A] = 0
        second_values[..., A:] = _sums(w.context_bias, w.second_bias)
        first, second = _Cell(first_values), _Cell(second_values[..., A:])
        first_across, context_across = _across(_to_cell(w.first)), _across(w.context)
        middle_across = _across(torch.cat([2 * w.query, _to_cell(w.second)]))
        score = 2 * w.score.view(-1)  # v · tanh(x) = 2 v · σ(2 x) - sum of v
        closed = (-w.score.sum()).expand_as(e[0]).masked_fill(~x_mask, -torch.inf)
        chunks = [
            (hidden, closed[rows].view(-1), e[:, rows].flatten(1).unbind(0))
            for rows, hidden in _hidden(keys, second_values[..., :A])
        ]
        s_t, middle_t, c_t, e_t = states.unbind(0), middles.unbind(0), c.unbind(0), e.unbind(0)
        by_middle = second_values[..., : A + 3 * S].unbind(0)
        for t in range(T):
            first.recurrent[t].addmm_(s_t[t], first_across)
            first.forward(t, s_t[t], out=middle_t[t])
            by_middle[t].addmm_(middle_t[t], middle_across)
            for hidden, closed_chunk, e_chunk in chunks:
                torch.addmv(closed_chunk, hidden.at(t).view(-1, A), score, out=e_chunk[t])
            torch.bmm(e_t[t].softmax(-1).unsqueeze(1), h, out=c_t[t].unsqueeze(1))
            second.gates[t].addmm_(c_t[t], context_across)
            second.forward(t, middle_t[t], out=s_t[t + 1])
        ctx.save_for_backward(states, middles, c, e, first_values, second_values, keys, h, *weights)
        return states[1:], c, e

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad_states: Tensor, grad_context: Tensor, grad_e: Tensor) -> tuple[Tensor | None, ...]:
        states, middles, c, e, first_values, second_values, keys, h, *weights = ctx.saved_tensors
        w = Weights(*weights)
        S, A = states.shape[-1], h.shape[-1]
        first_grads, second_grads = torch.empty_like(first_values), torch.empty_like(second_values)
        first, first_grad = _Cell(first_values), _Cell(first_grads)
        second, second_grad = _Cell(second_values[..., A:]), _Cell(second_grads[..., A:])
        first_across, middle_across = _to_cell(w.first), torch.cat([w.query, _to_cell(w.second)])
        location, score, across_h = e.softmax(-1), 4 * w.score.view(-1), h.transpose(1, 2)  # (T, B, J), (A,), (B, A, J)
        grad_c, grad_e = torch.empty_like(c), grad_e.masked_fill(e == -torch.inf, 0)
        grad_keys, by_sigma, back = torch.zeros_like(h), torch.zeros_like(score), torch.empty_like(c[0])
        chunks = []
        for rows, hidden in _hidden(keys, second_values[..., :A]):
            grad = grad_e[:, rows]
            shapes = (grad.flatten(1).unbind(0), grad.unsqueeze(2).unbind(0), grad.unsqueeze(3).unbind(0))
            chunks.append((hidden, *shapes, back[rows].unsqueeze(1), grad_keys[rows]))
        s_t, middle_t, location_t = states.unbind(0), middles.unbind(0), location.unbind(0)
        grad_s_t, grad_context_t, grad_c_t, grad_e_t = (
            x.unbind(0) for x in (grad_states, grad_context, grad_c, grad_e)
        )
        grad_query, by_middle = second_grads[..., :A].unbind(0), second_grads[..., : A + 3 * S].unbind(0)
        grad_s = torch.zeros_like(states[0])
        for t in reversed(range(len(e))):
            grad_s += grad_s_t[t]
            grad_middle = second.backward(t, grad_s, middle_t[t], second_grad)
            torch.addmm(grad_context_t[t], second_grad.gates[t], w.context, out=grad_c_t[t])
            grad_location = torch.bmm(grad_c_t[t].unsqueeze(1), across_h).squeeze(1)  # h times grad_c is slower
            grad_e_t[t].add_(torch._softmax_backward_data(grad_location, location_t[t], -1, e.dtype))
            for hidden, flat, as_row, as_column, back_chunk, grad_keys_chunk in chunks:
                sigma = hidden.at(t)
                by_sigma.addmv_(sigma.view(-1, A).t(), flat[t])
                slope = sigma.addcmul_(sigma, sigma, value=-1)  # of tanh, but for a factor 4, which is in `score`
                torch.bmm(as_row[t], slope, out=back_chunk)
                grad_keys_chunk.addcmul_(as_column[t], slope)
            torch.mul(back, score, out=grad_query[t])
            grad_middle.addmm_(by_middle[t], middle_across)
            grad_s = first.backward(t, grad_middle, s_t[t], first_grad)
            grad_s.addmm_(first_grad.recurrent[t], first_across)
        grad_keys *= score
        grad_score = 2 * by_sigma - grad_e.sum()  # of v · (2 σ - 1)
        grad_h = torch.bmm(location.permute(1, 2, 0), grad_c.transpose(0, 1))
        grad_first, grad_first_bias = _affine(first_grads[..., : 3 * S], states[:-1])
        of_middle, of_middle_bias = _affine(second_grads[..., : A + 3 * S], middles)
        return (
            *(first_grads[..., S:], grad_s, grad_keys, grad_h, None),
            *(_from_cell(grad_first), _from_cell(grad_first_bias)),
            *(of_middle[:A], grad_score.unsqueeze(0)),
            *_affine(second_grads[..., A + S :], c),
            *(_from_cell(of_middle[A:]), _from_cell(of_middle_bias[A:])),
        )


class _Cell:
    """All steps of a GRU, or their gradients, as views of one tensor (T, …, 4S).

    Its four parts are: U s + b of the new state, reset, update, new. The product U s adds to the first three parts, the
    product W x to the last three. Each of these is one slice, so that products are added in place, without a copy.
    """

    def __init__(self, values: Tensor) -> None:
        S = values.shape[-1] // 4
        self.inner, self.reset, self.update, self.new = (part.unbind(0) for part in values.split(S, -1))
        self.recurrent, self.gates = values[..., : 3 * S].unbind(0), values[..., S:].unbind(0)
        self.reset_update = values[..., S : 3 * S].unbind(0)

    def forward(self, t: int, s: Tensor, out: Tensor) -> None:
        """Writes s_t to `out`. All sums must be complete; their activations take their place."""
        self.reset_update[t].sigmoid_()
        tanh_(self.new[t].addcmul_(self.reset[t], self.inner[t]))
        torch.lerp(self.new[t], s, self.update[t], out=out)

    def backward(self, t: int, grad: Tensor, s: Tensor, into: _Cell) -> Tensor:
        """Writes the gradients of the gates and of U s + b into `into`, from `grad`, the gradient of s_t.

        Returns the part of the gradient of s_{t-1} that does not come through the gates.
        """
        direct: Tensor = grad * self.update[t]
        _tanh_backward(grad - direct, self.new[t], grad_input=into.new[t])
        torch.sub(s, self.new[t], out=into.update[t]).mul_(grad)
        torch.mul(into.new[t], self.inner[t], out=into.reset[t])
        _sigmoid_backward(into.reset_update[t], self.reset_update[t], grad_input=into.reset_update[t])
        torch.mul(into.new[t], self.reset[t], out=into.inner[t])
        return direct


class _Hidden:
    """σ(2 key + 2 query_t) (b, J, A) of b examples at a step t, in a buffer that stays in the cache."""

    def __init__(self, keys: Tensor, queries: Tensor, buffer: Tensor) -> None:
        self.keys, self.queries, self.buffer = keys, queries.unsqueeze(2).unbind(0), buffer

    def at(self, t: int) -> Tensor:
        return torch.add(self.keys, self.queries[t], out=self.buffer).sigmoid_()


def _hidden(keys: Tensor, queries: Tensor) -> list[tuple[slice, _Hidden]]:
    """The examples in chunks that fit into the cache, from keys (B, J, A) and doubled queries (T, B, A)."""
    keys = 2 * keys
    numbers = ATTENTION_NUMBERS_IN_CACHE * torch.get_num_threads()  # each thread has a cache of its own
    at_a_time = max(1, numbers // keys[0].numel())
    buffer = torch.empty_like(keys[:at_a_time])
    slices = [slice(start, min(start + at_a_time, len(keys))) for start in range(0, len(keys), at_a_time)]
    return [(rows, _Hidden(keys[rows], queries[:, rows], buffer[: rows.stop - rows.start])) for rows in slices]


_tanh_backward = torch.ops.aten.tanh_backward.grad_input
_sigmoid_backward = torch.ops.aten.sigmoid_backward.grad_input


def _sums(gates: Tensor, bias: Tensor) -> Tensor:
    """The values of a `_Cell` (T, …, 4S) before the products with states are added.

    They come from gates = W x + b (T, …, 3S) and from the bias of U s (…, 3S).
    """
    S = gates.shape[-1] // 3
    reset_update, new = bias.split([2 * S, S], -1)
    sums = gates.new_empty(*gates.shape[:-1], 4 * S)
    sums[..., :S] = new
    torch.add(gates[..., : 2 * S], reset_update, out=sums[..., S : 3 * S])
    sums[..., 3 * S :] = gates[..., 2 * S :]
    return sums


def _to_cell(weight: Tensor, dim: int = 0) -> Tensor:
    """U or its bias from torch's order (reset, update, new) to the cell's (new, reset, update)."""
    reordered: Tensor = weight.roll(weight.shape[dim] // 3, dim)
    return reordered


def _from_cell(weight: Tensor, dim: int = 0) -> Tensor:
    """The reverse of `_to_cell`."""
    reordered: Tensor = weight.roll(-(weight.shape[dim] // 3), dim)
    return reordered


def _across(weight: Tensor) -> Tensor:
    """Wᵀ for products with few rows: copied to be contiguous, unless the copy costs more time than it saves."""
    return weight.mT.contiguous() if weight.numel() < MATRIX_NUMBERS_IN_CACHE else weight.mT


def _affine(grad: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
    """The gradients of W and b over all steps at once; `grad` is the gradient of W x + b."""
    grad = grad.flatten(0, 1)
    return torch.mm(grad.t(), x.flatten(0, 1)), grad.sum(0)


def _exact(*tensors: Tensor) -> tuple[Tensor, ...]:
    """The tensors in float32 at least, also under autocast."""
    return tuple(map(exact, tensors))
