"""What reads the source: words, or pieces of words, → one annotation h_j for each position (paper §3).

B batch, J source positions; P pieces, where the words are read in pieces; widths E embedding, A annotation.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from pointing.corpus.familiarity import FAMILIARITIES
from pointing.kernels import distinct_rows, sparse_rows
from pointing.model.recurrence import gru
from pointing.text.forms import FORMS


class Reads(NamedTuple):
    """What a model is told of the words that it reads, beside the words themselves."""

    forms: bool = False  # how they are written; then it also predicts how its own words are
    familiarity: bool = False  # how often the training text has them, and has copies of them


WORDS_ALONE = Reads()


class Embedding(nn.Embedding):
    """Words → vectors. With `sparse`, the gradient has one row for each different word of the batch, and no others."""

    def forward(self, words: Tensor) -> Tensor:
        if not self.sparse:
            return super().forward(words)
        different, row = words.unique(return_inverse=True)
        return F.embedding(row, sparse_rows(self.weight, different))


def of_positions(x: Tensor, place: Tensor | None, x_mask: Tensor) -> Tensor:
    """What was computed for each piece (B, P, A), as the mean over the pieces of each position, (B, J, A).

    `place` (B, P) is the position that each piece is a part of. None: each piece is a position of its own.
    """
    if place is None:
        return x
    position = torch.arange(x_mask.shape[1], device=x.device).unsqueeze(1)
    parts = (place.unsqueeze(1) == position).to(x.dtype)  # (B, J, P)
    return torch.bmm(parts / parts.sum(-1, keepdim=True).clamp(min=1), x)


class Encoder(nn.Module):
    """What all encoders read of each word or piece: what it is, how it is written, how familiar its word is."""

    def __init__(self, size: int, embedding: int, sparse: bool, reads: Reads) -> None:
        super().__init__()
        self.embedding = Embedding(size, embedding, sparse=sparse)
        self.form = nn.Embedding(FORMS, embedding) if reads.forms else None
        self.familiarity = nn.Embedding(FAMILIARITIES, embedding) if reads.familiarity else None

    def embedded(self, x: Tensor, x_form: Tensor | None) -> Tensor:
        """The vectors of what is read, (…, E). x_form is FORMS times the familiarity plus the form."""
        words: Tensor = self.embedding(x)
        if self.form is not None and x_form is not None:
            words = words + self.form(x_form % FORMS)
            if self.familiarity is not None:
                words = words + self.familiarity(x_form // FORMS)
        return words


class GRUEncoder(Encoder):
    """Bidirectional GRU (paper §3): annotations h_j = [→h_j ; ←h_j]."""

    def __init__(
        self, size: int, embedding: int, hidden: int, layers: int, dropout: float, sparse: bool, reads: Reads
    ) -> None:
        super().__init__(size, embedding, sparse, reads)
        self.gru = nn.GRU(embedding, hidden, layers, bidirectional=True, dropout=dropout if layers > 1 else 0.0)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, x_mask: Tensor, x_form: Tensor | None = None, place: Tensor | None = None) -> Tensor:
        """The annotations (B, J, A). Those at padding have no meaning."""
        run = self._by_library if x.is_cuda else self._by_hand
        words = self.embedded(x.t(), None if x_form is None else x_form.t())
        lengths = (x_mask if place is None else place >= 0).sum(1)
        return of_positions(run(self.dropout(words), lengths).transpose(0, 1), place, x_mask)

    def _by_library(self, x: Tensor, lengths: Tensor) -> Tensor:
        """(J, B, A) from embedded words (J, B, E): cuDNN's loop."""
        packed = pack_padded_sequence(x, lengths.cpu(), enforce_sorted=False)
        h, _ = pad_packed_sequence(self.gru(packed)[0], total_length=len(x))
        return h

    def _by_hand(self, x: Tensor, lengths: Tensor) -> Tensor:
        """The same with our own loop over both directions of a layer, which is faster on a CPU."""
        J, B = x.shape[:2]
        position = torch.arange(J, device=x.device).unsqueeze(1)
        mirror = torch.where(position < lengths, lengths - 1 - position, position)  # (J, B), padding stays in its place
        backwards = (mirror * B + torch.arange(B, device=x.device)).flatten()
        for layer in range(self.gru.num_layers):
            x = self.dropout(x) if layer else x
            ahead, back = (self._weights(layer, way) for way in ("", "_reverse"))
            mirrored = distinct_rows(x.flatten(0, 1), backwards).view_as(x)
            gates = torch.stack([F.linear(x, *ahead[:2]), F.linear(mirrored, *back[:2])], 1)  # (J, 2, B, 3S)
            start = x.new_zeros(2, B, self.gru.hidden_size)
            states = gru(gates, start, torch.stack([ahead[2], back[2]]), torch.stack([ahead[3], back[3]]))
            right, left = states.unbind(1)
            x = torch.cat([right, distinct_rows(left.flatten(0, 1), backwards).view_as(right)], -1)
        return x

    def _weights(self, layer: int, way: str) -> list[Tensor]:
        """The input's weight and bias, the state's weight and bias."""
        names = ("weight_ih", "bias_ih", "weight_hh", "bias_hh")
        return [self.gru.get_parameter(f"{name}_l{layer}{way}") for name in names]
