"""Attention of several heads, as products, against PyTorch's own kernel."""

import pytest
import torch
from torch.nn import functional as F

from pointing.model import transformer_encoder
from pointing.model.transformer_encoder import attend

B, HEADS, T, J, WIDTH = 2, 3, 5, 7, 4


def parts(steps=T, positions=J):
    torch.manual_seed(1)
    return [torch.randn(B, HEADS, N, WIDTH, requires_grad=True) for N in (steps, positions, positions)]


def result_and_gradients(function, tensors):
    result = function(*tensors)
    return [result, *torch.autograd.grad(result.square().sum(), tensors)]


@pytest.mark.parametrize("masked", [True, False])
def test_a_head_looks_where_the_mask_is_true(masked):
    mask = torch.tensor([[True] * 4 + [False] * 3, [False] + [True] * 6])[:, None, None] if masked else None
    ours = result_and_gradients(lambda *x: attend(*x, mask), parts())
    torchs = result_and_gradients(lambda *x: F.scaled_dot_product_attention(*x, attn_mask=mask), parts())
    torch.testing.assert_close(ours, torchs)


def test_a_causal_head_sees_no_later_step():
    ours = result_and_gradients(lambda *x: attend(*x, causal=True), parts(T, T))
    torchs = result_and_gradients(lambda *x: F.scaled_dot_product_attention(*x, is_causal=True), parts(T, T))
    torch.testing.assert_close(ours, torchs)


def test_long_lines_and_single_steps_take_the_fused_kernel(monkeypatch):
    fused = []
    monkeypatch.setattr(
        transformer_encoder.F, "scaled_dot_product_attention", lambda *x, **_: fused.append(x[0].shape[2]) or x[0]
    )
    attend(*parts())
    assert fused == []
    attend(*parts(1))
    attend(*parts(201, 200))
    assert fused == [1, 201]


def test_by_hand():
    # scores 0 and 2 log 3 / sqrt(4) = log 3: weights 1/4 and 3/4 of the values 4 and 8
    query, key = torch.tensor([[[[1.0, 0, 0, 0]] * 2]]), torch.zeros(1, 1, 2, 4)
    key[0, 0, 1, 0] = 2 * torch.tensor(3.0).log()
    value = torch.tensor([[[[4.0] * 4, [8.0] * 4]]])
    torch.testing.assert_close(attend(query, key, value), torch.full((1, 1, 2, 4), 7.0))
