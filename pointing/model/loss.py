"""The training objective: which choices a batch teaches to a model, and how probable the model finds them."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from pointing.config import Config
from pointing.corpus.examples import Batch
from pointing.corpus.pointers import NOWHERE
from pointing.kernels import distinct_rows, sparse_rows
from pointing.model.decoder import Decoder, Predicted
from pointing.pointer_softmax import PointerSoftmax
from pointing.text.vocabulary import EOS, UNK


class Objective(NamedTuple):
    """What is to be made large at every step (B, T), 0 at padded steps."""

    log_p: Tensor  # of what is to be learned
    others: list[Tensor]  # the other parts of the objective, with their weights


def objective(
    config: Config, model: Decoder, predicted: Predicted, batch: Batch, candidates: Tensor | None = None
) -> Objective:
    """The paper's objective (`log_likelihood`), and what the settings add: forms, guidance, label smoothing."""
    others = []
    if (forms := form_log_likelihood(model, predicted, batch)) is not None:
        others.append(forms)
    if config.pointers.guidance and (log_l := guidance(predicted, batch)) is not None:
        others.append(config.pointers.guidance * log_l)
    if config.training.smoothing and config.training.loss == "joint" and model.output.has_shortlist:
        target, mask = choices(model, batch, predicted.log_l, config.pointers.unreachable == "attention")
        smoothed = smoothing(model.output, predicted.readout, target, mask, candidates)
        others.append(config.training.smoothing * smoothed)
    return Objective(log_likelihood(config, model, predicted, batch, candidates), others)


def log_likelihood(
    config: Config, model: Decoder, predicted: Predicted, batch: Batch, candidates: Tensor | None = None
) -> Tensor:
    """log p of what is to be learned at every step (B, T), 0 at padded steps.

    `training.loss: joint` is the paper's objective, log p(y, z | x) with z observed (§4). `marginal` sums z out, if
    the output layer has a switch. `candidates` (C,) are the only shortlist words that compete.
    """
    if config.training.loss == "marginal" and model.output.has_switch:
        return model.output.log_marginal(*predicted, batch.source_words, batch.y, batch.mask, candidates)
    target, mask = choices(model, batch, predicted.log_l, config.pointers.unreachable == "attention")
    return model.output.log_likelihood(*predicted, target, mask, candidates)


def guidance(predicted: Predicted, batch: Batch) -> Tensor | None:
    """log l_t at the position that a word aligner links to the word of each step (B, T); 0 where there is none.

    None if the corpus has no links. Guided attention (Chen et al. 2016) is a further loss, not the paper's.
    """
    if batch.links is None:
        return None
    linked = batch.mask & (batch.links != NOWHERE)
    log_l = predicted.log_l.gather(-1, batch.links.clamp(min=0).unsqueeze(-1)).squeeze(-1)
    return log_l.float().masked_fill(~linked, 0.0)


def smoothing(
    output: PointerSoftmax, readout: Tensor, target: Tensor, mask: Tensor, candidates: Tensor | None = None
) -> Tensor:
    """The mean of log w_t over all words, less log w_t of the target (B, T); 0 where no shortlist word is learned.

    Both have the same normaliser, so it is a difference of logits: readout · (mean of W - W_y) + mean of b - b_y.
    """
    assert output.shortlist is not None
    at_word = (mask & (target < output.words)).flatten().nonzero().squeeze(1)  # (N,)
    readout, word = distinct_rows(readout.flatten(0, 1), at_word), target.flatten()[at_word]
    weight: Tensor = output.shortlist.weight
    bias: Tensor = output.shortlist.bias
    if candidates is not None:
        competing = torch.cat([candidates, word]).unique()
        word = torch.searchsorted(competing, word)
        weight, bias = sparse_rows(weight, competing), sparse_rows(bias, competing)
    difference = (readout * (weight.mean(0) - weight[word])).sum(-1) + bias.mean() - bias[word]
    return difference.new_zeros(target.numel()).index_copy(0, at_word, difference).view_as(target).float()


