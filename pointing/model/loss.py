"""The objective: what a batch's choices are, for a model with its kind of output, and how probable it finds them."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from pointing.config import Config
from pointing.corpus.examples import Batch
from pointing.model.seq2seq import Seq2Seq
from pointing.pointer_softmax import AlwaysPoint, NeverPoint, Switch
from pointing.text.vocabulary import UNK

Predicted = tuple[Tensor, Tensor, Tensor]  # what Seq2Seq gives: readout, evidence, log l


def log_likelihood(
    config: Config, model: Seq2Seq, predicted: Predicted, batch: Batch, candidates: Tensor | None = None
) -> Tensor:
    """log p of what is to be learned at every step (B, T), 0 at padded steps.

    `training.loss: joint` is the paper's objective, log p(y, z | x) with z observed (§4); `marginal` sums z out, where
    there is a switch.
    """
    if config.training.loss == "marginal" and isinstance(model.output.switch, Switch):
        return model.output.log_marginal(*predicted, batch.source_words, batch.y, batch.mask, candidates)
    target, mask = choices(model, batch, predicted[2], config.pointers.unreachable == "attention")
    return model.output.log_likelihood(*predicted, target, mask, candidates)


def comparable(model: Seq2Seq, predicted: Predicted, batch: Batch) -> Tensor:
    """log p of the same events for every kind of output (B, T): each shortlist word, and "some other word".

    A softmax says UNK where a pointer softmax copies, so their own likelihoods are of different things. Here both are
    asked for the word, by whichever route, and all words outside the shortlist are one.
    """
    V = model.output.words
    y, x_words = (words.masked_fill(words >= V, UNK) for words in (batch.y, batch.source_words))
    return model.output.log_marginal(*predicted, x_words, y, batch.mask)


def choices(model: Seq2Seq, batch: Batch, log_l: Tensor, to_attention: bool) -> tuple[Tensor, Tensor]:
    """The target and its mask, both (B, T), as this output layer can choose them.

    The plain softmax has UNK where there is something to copy. A pointer network points at every word, at the first
    place that holds it, and steps whose word is nowhere are left out. With `to_attention` (§5.3), the target of a
    word that is neither in the shortlist nor in the source is where the model looks now.
    """
    V, target, mask = model.output.words, batch.target, batch.mask
    if isinstance(model.output.switch, NeverPoint):
        return batch.y.masked_fill(batch.y >= V, UNK), mask
    if isinstance(model.output.switch, AlwaysPoint):
        there = (batch.source_words.unsqueeze(1) == batch.y.unsqueeze(2)) & batch.x_mask.unsqueeze(1)  # (B, T, J)
        return torch.where(target < V, V + there.int().argmax(2), target), mask & (there.any(2) | (target >= V))
    if to_attention:
        return torch.where(target == UNK, V + log_l.detach().argmax(2), target), mask
    return target, mask


class Observed(NamedTuple):
    """What the text says of every step (B, T)."""

    mask: Tensor  # is it one?
    shortlist: Tensor  # z_t, as it is taught: is its word to be chosen from the shortlist?
    pointing: Tensor  # is there a place of the source that holds its word?
    found: Tensor  # and is l_t highest at that word? The word counts, not which of its places


def observed(config: Config, model: Seq2Seq, batch: Batch, log_l: Tensor) -> Observed:
    V = model.output.words
    target, mask = choices(model, batch, log_l, to_attention=False)
    pointing = mask & (target >= V)
    place = torch.where(pointing, target - V, 0)
    found = pointing & (batch.source_words.gather(1, log_l.argmax(2)) == batch.source_words.gather(1, place))
    if config.pointers.unreachable == "attention":
        target, _ = choices(model, batch, log_l, to_attention=True)
    return Observed(mask, target < V, pointing, found)
