"""The door for decoders: one of another kind, whose state is a cache of keys and values, is trained and searched."""

from typing import NamedTuple

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from pointing.config import Config, Search
from pointing.corpus.examples import Batch
from pointing.generation.beam import search
from pointing.model.decoder import Predicted
from pointing.model.fast_output import FastOutput
from pointing.model.loss import log_likelihood
from pointing.pointer_softmax import PointerSoftmax, Switch, masked_log_softmax
from pointing.text.vocabulary import EOS, UNK

V, X, E, LONGEST = 9, 8, 12, 20


class Cache(NamedTuple):
    x_mask: Tensor  # (B, J)
    h: Tensor  # (B, J, E)
    keys: Tensor  # (B, K, t, E) of all words so far
    values: Tensor  # (B, K, t, E)
    y_prev: Tensor  # (B, K, E)


class SelfAttention(nn.Module):
    """One layer of causal self-attention, then attention over the source's embeddings."""

    def __init__(self):
        super().__init__()
        self.source, self.embedding, self.position = nn.Embedding(X, E), nn.Embedding(V, E), nn.Embedding(LONGEST, E)
        for table in (self.source, self.embedding, self.position):
            nn.init.normal_(table.weight, 0, 0.3)
        self.key, self.value, self.query, self.look = (nn.Linear(E, E) for _ in range(4))
        self.output = PointerSoftmax(V, 2 * E, Switch(2 * E, 5, activation="tanh"))

    def forward(self, x, x_mask, y, x_form=None, place=None):
        y_prev = nn.functional.pad(self.embed(y[:, :-1], 1), (0, 0, 1, 0))
        causal = torch.ones(y.shape[1], y.shape[1], dtype=torch.bool).tril()
        scores = self.query(y_prev) @ self.key(y_prev).mT  # (B, T, T)
        a = y_prev + masked_log_softmax(scores, causal.unsqueeze(0)).exp() @ self.value(y_prev)
        return self.predicted(a, self.read(x), x_mask)

    def embed(self, y, first):
        positions = torch.arange(first, first + y.shape[1])
        return self.embedding(y.masked_fill(y >= V, UNK)) + self.position(positions)

    def read(self, x):
        return self.source(x) + self.position(torch.arange(x.shape[1]))

    def predicted(self, a, h, x_mask):
        a = a + (h * x_mask.unsqueeze(-1)).sum(1, keepdim=True)  # so that the first step depends on the source too
        log_l = masked_log_softmax(self.look(a) @ h.mT, x_mask.unsqueeze(1))
        both = torch.cat([a, log_l.exp() @ h], -1)
        return Predicted(both, both, log_l)

    def form_logits(self, readout, x, x_mask, y, place=None):
        return None

    def for_search(self):
        return SelfAttentionSearch(self)


class SelfAttentionSearch:
    def __init__(self, model):
        self.model, self.output, self.device = model, FastOutput(model.output), torch.device("cpu")

    def read(self, x, x_mask, x_form=None, place=None):
        empty = torch.zeros(len(x), 1, 0, E)
        return Cache(x_mask, self.model.read(x), empty, empty, torch.zeros(len(x), 1, E))

    def step(self, cache):
        y_prev, model = cache.y_prev.unsqueeze(2), self.model
        keys = torch.cat([cache.keys, model.key(y_prev)], 2)
        values = torch.cat([cache.values, model.value(y_prev)], 2)
        a = (y_prev + (model.query(y_prev) @ keys.mT).softmax(-1) @ values).squeeze(2)  # (B, K, E)
        return model.predicted(a, cache.h, cache.x_mask), cache._replace(keys=keys, values=values)

    def keep_sources(self, cache, live):
        return Cache(*(part[live] for part in cache))

    def follow(self, cache, parent, y):
        rows = torch.arange(len(parent)).unsqueeze(1)
        position = self.model.position.weight[cache.keys.shape[2]]
        y_prev = self.model.embedding(y.masked_fill(y >= V, UNK)) + position
        return cache._replace(keys=cache.keys[rows, parent], values=cache.values[rows, parent], y_prev=y_prev), None


def batch():
    """Three sources of different lengths. Their targets copy two words that the target vocabulary does not have."""
    x = torch.tensor([[2, 3, 4, 5, EOS], [6, 7, EOS, 0, 0], [5, 2, 6, EOS, 0]])
    x_mask = torch.arange(5) < torch.tensor([[5], [3], [4]])
    source_words = torch.tensor([[3, V + 1, 4, 5, EOS], [V, V + 1, EOS, 0, 0], [5, 3, V + 2, EOS, 0]])
    y = torch.tensor([[5, V + 1, 4, 3, EOS], [V + 1, 8, V, EOS, 0], [7, EOS, 0, 0, 0]])
    return Batch(np.arange(3), x, x_mask, source_words, y, y, torch.arange(5) < torch.tensor([[5], [4], [2]]))


def make():
    torch.manual_seed(1)
    return SelfAttention()


def test_another_decoder_learns_by_the_loss_and_the_search_finds_what_it_learned():
    data = {part: {"source": "x", "target": "y"} for part in ("train", "dev")}
    model, examples = make(), batch()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(60):
        predicted = model(examples.x, examples.x_mask, examples.y)
        loss = -log_likelihood(Config(data=data), model, predicted, examples).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loss < 0.1
    for row, hypotheses in enumerate(search(model.eval().for_search(), examples, Search(beam=3))):
        assert hypotheses[0].choices.tolist() == examples.target[row][examples.mask[row]].tolist()


@pytest.mark.parametrize("beam", [2, 4])
def test_a_search_with_another_decoder_scores_as_teacher_forcing_does(beam):
    model, examples = make().eval(), batch()
    found = search(model.for_search(), examples, Search(beam=beam, nbest=beam, max_length=8), locations=True)
    lengths = set()
    for row, hypotheses in enumerate(found):
        for hypothesis in hypotheses:
            choices = torch.from_numpy(hypothesis.choices)
            source = slice(row, row + 1)
            y = torch.where(choices < V, choices, examples.source_words[row][(choices - V).clamp(min=0)])
            predicted = model(examples.x[source], examples.x_mask[source], y.unsqueeze(0))
            log_p = model.output.log_likelihood(*predicted, choices.unsqueeze(0))[0]
            np.testing.assert_allclose(hypothesis.log_p, log_p.detach(), atol=1e-5)
            np.testing.assert_allclose(hypothesis.location, predicted.log_l[0].exp().detach(), atol=1e-5)
            lengths.add(len(choices))
    assert len(lengths) > 1
