"""Source lines as tensors, and the pieces' states as one annotation a word."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from transformers.modeling_outputs import BaseModelOutput

from pointing.huggingface.pieces import Source


@dataclass
class Reading(BaseModelOutput):  # type: ignore[misc]
    """What the encoder made of the sources. `generate()` repeats every tensor of it for the beams."""

    h: Any = None  # (B, J, A) annotations of words: the mean of their pieces' states
    h_keys: Any = None  # (B, J, A) what queries of the location softmax are compared with
    copied: Any = None  # (B, J, E) what the decoder reads after a copy: the mean of their pieces' embeddings


def pad_sources(sources: Sequence[Source], pad: int) -> dict[str, Tensor]:
    """Source lines as a batch: `input_ids` and `attention_mask` (B, S), `word_pieces` (B, J, 2)."""
    ids = [torch.tensor(source.ids, dtype=torch.long) for source in sources]
    pieces = [torch.tensor(source.pieces, dtype=torch.long).view(-1, 2) for source in sources]
    pieces[0] = pieces[0] if len(pieces[0]) else pieces[0].new_zeros(1, 2)  # J is 1 at least
    return {
        "input_ids": pad_sequence(ids, batch_first=True, padding_value=pad),
        "attention_mask": pad_sequence([torch.ones_like(row) for row in ids], batch_first=True),
        "word_pieces": pad_sequence(pieces, batch_first=True),  # (0, 0), no piece, at padding
    }


def places(word_pieces: Tensor) -> Tensor:
    """x_mask (B, J): True where there is a word to copy."""
    return word_pieces[..., 1] > word_pieces[..., 0]


def pooled(x: Tensor, word_pieces: Tensor) -> Tensor:
    """The mean over each word's pieces, (B, J, A): x (B, S, A); 0 at padding."""
    piece = torch.arange(x.shape[1], device=x.device)
    first, last = word_pieces.unsqueeze(-1).unbind(2)  # (B, J, 1)
    inside = (piece >= first) & (piece < last)  # (B, J, S)
    share = inside / inside.sum(-1, keepdim=True).clamp(min=1)
    return share.to(x.dtype) @ x
