"""The attentional encoder–decoder (paper §3), in the order data meets it, with the pointer softmax on top (§4).

B batch, T target steps, J source positions; widths E embedding, S state, A annotation, R = E readout.
`Seq2Seq` is one `Decoder` (model/decoder.py). A decoder of another kind can take its place.
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
from pointing.model.decoder import Predicted, of_parents
from pointing.model.fast_output import FastOutput
from pointing.model.fast_step import FastStep
from pointing.model.form_head import FormHead
from pointing.model.recurrence import Weights, conditional_gru, gru, step
from pointing.pointer_softmax import AdditiveScores, AlwaysPoint, NeverPoint, PointerSoftmax, Switch, masked_log_softmax
from pointing.text.forms import FORMS
from pointing.text.vocabulary import UNK


class Embedding(nn.Embedding):
    """Words → vectors. With `sparse`, the gradient has one row for each different word of the batch, and no others."""

    def forward(self, words: Tensor) -> Tensor:
        if not self.sparse:
            return super().forward(words)
        different, row = words.unique(return_inverse=True)
        return F.embedding(row, sparse_rows(self.weight, different))


class Encoder(nn.Module):
    """Bidirectional GRU (paper §3): annotations h_j = [→h_j ; ←h_j]."""

    def __init__(
        self, size: int, embedding: int, hidden: int, layers: int, dropout: float, sparse: bool, forms: bool
    ) -> None:
        super().__init__()
        self.embedding = Embedding(size, embedding, sparse=sparse)
        self.form = nn.Embedding(FORMS, embedding) if forms else None  # how the words are written
        self.gru = nn.GRU(embedding, hidden, layers, bidirectional=True, dropout=dropout if layers > 1 else 0.0)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, x_mask: Tensor, x_form: Tensor | None = None) -> Tensor:
        """The annotations (B, J, A). Those at padding have no meaning."""
        run = self._by_library if x.is_cuda else self._by_hand
        words = self.embedding(x.t())
        if self.form is not None and x_form is not None:
            words = words + self.form(x_form.t())
        return run(self.dropout(words), x_mask.sum(1)).transpose(0, 1)

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


class Source(NamedTuple):
    """What the decoder keeps of the sources: computed once, read at every step."""

    x: Tensor  # (B, J) word ids
    x_mask: Tensor  # (B, J)
    h: Tensor  # (B, J, A) annotations
    keys: Tensor  # (B, J, A) W h_j + b of the attention


class GRUState(NamedTuple):
    """The decoder's state in search, K hypotheses of each source."""

    source: Source
    s: Tensor  # (B, K, S)
    y_prev: Tensor  # (B, K, E) the last word as the decoder reads it
    readout: Tensor  # (B, K, R) of the last step


class Attention(AdditiveScores):
    """e_tj = v · tanh(W h_j + U s'_t + b), l_t = softmax(e_t), c_t = Σ_j l_tj h_j (paper §3)."""

    def forward(self, s: Tensor, source: Source) -> tuple[Tensor, Tensor]:
        """log l_t (B, K, J) and c_t (B, K, A) for K states of each source, (B, K, S)."""
        log_l = masked_log_softmax(self.scores(source.keys.unsqueeze(1), s), source.x_mask.unsqueeze(1))
        return log_l, torch.bmm(log_l.exp(), source.h)


