"""How a run ended, in one sentence that says what its numbers are."""

import pytest

from pointing.training.loop import sentence

SUMMARY = {"folder": "runs/x", "update": 12_345, "seconds": 90.0, "best_update": 9_000, "best": -41.27}


@pytest.mark.parametrize(
    ("dev", "scores"),
    [
        ({"nll": 12.346, "bleu": 41.27}, "NLL 12.35 a sentence, BLEU 41.3"),
        ({"nll": 12.0, "rouge": 30.06}, "NLL 12.00 a sentence, ROUGE-L F1 30.1"),
        ({"nll": 0.5}, "NLL 0.50 a sentence"),
    ],
)
def test_the_sentence_names_its_numbers(dev, scores):
    assert sentence(SUMMARY | {"dev": dev}) == (
        f"runs/x: 12,345 updates in 1.5 minutes, the best at update 9,000; its dev scores: {scores}"
    )
