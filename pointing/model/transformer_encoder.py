"""The encoder of a Transformer (Vaswani et al. 2017), pre-norm: each sublayer reads normalised input and adds to it.

B batch, J source positions; P pieces, where the words are read in pieces; width D of all layers.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pointing.model.encoder import Encoder, Reads, of_positions

LONG = 200 * 200  # target times source positions from which the fused kernel of a CPU is as quick


def with_positions(x: Tensor, first: int = 0) -> Tensor:
    """sqrt(D) x (B, N, D) plus the sinusoids of the positions first, first + 1, … There is no last position."""
    length, width = x.shape[1:]
    position = torch.arange(first, first + length, dtype=torch.float32, device=x.device).unsqueeze(1)
    wave = torch.exp(torch.arange(0, width, 2, device=x.device) * (-math.log(10_000.0) / width))
    sinusoids = torch.stack([torch.sin(position * wave), torch.cos(position * wave)], -1).flatten(1)
    added: Tensor = torch.add(sinusoids.to(x.dtype), x, alpha=math.sqrt(width))
    return added


def heads_of(x: Tensor, heads: int) -> Tensor:
    """(B, N, D) as (B, heads, N, D / heads)."""
    apart: Tensor = x.unflatten(-1, (heads, -1)).transpose(1, 2)
    return apart


def joined(x: Tensor) -> Tensor:
    """The reverse of `heads_of`."""
    return x.transpose(1, 2).flatten(2)


def attend(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None, causal: bool = False) -> Tensor:
    """softmax(Q K^T / sqrt(D / heads)) V of each head, (B, heads, T, D / heads).

    The mask (B, 1, 1, J) is True where all steps may look; `causal`: each step sees itself and those before. On a CPU
    PyTorch's fused kernel takes up to six times as long as two products and a softmax, unless the lines are long.
    """
    (B, heads, T, width), J = query.shape, key.shape[2]
    if query.device.type != "cpu" or T == 1 or T * J > LONG:
        return F.scaled_dot_product_attention(query, key, value, attn_mask=mask, is_causal=causal)
    hidden = torch.finfo(query.dtype).min
    added = query.new_zeros(1, 1, 1)  # to the scores (B heads, T, J)
    if mask is not None:
        added = query.new_zeros(B, heads, 1, J).masked_fill_(~mask, hidden).flatten(0, 1)
    elif causal:
        added = query.new_full((1, T, J), hidden).triu_(1)
    scores = torch.baddbmm(added, query.flatten(0, 1), key.flatten(0, 1).transpose(1, 2), alpha=width**-0.5)
    seen: Tensor = torch.bmm(scores.softmax(-1), value.flatten(0, 1)).unflatten(0, (B, heads))
    return seen


class FeedForward(nn.Module):
    """max(0, W_1 x + b_1) W_2 + b_2, after a LayerNorm."""

    def __init__(self, width: int, hidden: int, dropout: float) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.first, self.second = nn.Linear(width, hidden), nn.Linear(hidden, width)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        hidden: Tensor = self.second(self.dropout(torch.relu(self.first(self.norm(x)))))
        return hidden


class SelfAttention(nn.Module):
    """Each position looks at all of its own sequence that the mask shows, after a LayerNorm."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm = nn.LayerNorm(width)
        self.query_key_value = nn.Linear(width, 3 * width)
        self.last = nn.Linear(width, width)

    def forward(self, x: Tensor, mask: Tensor | None = None, causal: bool = False) -> Tensor:
        """(B, N, D), with mask (B, 1, 1, N), or so that each position sees itself and those before it."""
        query, key, value = (heads_of(part, self.heads) for part in self.query_key_value(self.norm(x)).chunk(3, -1))
        attended: Tensor = self.last(joined(attend(query, key, value, mask, causal)))
        return attended


class TransformerEncoder(Encoder):
    """Self-attention and feed-forward layers over the source: annotations h_j of width D."""

    def __init__(
        self, size: int, width: int, hidden: int, heads: int, layers: int, dropout: float, sparse: bool, reads: Reads
    ) -> None:
        super().__init__(size, width, sparse, reads)
        self.attention = nn.ModuleList(SelfAttention(width, heads) for _ in range(layers))
        self.feed_forward = nn.ModuleList(FeedForward(width, hidden, dropout) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.dropout = nn.Dropout(dropout)
        self.apply(start_as_glorot_does)

    def forward(self, x: Tensor, x_mask: Tensor, x_form: Tensor | None = None, place: Tensor | None = None) -> Tensor:
        """The annotations (B, J, D). Those at padding have no meaning."""
        h = self.dropout(with_positions(self.embedded(x, x_form)))
        mask = (x_mask if place is None else place >= 0)[:, None, None]
        for attention, feed_forward in zip(self.attention, self.feed_forward, strict=True):
            h = h + self.dropout(attention(h, mask))
            h = h + self.dropout(feed_forward(h))
        return of_positions(self.norm(h), place, x_mask)


@torch.no_grad()
def start_as_glorot_does(module: nn.Module) -> None:
    """Matrices from Glorot and Bengio's uniform distribution, biases 0; embeddings from N(0, 1 / D)."""
    if isinstance(module, nn.Linear):
        nn.init.xavier_uniform_(module.weight)
        if module.bias is not None:
            module.bias.zero_()
    elif isinstance(module, nn.Embedding):
        module.weight.normal_(0, module.embedding_dim**-0.5)
