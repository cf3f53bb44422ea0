"""The attentional encoder–decoder (paper §3), in the order data meets it, with the pointer softmax on top (§4).

B batch, T target steps, J source positions; widths E embedding, S state, A annotation, R = E readout.
A decoder of another kind (a Transformer, a pre-trained model) takes this one's place if it gives the same three things:
a readout, evidence for the switch, and location scores.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from pointing.config import Model
from pointing.kernels import distinct_rows, sparse_rows
from pointing.model.recurrence import Weights, conditional_gru, gru, step
from pointing.pointer_softmax import AlwaysPoint, NeverPoint, PointerSoftmax, Switch, masked_log_softmax
from pointing.text.vocabulary import UNK


class Embedding(nn.Embedding):
    """Words → vectors. With `sparse`, a gradient has the rows of the words that were there, each once, and no other."""

    def forward(self, words: Tensor) -> Tensor:
        if not self.sparse:
            return super().forward(words)
        different, place = words.unique(return_inverse=True)
        return F.embedding(place, sparse_rows(self.weight, different))


class Encoder(nn.Module):
    """Bidirectional GRU (paper §3): annotations h_j = [→h_j ; ←h_j]."""

    def __init__(self, words: int, embedding: int, hidden: int, layers: int, dropout: float, sparse: bool) -> None:
        super().__init__()
        self.embedding = Embedding(words, embedding, sparse=sparse)
        self.gru = nn.GRU(embedding, hidden, layers, bidirectional=True, dropout=dropout if layers > 1 else 0.0)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, x_mask: Tensor) -> Tensor:
        """(B, J, A). At padding it holds anything."""
        run = self._by_library if x.is_cuda else self._by_hand
        return run(self.dropout(self.embedding(x.t())), x_mask.sum(1)).transpose(0, 1)

    def _by_library(self, x: Tensor, lengths: Tensor) -> Tensor:
        """(J, B, A) from embedded words (J, B, E): cuDNN's loop."""
        packed = pack_padded_sequence(x, lengths.cpu(), enforce_sorted=False)
        h, _ = pad_packed_sequence(self.gru(packed)[0], total_length=len(x))
        return h

    def _by_hand(self, x: Tensor, lengths: Tensor) -> Tensor:
        """The same with our own loop, which on a CPU is quicker: both directions of a layer in one."""
        J, B = x.shape[:2]
        place = torch.arange(J, device=x.device).unsqueeze(1)
        mirror = torch.where(place < lengths, lengths - 1 - place, place)  # (J, B), back to front up to the padding
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


class Source(NamedTuple):
    """What the decoder keeps of a source: computed once, read at every step."""

    x: Tensor  # (B, J) its words
    x_mask: Tensor  # (B, J)
    h: Tensor  # (B, J, A) annotations
    keys: Tensor  # (B, J, A) their part of the attention


class Attention(nn.Module):
    """e_tj = v · tanh(W h_j + U s'_t + b), l_t = softmax(e_t), c_t = Σ_j l_tj h_j (paper §3)."""

    def __init__(self, annotation: int, state: int) -> None:
        super().__init__()
        self.key = nn.Linear(annotation, annotation)
        self.query = nn.Linear(state, annotation, bias=False)
        self.score = nn.Linear(annotation, 1, bias=False)  # a bias here would cancel in the softmax

    def forward(self, s: Tensor, source: Source) -> tuple[Tensor, Tensor]:
        """log l_t (B, K, J) and c_t (B, K, A) for K states of each source, (B, K, S)."""
        e = self.score(torch.tanh(source.keys.unsqueeze(1) + self.query(s).unsqueeze(2))).squeeze(-1)  # (B, K, J)
        log_l = masked_log_softmax(e, source.x_mask.unsqueeze(1))
        return log_l, torch.bmm(log_l.exp(), source.h)


class Decoder(nn.Module):
    """Conditional GRU: s'_t = GRU(y_{t-1}, s_{t-1}); attention reads s'_t; s_t = GRU(c_t, s'_t)."""

    def __init__(self, embedding: int, annotation: int, state: int) -> None:
        super().__init__()
        self.start = nn.Linear(annotation, state)
        self.attention = Attention(annotation, state)
        self.first, self.second = nn.GRUCell(embedding, state), nn.GRUCell(annotation, state)

    def read(self, x: Tensor, x_mask: Tensor, h: Tensor) -> tuple[Source, Tensor]:
        """The source as every step needs it, and s_0 = tanh(W · mean of the annotations + b)."""
        mean = (h * x_mask.unsqueeze(-1)).sum(1) / x_mask.sum(1, keepdim=True)
        return Source(x, x_mask, h.contiguous(), self.attention.key(h)), torch.tanh(self.start(mean))

    def forward(self, y_prev: Tensor, s: Tensor, source: Source) -> tuple[Tensor, Tensor, Tensor]:
        """All steps, teacher-forced: s (B, T, S), c (B, T, A), log l (B, T, J)."""
        first, attention, second = self.first, self.attention, self.second
        weights = Weights(
            *(first.weight_hh, first.bias_hh, attention.query.weight, attention.score.weight),
            *(second.weight_ih, second.bias_ih, second.weight_hh, second.bias_hh),
        )
        gates = F.linear(y_prev.transpose(0, 1), first.weight_ih, first.bias_ih)
        s, c, e = conditional_gru(gates, s, source.keys.contiguous(), source.h, source.x_mask, weights)
        return s.transpose(0, 1), c.transpose(0, 1), masked_log_softmax(e.transpose(0, 1), source.x_mask.unsqueeze(1))

    def step(self, y_prev: Tensor, s: Tensor, source: Source) -> tuple[Tensor, Tensor, Tensor]:
        """One step of K hypotheses for each source: s_t (B, K, S), c_t (B, K, A), log l_t (B, K, J)."""
        first, second = self.first, self.second
        s = step(F.linear(y_prev, first.weight_ih, first.bias_ih), F.linear(s, first.weight_hh, first.bias_hh), s)
        log_l, c = self.attention(s, source)
        s = step(F.linear(c, second.weight_ih, second.bias_ih), F.linear(s, second.weight_hh, second.bias_hh), s)
        return s, c, log_l


