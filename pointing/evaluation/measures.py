"""Outputs beside references, in one form: every measure of one system.

A model that reads lower-cased text writes lower-cased words and copies others as they stand in the source, so output
and reference are compared in the form that the model reads: what `Tokenizer.normalise` makes of them. Signatures
say so (`form:nfc,lower`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice, repeat
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from pointing import __version__
from pointing.corpus.batches import plan
from pointing.corpus.encoding import encode_pairs, tokenize_pairs
from pointing.corpus.examples import Batch, Split
from pointing.evaluation.copy_metrics import Bin, Example, closest, copy_scores, switch_scores
from pointing.evaluation.metrics import DUC_BYTES, bleu, chrf, exact_match, rouge, tokenised_bleu
from pointing.evaluation.significance import Measure, ratio
from pointing.generation.output import Output
from pointing.model.loss import observed
from pointing.model.run import Run
from pointing.pointer_softmax import Switch
from pointing.system.files import count_lines, read_blocks
from pointing.system.progress import progress
from pointing.text import entities
from pointing.text.entities import Tagged, read_tags
from pointing.text.tokenizer import Tokenizer

BLOCK = 10_000  # lines of training text that are counted at a time
BATCH = 64  # pairs that are teacher-forced together


def form(tokenizer: Tokenizer) -> str:
    """What is done to words before they are compared, as signatures have it."""
    steps = {"lower": tokenizer.lowercase, "digits": tokenizer.digits == "fold"}
    unicode = [] if tokenizer.unicode == "keep" else [tokenizer.unicode]
    return ",".join([*unicode, *(name for name, done in steps.items() if done)])


def words(output: Output | str, tokenizer: Tokenizer) -> list[str]:
    """An output's words: those that the model wrote, or what the tokenizer makes of a line."""
    if isinstance(output, str):
        return tokenizer.words(output)
    return [tokenizer.normalise(token.text) for token in output.tokens]


def line(output: Output | str, tokenizer: Tokenizer) -> str:
    """The detokenised line in the tokenizer's form."""
    text = output if isinstance(output, str) else output.text
    return " ".join(map(tokenizer.normalise, text.split()))


def cut(texts: Iterable[str], tokenizer: Tokenizer, tags: Iterable[Tagged] | None = None) -> Iterator[list[str]]:
    """The words of lines: as their tags cut them, which is what models with entities learn to write; else our own."""
    for text, tagged in zip(texts, chain(tags or (), repeat(None)), strict=False):  # as many tags as there are
        tokens = None if tagged is None else entities.tokens_as_tagged(text, tagged, tokenizer.normalise)
        yield tokenizer.words(text) if tokens is None else tokens.words


def text_measures(
    outputs: Sequence[Output | str],
    references: Sequence[Sequence[str]],
    tokenizer: Tokenizer,
    tags: Sequence[Tagged] | None = None,
) -> list[Measure]:
    """BLEU, chrF, ROUGE and exact match; `tags` are the references'.

    Tokenised BLEU and exact match see tokens, so that no detokenizer is to blame; the others lines as people read them.
    """
    said = [" ".join(words(output, tokenizer)) for output in outputs]
    meant = [[" ".join(some) for some in cut(reference, tokenizer, tags)] for reference in references]
    lines, wanted = [line(o, tokenizer) for o in outputs], [[line(o, tokenizer) for o in one] for one in references]
    by_tokens = [tokenised_bleu(said, meant), exact_match(said, meant)]
    by_tokens = [_signed(measure, _tokens(tokenizer, tags)) for measure in by_tokens]
    full = [measure for measure in rouge(lines, wanted) if not measure.name.endswith("precision")]
    short = rouge(lines, wanted, max_bytes=DUC_BYTES)
    found = [by_tokens[0], bleu(lines, wanted), chrf(lines, wanted), *full, *short, by_tokens[1]]
    return [_signed(measure, _form(tokenizer)) for measure in found]


def copy_measures(
    outputs: Sequence[Output | str],
    sources: Sequence[str],
    references: Sequence[Sequence[str]],
    tokenizers: tuple[Tokenizer, Tokenizer],
    shortlist: Container[str],
    *,
    tags: Sequence[Tagged] | None = None,
    frequency: Mapping[str, int] | None = None,
    seen_in: str = "",
    translations: Callable[[str], Iterable[str]] | None = None,
    unk: str,
) -> list[Measure]:
    """What copying did, and the words of each band of training frequency, counted in the file `seen_in`.

    Of several references the one that shares the most words with the output counts. `tokenizers` are those of source
    and target, `tags` the references'.
    """
    reader, tokenizer = tokenizers
    wanted = [cut(reference, tokenizer, tags) for reference in references]
    examples = []
    for output, source, *those in zip(outputs, sources, *wanted, strict=True):
        said = words(output, tokenizer)
        if isinstance(output, str):
            examples.append(Example(reader.words(source), closest(said, those), said))
        else:  # the words that the model could have copied
            read = [reader.normalise(output.source.raw(position)) for position in range(len(output.source.ids))]
            examples.append(Example(read, closest(said, those), said, [token.origin for token in output.tokens]))
    scores = copy_scores(examples, shortlist, frequency=frequency, translations=translations, unk=unk)
    several = "" if len(references) == 1 else f"|closest-of:{len(references)}"
    beside = several + _tokens(tokenizer, tags) + _form(tokenizer)
    bands = {id(band.recall) for band in scores.bands}
    return [_signed(m, (f"|seen-in:{seen_in}" if id(m) in bands else "") + beside) for m in scores.measures()]