class Decoder(nn.Module):
    """Conditional GRU: s'_t = GRU(y_{t-1}, s_{t-1}); attention reads s'_t; s_t = GRU(c_t, s'_t)."""

    def __init__(self, embedding: int, annotation: int, state: int) -> None:
        super().__init__()
        self.start = nn.Linear(annotation, state)
        self.attention = Attention(state, annotation)
        self.first, self.second = nn.GRUCell(embedding, state), nn.GRUCell(annotation, state)

    def read(self, x: Tensor, x_mask: Tensor, h: Tensor) -> tuple[Source, Tensor]:
        """The source as every step needs it, and s_0 = tanh(W · mean of the annotations + b), (B, S)."""
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

    With `sparse` the embeddings' gradients are sparse, as the shortlist's are with the large-vocabulary trick. With
    `forms` it reads and predicts how words are written.
    """

    def __init__(
        self, settings: Model, source_size: int, target_size: int, sparse: bool = False, forms: bool = False
    ) -> None:
        super().__init__()
        E, S = settings.embedding, settings.hidden
        encoder = settings.encoder or S
        A = 2 * encoder
        self.encoder = Encoder(source_size, E, encoder, settings.encoder_layers, settings.dropout, sparse, forms)
        self.embedding = Embedding(target_size, E, sparse=sparse)
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
        # A model that has diverged computes NaN. It has to reach the loss, by which the trainer knows.
        self.output = PointerSoftmax(target_size, E, switch, check_values=False)
        self.form_head = FormHead(E, E) if forms else None
        self.apply(partial(_start_as_dl4mt_does, deviation=settings.init))
        attention = self.decoder.attention
        for layer in (attention.key, attention.query, self.decoder.start):
            _start_orthogonal_if_square(layer.weight)
        if isinstance(switch, Switch):  # after `apply`, which sets all biases to 0
            nn.init.constant_(switch.last.bias, settings.switch.bias)
        if settings.tied and self.output.shortlist is not None:
            self.output.shortlist.weight = self.embedding.weight

    def forward(self, x: Tensor, x_mask: Tensor, y: Tensor, x_form: Tensor | None = None) -> Predicted:
        """All steps of y (B, T), teacher-forced."""
        source, s_0 = self.read(x, x_mask, x_form)
        y_prev = F.pad(self.feed(y[:, :-1], x), (0, 0, 1, 0))  # (B, T, E); the first y_{t-1} is zeros
        s, c, log_l = self.decoder(y_prev, s_0, source)
        return Predicted(self.readout(s, y_prev, c), torch.cat([c, s], -1), log_l)

    def form_logits(self, readout: Tensor, x: Tensor, y: Tensor) -> Tensor | None:
        """(B, T, FORMS) how each word of y (B, T) is written."""
        return None if self.form_head is None else self.form_head(readout, self.feed(y, x))

    def for_search(self) -> GRUSearch:
        if self.training:
            raise ValueError("a model in training mode has dropout and noise: call eval() before a search")
        return GRUSearch(self) if self.embedding.weight.is_cuda else FastGRUSearch(self)

    def read(self, x: Tensor, x_mask: Tensor, x_form: Tensor | None = None) -> tuple[Source, Tensor]:
        """The source, and s_0 (B, S)."""
        return self.decoder.read(x, x_mask, self.encoder(x, x_mask, x_form))

    def feed(self, y: Tensor, x: Tensor) -> Tensor:
        """y_{t-1} as the decoder reads it, (B, T, E), from words y (B, T): a target id, or V + the copied position.

        A copied word that the target vocabulary has is fed back as itself. Another one is fed back as UNK, or with
        `feed: source` as what the encoder read.
        """
        copied = y >= self.output.words
        y_prev: Tensor = self.embedding(y.masked_fill(copied, UNK))
        if self.copied is not None:
            position = (y - self.output.words).clamp(min=0)
            from_source = self.copied(self.encoder.embedding(x.gather(1, position)))
            y_prev = torch.where(copied.unsqueeze(-1), from_source, y_prev)
        fed: Tensor = self.dropout(y_prev)
        return fed

    def readout(self, s: Tensor, y_prev: Tensor, c: Tensor) -> Tensor:
        """Deep output f_o (paper §3): tanh(W_s s_t + W_y y_{t-1} + W_c c_t + b)."""
        readout: Tensor = self.dropout(torch.tanh(self.from_s(s) + self.from_y(y_prev) + self.from_c(c)))
        return readout


class GRUSearch:
    """`Seq2Seq` as search uses it (a `SearchForm`): the readable reference, which also serves GPUs."""

    def __init__(self, model: Seq2Seq) -> None:
        self.model, self.output, self.device = model, FastOutput(model.output), model.embedding.weight.device

    def read(self, x: Tensor, x_mask: Tensor, x_form: Tensor | None = None) -> GRUState:
        source, s_0 = self.model.read(x, x_mask, x_form)
        nothing = s_0.new_zeros(len(x), 1, self.model.embedding.embedding_dim)
        return GRUState(source, s_0.unsqueeze(1), nothing, nothing)

    def step(self, state: GRUState) -> tuple[Predicted, GRUState]:
        source, s, y_prev, _ = state
        s, c, log_l = self.model.decoder.step(y_prev, s, source)
        readout = self.model.readout(s, y_prev, c)
        return Predicted(readout, torch.cat([c, s], -1), log_l), state._replace(s=s, readout=readout)

    def keep_sources(self, state: GRUState, live: Tensor) -> GRUState:
        source, *rest = state
        return GRUState(Source(*(part[live] for part in source)), *(part[live] for part in rest))

    def follow(self, state: GRUState, parent: Tensor, y: Tensor) -> tuple[GRUState, Tensor | None]:
        model, y_prev = self.model, self.model.feed(y, state.source.x)
        state = state._replace(s=of_parents(state.s, parent), y_prev=y_prev)
        if model.form_head is None:
            return state, None
        return state, model.form_head(of_parents(state.readout, parent), y_prev).argmax(-1)


class FastGRUSearch(GRUSearch):
    """The fast twin for CPUs: the same numbers from weights that are laid out once. A test holds both together."""

    def __init__(self, model: Seq2Seq) -> None:
        super().__init__(model)
        decoder = model.decoder
        deep_output = model.from_s, model.from_y, model.from_c
        self.fast_step = FastStep(decoder.first, decoder.attention, decoder.second, *deep_output)

    def step(self, state: GRUState) -> tuple[Predicted, GRUState]:
        source, s, y_prev, _ = state
        s, *predicted = self.fast_step(y_prev, s, source.keys, source.h, source.x_mask)
        return Predicted(*predicted), state._replace(s=s, readout=predicted[0])


def _start_orthogonal_if_square(weight: Tensor) -> None:
    """dl4mt starts square matrices orthogonal in all layers but those of the deep output."""
    if weight.shape[0] == weight.shape[1]:
        nn.init.orthogonal_(weight)


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