class Seq2Seq(nn.Module):
    """Encoder, decoder, deep output, pointer softmax. `settings.output` changes the output layer and nothing else.

    With `sparse` the embeddings' gradients are sparse, as the shortlist's are with the large-vocabulary trick.
    """

    def __init__(self, settings: Model, source_words: int, target_words: int, sparse: bool = False) -> None:
        super().__init__()
        E, S = settings.embedding, settings.hidden
        encoder = settings.encoder or S
        A = 2 * encoder
        self.encoder = Encoder(source_words, E, encoder, settings.encoder_layers, settings.dropout, sparse)
        self.embedding = Embedding(target_words, E, sparse=sparse)
        self.copied = nn.Linear(E, E) if settings.feed == "source" and settings.output != "softmax" else None
        self.decoder = Decoder(E, A, S)
        self.from_s, self.from_y, self.from_c = (
            nn.Linear(S, E),
            nn.Linear(E, E, bias=False),
            nn.Linear(A, E, bias=False),
        )
        self.dropout = nn.Dropout(settings.dropout)
        switch: Switch | NeverPoint | AlwaysPoint
        if settings.output == "pointer-softmax":
            switch = Switch(A + S, S, activation=settings.switch.activation, residual=settings.switch.residual)
        else:
            switch = NeverPoint() if settings.output == "softmax" else AlwaysPoint()
        self.output = PointerSoftmax(target_words, E, switch)
        self.apply(partial(_start_as_dl4mt_does, deviation=settings.init))
        if isinstance(switch, Switch):
            nn.init.constant_(switch.last.bias, settings.switch.bias)
        if settings.tied and self.output.shortlist is not None:
            self.output.shortlist.weight = self.embedding.weight

    def forward(self, x: Tensor, x_mask: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """What the output layer asks for, at all steps of y (B, T): readout, evidence, log l."""
        source, s_0 = self.read(x, x_mask)
        y_prev = F.pad(self.feed(y[:, :-1], source), (0, 0, 1, 0))  # (B, T, E); the first y_{t-1} is zeros
        s, c, log_l = self.decoder(y_prev, s_0, source)
        return self.readout(s, y_prev, c), torch.cat([c, s], -1), log_l

    def read(self, x: Tensor, x_mask: Tensor) -> tuple[Source, Tensor]:
        """The source, and s_0 (B, S)."""
        return self.decoder.read(x, x_mask, self.encoder(x, x_mask))

    def feed(self, y: Tensor, source: Source) -> Tensor:
        """y_{t-1} as the decoder reads it, (B, T, E), from words y (B, T): a target id, or V + where it was copied.

        A copied word that the target vocabulary has is fed back as itself; else as UNK, or with `feed: source` as
        what the encoder read.
        """
        copied = y >= self.output.words
        y_prev: Tensor = self.embedding(y.masked_fill(copied, UNK))
        if self.copied is not None:
            place = (y - self.output.words).clamp(min=0)
            read = self.copied(self.encoder.embedding(source.x.gather(1, place)))
            y_prev = torch.where(copied.unsqueeze(-1), read, y_prev)
        fed: Tensor = self.dropout(y_prev)
        return fed

    def step(self, y_prev: Tensor, s: Tensor, source: Source) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """One step of K hypotheses for each source: s_t, then what the output layer asks for, (B, K, …) each."""
        s, c, log_l = self.decoder.step(y_prev, s, source)
        return s, self.readout(s, y_prev, c), torch.cat([c, s], -1), log_l

    def readout(self, s: Tensor, y_prev: Tensor, c: Tensor) -> Tensor:
        """Deep output f_o (paper §3): tanh(W_s s_t + W_y y_{t-1} + W_c c_t + b)."""
        readout: Tensor = self.dropout(torch.tanh(self.from_s(s) + self.from_y(y_prev) + self.from_c(c)))
        return readout


@torch.no_grad()
def _start_as_dl4mt_does(module: nn.Module, deviation: float) -> None:
    """Weights from N(0, deviation²), square recurrent ones orthogonal, biases 0."""
    for name, weight in module.named_parameters(recurse=False):
        if name.startswith("bias"):
            weight.zero_()
        elif name.startswith("weight_hh"):
            for square in weight.chunk(3):
                nn.init.orthogonal_(square)
        else:
            weight.normal_(0, deviation)
