"""Would a pointer that goes on to the next place pay? How often that is right, and how often l_t finds it by itself.

    python benchmarks/runs_of_words.py RUN… --source test.en --reference test.fr

Runs read the pairs with all previous words given. A pointer *goes on* if the step before is taught as a pointer, too,
at the place before its own. It is *found* if l_t is highest at a place that holds the word.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import torch

from pointing.corpus.encoding import encode_pairs, tokenize_pairs
from pointing.corpus.examples import Split
from pointing.model.loss import observed
from pointing.model.run import Run, load_run
from pointing.system.tables import Table

BATCH = 64


def found(run: Run, source: Path, reference: Path) -> np.ndarray:
    """(2, 2) numbers of pointers: that go on, or not; all of them, and those that are found."""
    lines = [path.read_bytes().splitlines(keepends=True) for path in (source, reference)]
    pairs, _ = tokenize_pairs(run.lexicon.tokenization, *lines, None, range(1, len(lines[0]) + 1))
    split = Split([encode_pairs(run.lexicon, pairs, np.array(pairs.rows, np.int32) + 1)[0]])
    V, counts = len(run.lexicon.target), np.zeros((2, 2), np.int64)
    for first in range(0, len(split), BATCH):
        batch = split.batch(np.arange(first, min(first + BATCH, len(split))))
        with torch.inference_mode():
            predicted = run.model(batch.x, batch.x_mask, batch.y, batch.x_form, batch.place)
            _, _, pointing, right = observed(run.config, run.model, batch, predicted.log_l)
        target, before = batch.target, batch.target.roll(1, 1)
        goes_on = pointing & (before >= V) & (target == before + 1)
        goes_on[:, 0] = False
        for row, which in enumerate((goes_on, pointing & ~goes_on)):
            counts[row] += np.array([int(which.sum()), int((which & right).sum())])
    return counts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("runs", type=Path, nargs="+")
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--reference", type=Path, required=True)
    args = parser.parse_args()
    rows = []
    for path in args.runs:
        counts = found(load_run(path), args.source, args.reference)
        shares = 100 * counts[:, 1] / np.maximum(counts[:, 0], 1)
        of_all = 100 * counts[0, 0] / max(1, counts[:, 0].sum())
        rows.append([path.name, f"{counts[:, 0].sum():,}", f"{of_all:.1f}", *(f"{share:.1f}" for share in shares)])
    Table("Pointers that go on", ["run", "pointers", "% that go on", "found, %", "others found, %"], rows).show()


if __name__ == "__main__":
    main()
