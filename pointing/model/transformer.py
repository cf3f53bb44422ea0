"""A Transformer decoder (Vaswani et al. 2017) below the pointer softmax, and its quick sibling with the SSRU.

Each layer reads the words before (by attention, or by the simple recurrence of Kim et al. 2019), then the source, then
a feed-forward network; all are pre-norm. l_t is one more head of attention, on top, whose context reaches the readout.

B batch, K hypotheses, T target steps, J source positions; width D of all layers, A of the annotations.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pointing.config import Model
from pointing.model.decoder import Predicted, of_parents
from pointing.model.encoder import WORDS_ALONE, Embedding, GRUEncoder, Reads
from pointing.model.encoder_decoder import EncoderDecoder, make_encoder, make_output
from pointing.model.fast_output import FastOutput
from pointing.model.form_head import FormHead
from pointing.model.location import Location
from pointing.model.seq2seq import start_as_dl4mt_does
from pointing.model.ssru import SSRU
from pointing.model.transformer_encoder import (
    FeedForward,
    SelfAttention,
    attend,
    heads_of,
    joined,
    start_as_glorot_does,
    with_positions,
)


class WordsBefore(SelfAttention):
    """Self-attention in which each step sees itself and the steps before; in search they are kept in a cache."""

    def all_steps(self, x: Tensor) -> Tensor:
        """(B, T, D)"""
        attended: Tensor = self(x, causal=True)
        return attended

    def start(self, x: Tensor) -> Tensor:
        """The cache before the first step, (B, K, 0, 2D): keys and values."""
        return x.new_zeros(*x.shape[:2], 0, 2 * x.shape[-1])

    def step(self, x: Tensor, cache: Tensor) -> tuple[Tensor, Tensor]:
        """One step (B, K, D), and the cache with it, (B, K, t, 2D)."""
        (B, K, D), t = x.shape, cache.shape[2]
        query, key_value = self.query_key_value(self.norm(x)).split([D, 2 * D], -1)
        cache = torch.cat([cache, key_value.unsqueeze(2)], 2)
        key, value = (heads_of(part, self.heads) for part in cache.view(B * K, t + 1, 2 * D).chunk(2, -1))
        seen = attend(heads_of(query.reshape(B * K, 1, D), self.heads), key, value)
        return self.last(joined(seen).view(B, K, D)), cache


class FromSource(nn.Module):
    """Each step looks at the annotations, after a LayerNorm."""

    def __init__(self, width: int, annotation: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm = nn.LayerNorm(width)
        self.query, self.last = nn.Linear(width, width), nn.Linear(width, width)
        self.key_value = nn.Linear(annotation, 2 * width)

    def read(self, h: Tensor) -> Tensor:
        """Keys and values of the annotations (B, J, A), one beside the other, (B, heads, J, 2D / heads)."""
        key, value = (heads_of(part, self.heads) for part in self.key_value(h).chunk(2, -1))
        return torch.cat([key, value], -1)

    def forward(self, x: Tensor, key_value: Tensor, mask: Tensor) -> Tensor:
        """(B, N, D) for N steps or hypotheses, with mask (B, 1, 1, J)."""
        key, value = key_value.chunk(2, -1)
        query = heads_of(self.query(self.norm(x)), self.heads)
        attended: Tensor = self.last(joined(attend(query, key, value, mask)))
        return attended


class Layer(nn.Module):
    """Words before, source, feed-forward."""

    def __init__(self, settings: Model, annotation: int) -> None:
        super().__init__()
        D, heads = settings.embedding, settings.heads
        self.before: WordsBefore | SSRU = SSRU(D) if settings.kind.decoder == "ssru" else WordsBefore(D, heads)
        self.source = FromSource(D, annotation, heads)
        self.feed_forward = FeedForward(D, settings.hidden, settings.dropout)
        self.dropout = nn.Dropout(settings.dropout)

    def forward(self, x: Tensor, key_value: Tensor, mask: Tensor) -> Tensor:
        """All steps (B, T, D)."""
        return self._rest(x + self.dropout(self.before.all_steps(x)), key_value, mask)

    def step(self, x: Tensor, cache: Tensor, key_value: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """One step of K hypotheses (B, K, D), and what the next step has to know of those before."""
        seen, cache = self.before.step(x, cache)
        return self._rest(x + seen, key_value, mask), cache

    def _rest(self, x: Tensor, key_value: Tensor, mask: Tensor) -> Tensor:
        x = x + self.dropout(self.source(x, key_value, mask))
        rest: Tensor = x + self.dropout(self.feed_forward(x))
        return rest


class Source(NamedTuple):
    """What the decoder keeps of the sources: computed once, read at every step."""

    x_mask: Tensor  # (B, J)
    h: Tensor  # (B, J, A) annotations
    location: Tensor  # (B, J, D) keys of l_t
    layers: list[Tensor]  # (B, heads, J, 2D / heads) each: keys and values
    words: Tensor | None  # (B, J, E) what copying each position feeds back; None: the unknown word

    def rows(self, live: Tensor) -> Source:
        """Some of the sources."""
        words = None if self.words is None else self.words[live]
        layers = [layer[live] for layer in self.layers]
        return Source(self.x_mask[live], self.h[live], self.location[live], layers, words)


class Transformer(EncoderDecoder):
    """Encoder, Transformer or SSRU decoder, pointer softmax. The arguments are those of `Seq2Seq`."""

    def __init__(
        self, settings: Model, source_size: int, target_size: int, sparse: bool = False, reads: Reads = WORDS_ALONE
    ) -> None:
        super().__init__()
        D = settings.embedding
        encoder, A = make_encoder(settings, source_size, sparse, reads)
        self.embedding = Embedding(target_size, D, sparse=sparse)
        self.copied = nn.Linear(D, D) if settings.feed == "source" and settings.output != "softmax" else None
        self.layers = nn.ModuleList(Layer(settings, A) for _ in range(settings.decoder_layers))
        self.norm = nn.LayerNorm(D)
        self.location, self.from_c = Location(D, A, D), nn.Linear(A, D)
        self.dropout = nn.Dropout(settings.dropout)
        self.output = make_output(settings, target_size, D, A + D, D)
        self.form_head = FormHead(D, D) if reads.forms else None
        self.apply(start_as_glorot_does)
        self.encoder = encoder
        if isinstance(encoder, GRUEncoder):
            encoder.apply(lambda module: start_as_dl4mt_does(module, settings.init))
        self.start_output(settings)

    @property
    def stack(self) -> list[Layer]:
        """The layers, lowest first."""
        return list(self.layers)  # type: ignore[arg-type]

    def forward(
        self, x: Tensor, x_mask: Tensor, y: Tensor, x_form: Tensor | None = None, place: Tensor | None = None
    ) -> Predicted:
        """All steps of y (B, T), teacher-forced."""
        source = self.read(x, x_mask, x_form, place)
        y_prev = F.pad(self.feed(y[:, :-1], source.words), (0, 0, 1, 0))  # (B, T, D); the first y_{t-1} is zeros
        s, mask = with_positions(y_prev), x_mask[:, None, None]
        for layer, key_value in zip(self.stack, source.layers, strict=True):
            s = layer(s, key_value, mask)
        return self.predict(s, source)

    def read(self, x: Tensor, x_mask: Tensor, x_form: Tensor | None = None, place: Tensor | None = None) -> Source:
        """The sources as every step needs them."""
        h = self.encoder(x, x_mask, x_form, place)
        layers = [layer.source.read(h) for layer in self.stack]
        return Source(x_mask, h, self.location.key(h), layers, self.read_words(x, x_mask, place))

    def predict(self, s: Tensor, source: Source) -> Predicted:
        """What the output layer needs, from the highest layer's s (B, T, D)."""
        s = self.norm(s)
        log_l, c = self.location(s, source.location, source.h, source.x_mask)
        return Predicted(self.dropout(s + self.from_c(c)), torch.cat([c, s], -1), log_l)

    def search_form(self) -> TransformerSearch:
        return TransformerSearch(self)