def form_log_likelihood(model: Decoder, predicted: Predicted, batch: Batch) -> Tensor | None:
    """log p of how each word is written (B, T), 0 at padding and at the end of sentence; None without forms."""
    logits = model.form_logits(predicted.readout, batch.x, batch.x_mask, batch.y, batch.place)
    if logits is None or batch.y_form is None:
        return None
    log_p = logits.float().log_softmax(-1).gather(-1, batch.y_form.unsqueeze(-1)).squeeze(-1)
    return log_p.masked_fill(~_words(batch), 0.0)


def forms_right(model: Decoder, predicted: Predicted, batch: Batch) -> tuple[Tensor, Tensor]:
    """(B, T) the words whose form is predicted, and where the most probable form is theirs; none without forms."""
    logits = model.form_logits(predicted.readout, batch.x, batch.x_mask, batch.y, batch.place)
    if logits is None or batch.y_form is None:
        return batch.mask & False, batch.mask & False
    return _words(batch), _words(batch) & (logits.argmax(-1) == batch.y_form)


def _words(batch: Batch) -> Tensor:
    """The steps that write a word."""
    return batch.mask & (batch.y != EOS)


def comparable(model: Decoder, predicted: Predicted, batch: Batch) -> Tensor:
    """log p of the same events for every kind of output (B, T): each shortlist word, and "some other word".

    A softmax says UNK where a pointer softmax copies, so their own likelihoods are of different events. Here both are
    asked for the word, by any route, and all words outside the shortlist are one event.
    """
    V = model.output.words
    y, source_words = (words.masked_fill(words >= V, UNK) for words in (batch.y, batch.source_words))
    return model.output.log_marginal(*predicted, source_words, y, batch.mask)


def choices(model: Decoder, batch: Batch, log_l: Tensor, to_attention: bool) -> tuple[Tensor, Tensor]:
    """The target and its mask, both (B, T), as this output layer can choose them.

    The plain softmax has UNK where there is a word to copy. A pointer network points at every word, at the first
    position that holds it; steps whose word is nowhere in the source are masked. With `to_attention` (§5.3), the
    target of a word that is neither in the shortlist nor in the source is the word of the source where l_t is highest.
    The source's end is no word: to point there ends the output, so it would teach the model to stop.
    """
    V, target, mask = model.output.words, batch.target, batch.mask
    if not model.output.can_point:
        return batch.y.masked_fill(batch.y >= V, UNK), mask
    if not model.output.has_shortlist:
        holds = (batch.source_words.unsqueeze(1) == batch.y.unsqueeze(2)) & batch.x_mask.unsqueeze(1)  # (B, T, J)
        return torch.where(target < V, V + holds.int().argmax(2), target), mask & (holds.any(2) | (target >= V))
    if to_attention:
        end = batch.x_mask.sum(1, keepdim=True) - 1  # (B, 1), the last position that is not padding
        at_end = torch.arange(log_l.shape[2], device=end.device) == end  # (B, J)
        position = log_l.detach().masked_fill(at_end.unsqueeze(1), -math.inf).argmax(2)  # (B, T)
        return torch.where((target == UNK) & (end > 0), V + position, target), mask
    return target, mask


class Observed(NamedTuple):
    """What the text says of every step (B, T), True or False."""

    mask: Tensor  # the step is real, not padding
    shortlist: Tensor  # z_t as it is taught: the word is to be chosen from the shortlist
    pointing: Tensor  # a source position holds the word
    found: Tensor  # l_t is highest at a position that holds the word, whichever of them it is


def observed(config: Config, model: Decoder, batch: Batch, log_l: Tensor) -> Observed:
    V = model.output.words
    target, mask = choices(model, batch, log_l, to_attention=False)
    pointing = mask & (target >= V)
    position = torch.where(pointing, target - V, 0)
    found = pointing & (batch.source_words.gather(1, log_l.argmax(2)) == batch.source_words.gather(1, position))
    if config.pointers.unreachable == "attention":
        target, _ = choices(model, batch, log_l, to_attention=True)
    return Observed(mask, target < V, pointing, found)
