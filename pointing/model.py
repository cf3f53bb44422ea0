"""The attentional encoder–decoder (paper §3), in the order data meets it, with the pointer softmax on top (§4).

B batch, T target steps, J source positions; widths E embedding, S state, A = 2 S annotation, R = E readout.
A decoder of another kind (a Transformer, a pre-trained model) takes this one's place if it gives the same three things:
a readout, evidence for the switch, and location scores.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from pointing.config import Model
from pointing.pointer_softmax import AlwaysPoint, NeverPoint, PointerSoftmax, Switch, masked_log_softmax
from pointing.vocabulary import UNK


class Encoder(nn.Module):
    """Bidirectional GRU (paper §3): annotations h_j = [→h_j ; ←h_j]."""

    def __init__(self, words: int, embedding: int, hidden: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, embedding)
        self.gru = nn.GRU(embedding, hidden, batch_first=True, bidirectional=True)

    def forward(self, x: Tensor, x_mask: Tensor) -> Tensor:
        lengths = x_mask.sum(1).cpu()
        packed = pack_padded_sequence(self.embedding(x), lengths, batch_first=True, enforce_sorted=False)
        h, _ = pad_packed_sequence(self.gru(packed)[0], batch_first=True, total_length=x.shape[1])
        return h  # (B, J, A)


class Source(NamedTuple):
    """What the decoder keeps of a source: computed once, read at every step."""

    h: Tensor  # (B, J, A) annotations
    keys: Tensor  # (B, J, A) their part of the attention
    x_mask: Tensor  # (B, J)


class Attention(nn.Module):
    """e_tj = v · tanh(W h_j + U s'_t + b), l_t = softmax(e_t), c_t = Σ_j l_tj h_j (paper §3)."""

    def __init__(self, annotation: int, state: int) -> None:
        super().__init__()
        self.key = nn.Linear(annotation, annotation)
        self.query = nn.Linear(state, annotation, bias=False)
        self.score = nn.Linear(annotation, 1, bias=False)  # a bias here would cancel in the softmax

    def forward(self, s: Tensor, source: Source) -> tuple[Tensor, Tensor]:
        """log l_t (B, J) and c_t (B, A)."""
        e = self.score(torch.tanh(source.keys + self.query(s).unsqueeze(1))).squeeze(-1)  # (B, J)
        log_l = masked_log_softmax(e, source.x_mask)
        return log_l, torch.bmm(log_l.exp().unsqueeze(1), source.h).squeeze(1)


class Decoder(nn.Module):
    """Conditional GRU: s'_t = GRU(y_{t-1}, s_{t-1}); attention reads s'_t; s_t = GRU(c_t, s'_t)."""

    def __init__(self, embedding: int, annotation: int, state: int) -> None:
        super().__init__()
        self.start = nn.Linear(annotation, state)
        self.attention = Attention(annotation, state)
        self.first, self.second = nn.GRUCell(embedding, state), nn.GRUCell(annotation, state)

    def read(self, h: Tensor, x_mask: Tensor) -> tuple[Source, Tensor]:
        """The source as every step needs it, and s_0 = tanh(W · mean of the annotations + b)."""
        mean = (h * x_mask.unsqueeze(-1)).sum(1) / x_mask.sum(1, keepdim=True)
        return Source(h, self.attention.key(h), x_mask), torch.tanh(self.start(mean))

    def step(self, y_gates: Tensor, s: Tensor, source: Source) -> tuple[Tensor, Tensor, Tensor]:
        """One step: s_t (B, S), c_t (B, A), log l_t (B, J). `y_gates` is `gates(y_{t-1})`."""
        s = _gru(y_gates, s, self.first)
        log_l, c = self.attention(s, source)
        s = _gru(F.linear(c, self.second.weight_ih, self.second.bias_ih), s, self.second)
        return s, c, log_l

    def gates(self, y_prev: Tensor) -> Tensor:
        """The input's part of the first GRU: for all steps in one product where they are known."""
        return F.linear(y_prev, self.first.weight_ih, self.first.bias_ih)

    def forward(self, y_prev: Tensor, s: Tensor, source: Source) -> tuple[Tensor, Tensor, Tensor]:
        """All steps, teacher-forced: s (B, T, S), c (B, T, A), log l (B, T, J)."""
        steps = []
        for y_gates in self.gates(y_prev).unbind(1):
            s, c, log_l = self.step(y_gates, s, source)
            steps.append((s, c, log_l))
        states, contexts, locations = (torch.stack(some, 1) for some in zip(*steps, strict=True))
        return states, contexts, locations


def _gru(gates: Tensor, s: Tensor, cell: nn.GRUCell) -> Tensor:
    """s_t = u s_{t-1} + (1 - u) s̃_t; the reset gate multiplies U s_{t-1}, after the product. `gates` is W x + b."""
    reset, update, new = gates.chunk(3, -1)
    s_reset, s_update, s_new = F.linear(s, cell.weight_hh, cell.bias_hh).chunk(3, -1)
    reset, update = torch.sigmoid(reset + s_reset), torch.sigmoid(update + s_update)
    return torch.lerp(torch.tanh(new + reset * s_new), s, update)


class Seq2Seq(nn.Module):
    """Encoder, decoder, deep output, pointer softmax. `settings.output` changes the output layer and nothing else."""

    def __init__(self, settings: Model, source_words: int, target_words: int) -> None:
        super().__init__()
        E, S = settings.embedding, settings.hidden
        A = 2 * S
        self.encoder = Encoder(source_words, E, S)
        self.embedding = nn.Embedding(target_words, E)
        self.decoder = Decoder(E, A, S)
        self.from_s, self.from_y, self.from_c = (
            nn.Linear(S, E),
            nn.Linear(E, E, bias=False),
            nn.Linear(A, E, bias=False),
        )
        switch: Switch | NeverPoint | AlwaysPoint
        if settings.output == "pointer-softmax":
            switch = Switch(A + S, S, activation=settings.switch.activation, residual=settings.switch.residual)
        else:
            switch = NeverPoint() if settings.output == "softmax" else AlwaysPoint()
        self.output = PointerSoftmax(target_words, E, switch)
        self.apply(_start_as_dl4mt_does)
        if isinstance(switch, Switch):
            nn.init.constant_(switch.last.bias, settings.switch.bias)

    def forward(self, x: Tensor, x_mask: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """What the output layer asks for, at all steps of y (B, T): readout, evidence, log l."""
        source, s_0 = self.decoder.read(self.encoder(x, x_mask), x_mask)
        known = y[:, :-1].masked_fill(y[:, :-1] >= self.output.words, UNK)  # a copied word is fed back if it is known
        y_prev = F.pad(self.embedding(known), (0, 0, 1, 0))  # (B, T, E); the first y_{t-1} is zeros
        s, c, log_l = self.decoder(y_prev, s_0, source)
        return self.readout(s, y_prev, c), torch.cat([c, s], -1), log_l

    def readout(self, s: Tensor, y_prev: Tensor, c: Tensor) -> Tensor:
        """Deep output f_o (paper §3): tanh(W_s s_t + W_y y_{t-1} + W_c c_t + b)."""
        return torch.tanh(self.from_s(s) + self.from_y(y_prev) + self.from_c(c))


@torch.no_grad()
def _start_as_dl4mt_does(module: nn.Module) -> None:
    """Weights 0.01 · N(0, 1), square recurrent ones orthogonal, biases 0."""
    for name, weight in module.named_parameters(recurse=False):
        if name.startswith("bias"):
            weight.zero_()
        elif name.startswith("weight_hh"):
            for square in weight.chunk(3):
                nn.init.orthogonal_(square)
        else:
            weight.normal_(0, 0.01)