class State(NamedTuple):
    """The decoder's state in search, K hypotheses of each source."""

    source: Source
    caches: list[Tensor]  # (B, K, …) of each layer: what it knows of the words before
    y_prev: Tensor  # (B, K, D) the last word as the decoder reads it
    readout: Tensor  # (B, K, R) of the last step
    t: int  # steps made


class TransformerSearch:
    """`Transformer` as search uses it (a `SearchForm`)."""

    def __init__(self, model: Transformer) -> None:
        self.model, self.output, self.device = model, FastOutput(model.output), model.embedding.weight.device

    def read(self, x: Tensor, x_mask: Tensor, x_form: Tensor | None = None, place: Tensor | None = None) -> State:
        source = self.model.read(x, x_mask, x_form, place)
        nothing = source.h.new_zeros(len(x), 1, self.model.embedding.embedding_dim)
        return State(source, [layer.before.start(nothing) for layer in self.model.stack], nothing, nothing, 0)

    def step(self, state: State) -> tuple[Predicted, State]:
        source, caches, y_prev, _, t = state
        s, mask = with_positions(y_prev.flatten(0, 1).unsqueeze(1), t).view_as(y_prev), source.x_mask[:, None, None]
        new_caches = []
        for layer, cache, key_value in zip(self.model.stack, caches, source.layers, strict=True):
            s, cache = layer.step(s, cache, key_value, mask)
            new_caches.append(cache)
        predicted = self.model.predict(s, source)
        return predicted, state._replace(caches=new_caches, readout=predicted.readout, t=t + 1)

    def keep_sources(self, state: State, live: Tensor) -> State:
        caches = [cache[live] for cache in state.caches]
        return State(state.source.rows(live), caches, state.y_prev[live], state.readout[live], state.t)

    def follow(self, state: State, parent: Tensor, y: Tensor) -> tuple[State, Tensor | None]:
        model, y_prev = self.model, self.model.feed(y, state.source.words)
        state = state._replace(caches=[of_parents(cache, parent) for cache in state.caches], y_prev=y_prev)
        if model.form_head is None:
            return state, None
        return state, model.form_head(of_parents(state.readout, parent), y_prev).argmax(-1)
