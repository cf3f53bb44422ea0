"""What the dev part says about a model in training: likelihoods, pointers, switch, and a few outputs."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from pointing.config import Config
from pointing.corpus.batches import plan
from pointing.corpus.examples import Batch, Split
from pointing.evaluation.copy_metrics import switch_scores
from pointing.model.loss import comparable, log_likelihood, observed
from pointing.model.seq2seq import Seq2Seq
from pointing.pointer_softmax import Switch
from pointing.system.world import Processes


class Steps(NamedTuple):
    """What was measured at the steps of some batches: sums, and the switch's d_t with what it should have been."""

    sums: npt.NDArray[np.float64]  # sentences, words, log p, log p comparable, pointers, pointers at the right word
    d: npt.NDArray[np.float32]
    z: npt.NDArray[np.bool_]


@torch.no_grad()
def validate(config: Config, model: Seq2Seq, split: Split, processes: Processes) -> dict[str, Any]:
    """The numbers of one validation, of a model in eval mode; each process takes its share of the batches."""
    batches = plan(split.source_lengths, split.target_lengths, config.training.batch, config.training.batch_by, 0, 0)
    mine = [
        _measure(config, model, split.batch(rows).to(processes.device))
        for rows in batches[processes.rank :: processes.world]
    ]
    return _numbers(_joined(processes.gather(_joined(mine))))


def _measure(config: Config, model: Seq2Seq, batch: Batch) -> Steps:
    predicted = model(batch.x, batch.x_mask, batch.y)
    log_p = log_likelihood(config, model, predicted, batch)
    same = (
        comparable(model, predicted, batch) if model.output.shortlist is not None else torch.full_like(log_p, math.nan)
    )
    mask, shortlist, pointing, found = observed(config, model, batch, predicted[2])
    sums = [mask.sum(), log_p.sum(), same.sum(), pointing.sum(), found.sum()]
    d, z = log_p.new_empty(0), mask.new_empty(0)
    if isinstance(model.output.switch, Switch):
        d, z = model.output.switch(predicted[1][mask]).sigmoid(), shortlist[mask]
    return Steps(np.array([len(batch.x), *(number.item() for number in sums)], np.float64), _array(d), _array(z))


def _numbers(steps: Steps) -> dict[str, Any]:
    sentences, words, log_p, same, pointers, right = steps.sums.tolist()
    numbers: dict[str, Any] = {
        "sentences": int(sentences),
        "words": int(words),
        "nll": -log_p / sentences,
        "nll_word": -log_p / words,
        "comparable_nll": None if math.isnan(same) else -same / sentences,
        "comparable_nll_word": None if math.isnan(same) else -same / words,
        "pointers": int(pointers),
        "pointer_accuracy": right / pointers if pointers else None,
    }
    if len(steps.d) and np.isfinite(log_p):
        scores = switch_scores(steps.d, steps.z, np.zeros(len(steps.d), np.int64))
        numbers["switch"] = {
            **{"accuracy": scores.accuracy.score, "precision": scores.precision.score},
            **{"recall": scores.recall.score, "calibration_error": scores.calibration.score},
            "pointing": float(1 - steps.d.mean()),
            "bins": [bin._asdict() for bin in scores.bins],
        }
    return numbers


def _joined(steps: list[Steps]) -> Steps:
    nothing = Steps(np.zeros(6), np.empty(0, np.float32), np.empty(0, np.bool_))
    sums, d, z = zip(nothing, *steps, strict=True)
    return Steps(np.sum(sums, 0), np.concatenate(d), np.concatenate(z))


def _array(x: Tensor) -> npt.NDArray[Any]:
    array: npt.NDArray[Any] = x.float().cpu().numpy() if x.is_floating_point() else x.cpu().numpy()
    return array