def frequencies(path: Path, tokenizer: Tokenizer, tags: Path | None = None) -> Counter[str]:
    """How often each word stands in the training text, in pairs left out of training too."""
    counts: Counter[str] = Counter()
    tagged = None if tags is None else read_tags(tags)
    with progress(f"counting words of {path.name}", count_lines(path), "lines") as bar:
        for block in read_blocks(path, BLOCK):
            texts = [one.decode("utf-8", "replace") for one in block]
            for some in cut(texts, tokenizer, None if tagged is None else islice(tagged, len(block))):
                counts.update(some)
            bar.advance(len(block))
    return counts


class Switching(NamedTuple):
    """How well a run's switch and pointers do where the words before are the reference's."""

    measures: list[Measure]
    bins: tuple[Bin, ...]  # of the reliability plot
    pairs: int  # that were measured; others are empty, or longer than those of training


def switch_measures(
    run: Run,
    sources: Sequence[str],
    references: Sequence[Sequence[str]],
    tags: Sequence[Tagged] | None = None,
    reference_tags: Sequence[Tagged] | None = None,
) -> Switching | None:
    """The switch, teacher-forced on the references; None for a model without one, or where no pair can be read.

    Pairs are read, and what should have been chosen is decided, by what `prepare` does with a dev part. With entities
    and no tagger the references' tags are needed, of the only reference.
    """
    tagger = run.config.pointers.policy != "entities" or run.config.pointers.tagger is not None
    paired = None if tags is None or reference_tags is None else list(zip(tags, reference_tags, strict=True))
    if not isinstance(run.model.output.switch, Switch) or not (tagger or paired is not None):
        return None
    steps, pairs = [], 0
    for reference in references:
        split = _encoded(run, sources, reference, paired)
        pairs += len(split)
        line_of = np.array([line for group in split.groups for line in group.column("line").to_pylist()], np.int64)
        batches = plan(split.source_lengths, split.target_lengths, BATCH, "sentences", 0, 0) if len(split) else []
        steps += [_steps(run, split.batch(rows), line_of[rows] - 1) for rows in batches]
    if not steps:
        return None
    d, z, example, pointing, found = (np.concatenate(part) for part in zip(*steps, strict=True))
    scores = switch_scores(d, z, example)
    pointers = np.stack([np.bincount(example, some, len(sources)) for some in (found, pointing)], 1).astype(np.float64)
    at = Measure("pointer accuracy", f"pointer-accuracy|at:argmax-l|version:{__version__}", pointers, ratio)
    several = "" if len(references) == 1 else f"|of-refs:{len(references)}"
    forced = [_signed(_filled(m, len(sources)), f"|forced:references{several}") for m in [*scores.measures(), at]]
    return Switching(forced, scores.bins, pairs)


@torch.inference_mode()
def _steps(run: Run, batch: Batch, example: npt.NDArray[np.int64]) -> list[npt.NDArray[Any]]:
    """Of every real step: d_t, was it the shortlist, its example, was it a pointer, was l_t highest at that word."""
    model = run.model
    batch = batch.to(next(model.parameters()).device)
    _, evidence, log_l = model(batch.x, batch.x_mask, batch.y)
    mask, shortlist, pointing, found = observed(run.config, model, batch, log_l)
    assert isinstance(model.output.switch, Switch)
    d = model.output.switch(evidence[mask]).sigmoid()
    parts = (d.float(), shortlist[mask], pointing[mask], found[mask])
    d_t, z, pointed, right = (part.cpu().numpy() for part in parts)
    return [d_t, z, np.repeat(example, mask.sum(1).cpu().numpy()), pointed, right]


def _encoded(
    run: Run, sources: Sequence[str], reference: Sequence[str], tags: list[tuple[Tagged, Tagged]] | None
) -> Split:
    """Pairs as the prepared corpus of the run would have them."""
    source, target = ([f"{text}\n".encode("utf-8", "replace") for text in side] for side in (sources, reference))
    pairs, _ = tokenize_pairs(run.lexicon.tokenization, source, target, tags, first_line=1)
    examples, _ = encode_pairs(run.lexicon, pairs, np.array(pairs.rows, np.int32) + 1)
    return Split([examples])


def _filled(measure: Measure, examples: int) -> Measure:
    """With rows of zeros for the last examples, if they have no step: to be drawn together with other measures."""
    return replace(measure, numbers=np.pad(measure.numbers, ((0, examples - len(measure.numbers)), (0, 0))))


def _tokens(tokenizer: Tokenizer, tags: Sequence[Tagged] | None) -> str:
    kind = f"{tokenizer.kind}-{tokenizer.language}" if tokenizer.kind == "moses" else tokenizer.kind
    return f"|tokens:{kind if tags is None else 'tags'}"


def _form(tokenizer: Tokenizer) -> str:
    return f"|form:{form(tokenizer)}" if form(tokenizer) else ""


def _signed(measure: Measure, more: str) -> Measure:
    return replace(measure, signature=measure.signature + more)
