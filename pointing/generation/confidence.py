"""The confidence of an output: the chrF (0 to 1) that is to be expected of it against a person's translation.

A few numbers that search leaves behind (`features`) → a linear score → a calibrated number. `evaluation/calibration.py`
learns both maps from the run's dev part and writes them into the run as confidence.json.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import numpy.typing as npt
from pydantic import Field, model_validator

from pointing.config import Positive, Settings, checked
from pointing.errors import Misuse
from pointing.generation.beam import Hypothesis
from pointing.generation.reader import Line
from pointing.model.exported import folder_of
from pointing.model.run import CONFIDENCE as CONFIDENCE
from pointing.system.border import read_object
from pointing.system.files import whole_file
from pointing.system.manifest import announce
from pointing.text.vocabulary import UNK

FEATURES = (
    "mean log-probability",
    "lowest log-probability",
    "log of the length ratio",
    "unknown share of the source",
    "unknown and not copied",
    "sureness of the switch",
)
LOWEST = -15.0  # log-probabilities below are as good as this
Floats = npt.NDArray[np.float64]
Share = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=0)]


def features(hypothesis: Hypothesis, line: Line, copied: Iterable[int | None]) -> Floats:
    """(6,) the FEATURES of an output; `copied` are the source positions that it has words from.

    Protected spans count neither as known nor as unknown words: every output has them. Sureness is 1 where d_t is 0 or
    1, and 0 where it is 1/2.
    """
    # Lists: for a line's few words they are several times as fast as arrays.
    log_p, d, protected = hypothesis.log_p.tolist(), hypothesis.d.tolist(), line.protected
    unknown = [position for position, word in enumerate(line.ids.tolist()) if word == UNK]
    if protected is not None:
        unknown = [position for position in unknown if protected[position] == 0]
    lost, J = len(set(unknown).difference(copied)), len(line.ids)
    return np.array(
        [
            sum(max(number, LOWEST) for number in log_p) / len(log_p),
            max(min(log_p), LOWEST),
            math.log(len(log_p) / (J + 1)),  # both with their end of sentence
            len(unknown) / J,
            lost / J,
            sum(abs(2 * number - 1) for number in d) / len(d),
        ]
    )


class Feature(Settings):
    """How much a feature counts, once its mean over the calibration lines is taken away and it is scaled."""

    name: str
    mean: float
    scale: Annotated[float, Field(gt=0)]
    weight: float


class Bin(Settings):
    """Lines whose confidence lies between `low` and `high`, held out from the fit: what it says, and what they are."""

    low: Share
    high: Share
    lines: Count
    confidence: Share | None  # the mean; None without lines
    chrf: Share | None


class Confidence(Settings):
    """What is in confidence.json."""

    kind: Literal["pointing-confidence-1"] = "pointing-confidence-1"
    features: tuple[Feature, ...]
    intercept: float
    knots: Annotated[tuple[tuple[float, Share], ...], Field(min_length=1)]  # (score, confidence), both increasing
    review_below: Share  # a tenth of the calibration lines have less
    lines: Positive  # of the dev part that it was learned from
    damaged_lines: Count  # the same with invented words
    error: Share  # expected calibration error on lines that were held out
    bins: tuple[Bin, ...]
    signature: str  # of the chrF
    weights: dict[str, float | None]  # which weights of the run it is for

    @model_validator(mode="after")
    def _fits_together(self) -> Confidence:
        if tuple(feature.name for feature in self.features) != FEATURES:
            raise ValueError(f"features: should be {', '.join(FEATURES)}")
        pairs = list(zip(self.knots, self.knots[1:], strict=False))
        if any(x >= next_x or y > next_y for (x, y), (next_x, next_y) in pairs):
            raise ValueError("knots: scores and confidences should increase")
        return self

    @cached_property
    def _arrays(self) -> tuple[Floats, Floats, Floats, Floats]:
        """Means of the features, weights by their scales, scores and confidences of the knots."""
        knots = np.array(self.knots)
        weights = [feature.weight / feature.scale for feature in self.features]
        return np.array([feature.mean for feature in self.features]), np.array(weights), knots[:, 0], knots[:, 1]

    def of(self, numbers: Floats) -> Floats:
        """The confidences of outputs from their features (…, 6)."""
        means, weights, scores, confidences = self._arrays
        return calibrated((numbers - means) @ weights + self.intercept, scores, confidences)


def calibrated(score: Floats, scores: Floats, confidences: Floats) -> Floats:
    """Straight lines between the knots. Below the first one it goes on as the score does, which is a chrF as well."""
    found: Floats = np.interp(score, scores, confidences) - np.maximum(scores[0] - score, 0)
    return found.clip(0, 1)


def save_confidence(confidence: Confidence, folder: Path) -> None:
    with whole_file(folder / CONFIDENCE) as part:
        part.write_text(json.dumps(confidence.model_dump(mode="json"), indent=1) + "\n", encoding="utf-8")
        announce(folder / CONFIDENCE, part)


def load_confidence(folder: str | Path) -> Confidence | None:
    """What `save_confidence` wrote; None if there is none."""
    path = folder_of(folder) / CONFIDENCE
    if not path.exists():
        return None
    try:
        return checked(Confidence, read_object(path, "what a run learned about its confidence"), path)
    except Misuse as error:
        raise Misuse(f"{error}: make it anew with `pointing calibrate {folder}`") from None


def confidence_for(folder: str | Path, about: dict[str, Any]) -> Confidence | None:
    """The run's confidence, if it was learned with the weights that it has now; `about` is what their file says."""
    confidence = load_confidence(folder)
    return None if confidence is None or confidence.weights != weights_id(about) else confidence


def weights_id(about: dict[str, Any]) -> dict[str, float | None]:
    """What tells a run's weights from those of another update or another run; `about` is what their file says."""
    return {"update": about.get("update"), "nll": about.get("dev", {}).get("nll")}
