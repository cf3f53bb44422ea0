"""Where does l_t look? Its alignment error in sentences that were aligned by hand, for runs of the toolkit.

    python benchmarks/alignment.py RUN… --gold-text gold.txt --gold-alignments gold.align

The gold text has lines `source ||| target`, tokenised; the alignments have lines of `1-1 2-3 4p3`, counted from 1:
`-` is a sure link, `p` a possible one. Runs read the pairs with all previous words given. Each target word is linked
to the source word where l_t is highest at the word's first step; the source's end is left out.

precision = links that are sure or possible / links; recall = sure links found / sure links; AER as in Och and Ney
(2003). *copied*: the words that the model is taught to copy.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import torch
from dictionary_precision import Gold, Links, read_gold

from pointing.corpus.encoding import encode_pairs, tokenize_pairs
from pointing.corpus.examples import Split
from pointing.model.run import Run, load_run
from pointing.system.tables import Table
from pointing.text.subwords import split_into_pieces
from pointing.text.token_arrays import TokenArrays

BATCH = 64
Span = tuple[int, int]


def links_of(run: Run, gold: Sequence[Gold]) -> Iterator[tuple[int, Links, set[int]]]:
    """For each pair that the run can read: its number, the links of gold words, and the words taught as copies."""
    lines = [[f"{' '.join(side)}\n".encode() for side in (pair.source, pair.target)] for pair in gold]
    sources, targets = map(list, zip(*lines, strict=True))
    pairs, _ = tokenize_pairs(run.lexicon.tokenization, sources, targets, None, range(1, len(gold) + 1))
    examples, _ = encode_pairs(run.lexicon, pairs, np.array(pairs.rows, np.int32) + 1)
    split, V = Split([examples]), len(run.lexicon.target)
    sizes = pieces_of_tokens(run, pairs.target)
    target_spans, source_spans = spans_of(pairs.target), spans_of(pairs.source)
    starts = np.cumsum(pairs.target.counts) - pairs.target.counts
    for first in range(0, len(split), BATCH):
        batch = split.batch(np.arange(first, min(first + BATCH, len(split))))
        with torch.inference_mode():
            log_l = run.model(batch.x, batch.x_mask, batch.y, batch.x_form, batch.place).log_l
        for row, example in enumerate(range(first, first + len(batch.rows))):
            number, words = pairs.rows[example], source_spans[example]
            at_source, at_target = gold_words(gold[number].source), gold_words(gold[number].target)
            looks = log_l[row, :, : len(words)].argmax(-1).tolist()
            choice, step = batch.target[row].tolist(), 0
            links: Links = set()
            copied: set[int] = set()
            for token, span in enumerate(target_spans[example]):
                j = overlapping(at_target, span)
                links |= {(i, k) for i in overlapping(at_source, words[looks[step]]) for k in j}
                is_copy = choice[step] >= V
                copied |= set(j) if is_copy else set()
                step += 1 if is_copy else sizes[starts[example] + token]
            yield number, links, copied


def pieces_of_tokens(run: Run, target: TokenArrays) -> list[int]:
    """How many steps each target token takes that is not copied."""
    if run.lexicon.target.merges is None:
        return [1] * len(target.ids)
    if not run.config.points_at_words:
        raise SystemExit("this run points at pieces, which have no place in the gold alignments")
    token = split_into_pieces(target, run.lexicon.target.merges)[1]
    sizes: list[int] = np.bincount(token, minlength=len(target.ids)).tolist()
    return sizes


def spans_of(tokens: TokenArrays) -> list[list[Span]]:
    """The characters of each line's tokens."""
    every = list(zip(tokens.starts.tolist(), tokens.ends.tolist(), strict=True))
    ends = np.cumsum(tokens.counts).tolist()
    return [every[end - count : end] for end, count in zip(ends, tokens.counts.tolist(), strict=True)]


def gold_words(words: Sequence[str]) -> list[Span]:
    """The characters of words that are joined by spaces."""
    ends = np.cumsum([len(word) + 1 for word in words]) - 1
    return [(int(end) - len(word), int(end)) for word, end in zip(words, ends, strict=True)]


def overlapping(spans: Sequence[Span], of: Span) -> list[int]:
    return [number for number, (start, end) in enumerate(spans) if start < of[1] and of[0] < end]


def scores(found: Sequence[tuple[int, Links, set[int]]], gold: Sequence[Gold], copied_only: bool) -> list[str]:
    links = right = sure_found = sure_all = 0
    for number, made, copied in found:
        pair = gold[number]
        counted = copied if copied_only else set(range(len(pair.target)))
        linked, sure = ({(i, j) for i, j in each if j in counted} for each in (made, pair.sure))
        links, right = links + len(linked), right + len(linked & pair.possible)
        sure_found, sure_all = sure_found + len(linked & sure), sure_all + len(sure)
    aer = 1 - (sure_found + right) / max(1, links + sure_all)
    numbers = (right / max(1, links), sure_found / max(1, sure_all), aer)
    return [f"{links:,}", *(f"{100 * number:.1f}" for number in numbers)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("runs", type=Path, nargs="+")
    parser.add_argument("--gold-text", required=True)
    parser.add_argument("--gold-alignments", required=True)
    args = parser.parse_args()
    gold, rows = read_gold(args.gold_text, args.gold_alignments), []
    for path in args.runs:
        found = list(links_of(load_run(path), gold))
        rows.append([path.name, f"{len(found)}", *scores(found, gold, False), *scores(found, gold, True)])
    header = ["run", "pairs", "links", "precision", "recall", "AER", "copied: links", "precision", "recall", "AER"]
    Table("Alignments by the argmax of l_t", header, rows).show()


if __name__ == "__main__":
    main()
