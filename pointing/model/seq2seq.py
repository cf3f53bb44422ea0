"""The paper's attentional decoder (§3) with the pointer softmax on top (§4).

B batch, T target steps, J source positions; widths E embedding, S state, A annotation, R = E readout.
`Seq2Seq` is one `Decoder` (model/decoder.py); `transformer.py` has others.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pointing.config import Model
from pointing.model.decoder import Predicted, of_parents
from pointing.model.encoder import WORDS_ALONE, Embedding, Reads
from pointing.model.encoder_decoder import EncoderDecoder, make_encoder, make_output
from pointing.model.fast_output import FastOutput
from pointing.model.fast_step import FastStep
from pointing.model.form_head import FormHead
from pointing.model.recurrence import Weights, conditional_gru, step
from pointing.model.transformer_encoder import TransformerEncoder
from pointing.pointer_softmax import AdditiveScores, masked_log_softmax


class Source(NamedTuple):
    """What the decoder keeps of the sources: computed once, read at every step."""

    x_mask: Tensor  # (B, J)
    h: Tensor  # (B, J, A) annotations
    keys: Tensor  # (B, J, A) W h_j + b of the attention
    words: Tensor | None = None  # (B, J, E) what copying each position feeds back; None: the unknown word


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

    def read(self, x_mask: Tensor, h: Tensor) -> tuple[Source, Tensor]:
        """The source as every step needs it, and s_0 = tanh(W · mean of the annotations + b), (B, S)."""
        mean = (h * x_mask.unsqueeze(-1)).sum(1) / x_mask.sum(1, keepdim=True)
        return Source(x_mask, h.contiguous(), self.attention.key(h)), torch.tanh(self.start(mean))

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


class Seq2Seq(EncoderDecoder):
    """Encoder, GRU decoder, deep output, pointer softmax.

    With `sparse` the embeddings' gradients are sparse, as the shortlist's are with the large-vocabulary trick. With
    `reads.forms` it reads and predicts how words are written.
    """

    def __init__(
        self, settings: Model, source_size: int, target_size: int, sparse: bool = False, reads: Reads = WORDS_ALONE
    ) -> None:
        super().__init__()
        E, S = settings.embedding, settings.hidden
        self.encoder, A = make_encoder(settings, source_size, sparse, reads)
        self.embedding = Embedding(target_size, E, sparse=sparse)
        self.copied = nn.Linear(E, E) if settings.feed == "source" and settings.output != "softmax" else None
        self.decoder = Decoder(E, A, S)
        self.from_s, self.from_y, self.from_c = (
            nn.Linear(S, E),
            nn.Linear(E, E, bias=False),
            nn.Linear(A, E, bias=False),
        )
        self.dropout = nn.Dropout(settings.dropout)
        self.output = make_output(settings, target_size, E, A + S, S)
        self.form_head = FormHead(E, E) if reads.forms else None
        for part in self.children():
            if not isinstance(part, TransformerEncoder):  # which has its own first weights
                part.apply(partial(start_as_dl4mt_does, deviation=settings.init))
        attention = self.decoder.attention
        for layer in (attention.key, attention.query, self.decoder.start):
            _start_orthogonal_if_square(layer.weight)
        self.start_output(settings)

    def forward(
        self, x: Tensor, x_mask: Tensor, y: Tensor, x_form: Tensor | None = None, place: Tensor | None = None
    ) -> Predicted:
        """All steps of y (B, T), teacher-forced."""
        source, s_0 = self.read(x, x_mask, x_form, place)
        y_prev = F.pad(self.feed(y[:, :-1], source.words), (0, 0, 1, 0))  # (B, T, E); the first y_{t-1} is zeros
        s, c, log_l = self.decoder(y_prev, s_0, source)
        return Predicted(self.readout(s, y_prev, c), torch.cat([c, s], -1), log_l)

    def search_form(self) -> GRUSearch:
        return GRUSearch(self) if self.embedding.weight.is_cuda else FastGRUSearch(self)

    def read(
        self, x: Tensor, x_mask: Tensor, x_form: Tensor | None = None, place: Tensor | None = None
    ) -> tuple[Source, Tensor]:
        """The source, and s_0 (B, S)."""
        source, s_0 = self.decoder.read(x_mask, self.encoder(x, x_mask, x_form, place))
        return source._replace(words=self.read_words(x, x_mask, place)), s_0

    def readout(self, s: Tensor, y_prev: Tensor, c: Tensor) -> Tensor:
        """Deep output f_o (paper §3): tanh(W_s s_t + W_y y_{t-1} + W_c c_t + b)."""
        readout: Tensor = self.dropout(torch.tanh(self.from_s(s) + self.from_y(y_prev) + self.from_c(c)))
        return readout


class GRUSearch:
    """`Seq2Seq` as search uses it (a `SearchForm`): the readable reference, which also serves GPUs."""

    def __init__(self, model: Seq2Seq) -> None:
        self.model, self.output, self.device = model, FastOutput(model.output), model.embedding.weight.device

    def read(self, x: Tensor, x_mask: Tensor, x_form: Tensor | None = None, place: Tensor | None = None) -> GRUState:
        source, s_0 = self.model.read(x, x_mask, x_form, place)
        nothing = s_0.new_zeros(len(x), 1, self.model.embedding.embedding_dim)
        return GRUState(source, s_0.unsqueeze(1), nothing, nothing)

    def step(self, state: GRUState) -> tuple[Predicted, GRUState]:
        source, s, y_prev, _ = state
        s, c, log_l = self.model.decoder.step(y_prev, s, source)
        readout = self.model.readout(s, y_prev, c)
        return Predicted(readout, torch.cat([c, s], -1), log_l), state._replace(s=s, readout=readout)

    def keep_sources(self, state: GRUState, live: Tensor) -> GRUState:
        source, *rest = state
        kept = Source(*(None if part is None else part[live] for part in source))  # type: ignore[arg-type]
        return GRUState(kept, *(part[live] for part in rest))

    def follow(self, state: GRUState, parent: Tensor, y: Tensor) -> tuple[GRUState, Tensor | None]:
        model, y_prev = self.model, self.model.feed(y, state.source.words)
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
def start_as_dl4mt_does(module: nn.Module, deviation: float) -> None:
    """Weights from N(0, deviation²), square recurrent ones orthogonal, biases 0."""
    for name, weight in module.named_parameters(recurse=False):
        if name.startswith("bias"):
            weight.zero_()
        elif name.startswith("weight_hh"):
            for square in weight.chunk(3):
                nn.init.orthogonal_(square)
        else:
            weight.normal_(0, deviation)
