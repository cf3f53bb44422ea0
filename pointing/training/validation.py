"""One validation: likelihood, pointers and switch of a model on the dev part."""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from pointing.config import Config
from pointing.corpus.batches import plan
from pointing.corpus.examples import Batch, Split
from pointing.evaluation.copy_metrics import switch_scores
from pointing.model.decoder import Decoder
from pointing.model.loss import comparable, forms_right, log_likelihood, observed
from pointing.system.world import Processes


class Measured(NamedTuple):
    """What was measured on some batches: the switch at each step, and sums over all steps."""

    d: npt.NDArray[np.float32]  # the switch's d_t
    z: npt.NDArray[np.bool_]  # what the switch should have chosen; True: the shortlist
    sentences: float
    words: float
    log_p: float  # of the model's own choices
    comparable_log_p: float  # of the same events for every kind of output; NaN for a pointer network
    pointers: float  # steps whose word stands in the source
    pointers_right: float  # of these, steps where l_t is highest at that word
    forms: float  # words whose form is predicted; 0 without forms
    forms_right: float


@torch.no_grad()
def validate(config: Config, model: Decoder, split: Split, processes: Processes) -> dict[str, Any]:
    """The numbers of one validation of a model in eval mode. Each process measures its share of the batches."""
    batches = plan(split.source_lengths, split.target_lengths, config.training.batch, config.training.batch_by, 0, 0)
    share = [
        _measure(config, model, split.batch(rows).to(processes.device))
        for rows in batches[processes.rank :: processes.world_size]
    ]
    return _numbers(_joined(chain.from_iterable(processes.gather(share))))


def _measure(config: Config, model: Decoder, batch: Batch) -> Measured:
    predicted = model(batch.x, batch.x_mask, batch.y, batch.x_form, batch.place)
    log_p = log_likelihood(config, model, predicted, batch)
    comparable_log_p = (
        comparable(model, predicted, batch) if model.output.has_shortlist else torch.full_like(log_p, math.nan)
    )
    mask, shortlist, pointing, found = observed(config, model, batch, predicted[2])
    written, right = forms_right(model, predicted, batch)
    sums = [step.sum().item() for step in (mask, log_p, comparable_log_p, pointing, found, written, right)]
    d, z = log_p.new_empty(0), mask.new_empty(0)
    if model.output.has_switch:
        d, z = model.output.switch(predicted[1][mask]).sigmoid(), shortlist[mask]
    return Measured(d.float().cpu().numpy(), z.cpu().numpy(), len(batch.x), *sums)


def _joined(parts: Iterable[Measured]) -> Measured:
    """Several measurements as one."""
    d, z, *sums = zip(*parts, strict=True)
    return Measured(np.concatenate(d), np.concatenate(z), *np.sum(sums, 1).tolist())


def _numbers(measured: Measured) -> dict[str, Any]:
    """The measurements as they stand in the journal."""
    d, z, sentences, words, log_p, comparable_log_p, pointers, pointers_right, forms, right_forms = measured
    has_comparable = not math.isnan(comparable_log_p)
    numbers: dict[str, Any] = {
        "sentences": int(sentences),
        "words": int(words),
        "nll": -log_p / sentences,
        "nll_word": -log_p / words,
        "comparable_nll": -comparable_log_p / sentences if has_comparable else None,
        "comparable_nll_word": -comparable_log_p / words if has_comparable else None,
        "pointers": int(pointers),
        "pointer_accuracy": pointers_right / pointers if pointers else None,
    }
    if forms:
        numbers["form_accuracy"] = right_forms / forms
    if len(d) and np.isfinite(log_p):
        scores = switch_scores(d, z, np.zeros(len(d), np.int64))
        numbers["switch"] = {
            "accuracy": scores.accuracy.score,
            "precision": scores.precision.score,
            "recall": scores.recall.score,
            "calibration_error": scores.calibration.score,
            "pointing": float(1 - d.mean()),
            "bins": [bin._asdict() for bin in scores.bins],
        }
    return numbers
