"""All measures of one system: its outputs and the references, compared in the same form.

A model that reads lower-cased text writes lower-cased words, but copies words as they are written in the source. So
outputs and references are compared in the form that the model reads, which `Tokenizer.normalise` makes. Signatures
name it: `form:nfc,lower`. Exact match is always that of the text as it is delivered.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from pointing import __version__
from pointing.corpus.batches import plan
from pointing.corpus.encoding import encode_pairs, tokenize_pairs
from pointing.corpus.examples import Batch, Split
from pointing.corpus.sources import RawSplit
from pointing.corpus.training_words import count_words, words_of_line, words_of_lines
from pointing.evaluation.copy_metrics import Bin, Example, closest, copy_scores, switch_scores
from pointing.evaluation.evaluation_set import EvaluationSet
from pointing.evaluation.metrics import DUC_BYTES, bleu, chrf, exact_match, exact_match_of_tokens, rouge, tokenised_bleu
from pointing.evaluation.significance import Measure, ratio
from pointing.generation.output import Output, Token, WordOrigin
from pointing.model.loss import observed
from pointing.model.run import Run
from pointing.system.files import count_lines, read_blocks
from pointing.system.progress import progress
from pointing.text.compounds import HYPHENS
from pointing.text.entities import Tagged
from pointing.text.tokenizer import Tokenizer

LINES_PER_BLOCK = 10_000  # lines of training text whose words are counted at a time
PAIRS_PER_BATCH = 64  # test pairs that are teacher-forced together


def form_name(tokenizer: Tokenizer) -> str:
    """What the tokenizer does to words before they are compared, as in signatures: `nfc,lower,digits`."""
    steps = {"lower": tokenizer.lowercase, "digits": tokenizer.digits == "fold"}
    unicode = [] if tokenizer.unicode == "keep" else [tokenizer.unicode]
    return ",".join([*unicode, *(name for name, done in steps.items() if done)])


def words_in_form(output: Output | str, tokenizer: Tokenizer) -> list[str]:
    """The normalised words of an output, as the model wrote them, or of a line, as the tokenizer finds them.

    A compound that was written part by part (Tango, -, Geräte) is one word, as it is in the text.
    """
    if isinstance(output, str):
        return words_of_line(output, tokenizer)
    return [tokenizer.normalise("".join(token.text for token in word)) for word in _tokens_of_words(output)]


def origins_of_words(output: Output) -> list[WordOrigin]:
    """Where each of these words came from: a compound from the shortlist, unless all of its parts were copied."""
    return [word[0].origin if len(word) == 1 else _origin(word) for word in _tokens_of_words(output)]


def _origin(compound: Sequence[Token]) -> WordOrigin:
    return "copied" if all(token.origin == "copied" for token in compound) else "shortlist"


def _tokens_of_words(output: Output) -> list[list[Token]]:
    """The tokens of each word: one, or those of a compound, which have nothing but hyphens between them."""
    words: list[list[Token]] = []
    for token, before in zip(output.tokens, [None, *output.tokens], strict=False):
        joined = before is not None and before.output[1] == token.output[0]
        after_hyphen = before is not None and before.text in HYPHENS and len(words[-1]) > 1
        if joined and (after_hyphen or (token.text in HYPHENS and words[-1][-1].text[-1:].isalnum())):
            words[-1].append(token)
        else:
            words.append([token])
    return words


def line_in_form(output: Output | str, tokenizer: Tokenizer) -> str:
    """The detokenised line, normalised by the tokenizer."""
    text = output if isinstance(output, str) else output.text
    return " ".join(map(tokenizer.normalise, text.split()))


def text_measures(outputs: Sequence[Output | str], test: EvaluationSet, tokenizer: Tokenizer) -> list[Measure]:
    """BLEU, chrF, ROUGE and exact match.

    Tokenised BLEU and the exact match of tokens compare tokens, so that they do not depend on a detokenizer. The others
    compare detokenised lines; exact match those that are delivered, in no other form.
    """
    tokens = [" ".join(words_in_form(output, tokenizer)) for output in outputs]
    reference_tokens = [
        [" ".join(words) for words in words_of_lines(reference, tokenizer, test.reference_tags)]
        for reference in test.references
    ]
    lines, *reference_lines = ([line_in_form(o, tokenizer) for o in texts] for texts in (outputs, *test.references))
    tokenised, same_tokens = (
        _with_signature(measure(tokens, reference_tokens), _tokens_signature(tokenizer, test.reference_tags))
        for measure in (tokenised_bleu, exact_match_of_tokens)
    )
    full_length = [m for m in rouge(lines, reference_lines) if not m.name.endswith("precision")]
    limited = rouge(lines, reference_lines, max_bytes=DUC_BYTES)
    lowercased = [] if tokenizer.lowercase else [bleu(lines, reference_lines, lowercase=True)]
    detokenised = [bleu(lines, reference_lines), *lowercased, chrf(lines, reference_lines), *full_length, *limited]
    *in_form, last = (_with_signature(m, _form_signature(tokenizer)) for m in (tokenised, *detokenised, same_tokens))
    return [*in_form, exact_match(delivered(outputs), test.references), last]


def delivered(outputs: Iterable[Output | str]) -> list[str]:
    """The lines as `pointing generate` prints them."""
    return [output if isinstance(output, str) else output.text for output in outputs]


class TrainingWords(NamedTuple):
    """How often each word occurs in the target side of the training text."""

    path: Path
    counts: Mapping[str, int]


def count_training_words(path: Path, tokenizer: Tokenizer) -> TrainingWords:
    """Counts the words of all lines of a file."""
    blocks = ((block, None) for block in read_blocks(path, LINES_PER_BLOCK))
    return _count_words(path, blocks, count_lines(path), tokenizer)


def count_words_of_split(split: RawSplit, tokenizer: Tokenizer) -> TrainingWords:
    """Counts the words of all target lines, also of those that `prepare` leaves out, split as their tags are."""
    blocks = (
        (block.target, None if block.tags is None else [tags for _, tags in block.tags]) for block in split.blocks()
    )
    return _count_words(split.path, blocks, split.pairs, tokenizer)


def _count_words(
    path: Path, blocks: Iterable[tuple[list[bytes], list[Tagged] | None]], lines: int, tokenizer: Tokenizer
) -> TrainingWords:
    counts: Counter[str] = Counter()
    with progress(f"counting words of {path.name}", lines, "lines") as bar:
        for block, tags in blocks:
            counts.update(count_words(block, tokenizer, tags))
            bar.advance(len(block))
    return TrainingWords(path, counts)


def copy_measures(
    outputs: Sequence[Output | str],
    test: EvaluationSet,
    tokenizers: tuple[Tokenizer, Tokenizer],
    shortlist: Container[str],
    *,
    training: TrainingWords | None = None,
    translations: Callable[[str], Iterable[str]] | None = None,
    unk: str,
    read: Tokenizer | None = None,
) -> list[Measure]:
    """The measures of `copy_scores`. `tokenizers` are those of source and target.

    If they leave words as they are, `read` is the tokenizer that gives a word the form of shortlist and training words.
    With several references, each output is compared with the one that shares the most words with it.
    """
    source_tokenizer, tokenizer = tokenizers
    references = [words_of_lines(reference, tokenizer, test.reference_tags) for reference in test.references]
    examples = []
    for output, source, *candidates in zip(outputs, test.source_texts, *references, strict=True):
        words = words_in_form(output, tokenizer)
        if isinstance(output, str):
            tokens, origins = words_of_line(source, source_tokenizer), None
        else:  # the words that the model could have copied
            tokens = [source_tokenizer.normalise(output.source.raw(j)) for j in range(len(output.source.ids))]
            origins = origins_of_words(output)
        examples.append(Example(tokens, closest(words, candidates), words, origins))
    frequency, seen_in = (None, "") if training is None else (training.counts, f"|seen-in:{training.path.name}")
    normalise = None if read is None else read.normalise
    scores = copy_scores(examples, shortlist, frequency=frequency, translations=translations, unk=unk, read=normalise)
    several = "" if len(references) == 1 else f"|closest-of:{len(references)}"
    of_all = several + _tokens_signature(tokenizer, test.reference_tags) + _form_signature(tokenizer)
    of_all += "" if read is None or not form_name(read) else f"|known-as:{form_name(read)}"
    bands = {band.recall.name for band in scores.bands}
    return [_with_signature(m, (seen_in if m.name in bands else "") + of_all) for m in scores.measures()]


class SwitchResult(NamedTuple):
    """How well a run's switch and pointers do if all previous words are the reference's."""

    measures: list[Measure]
    bins: tuple[Bin, ...]  # of the reliability plot
    pairs: int  # number of pairs that were measured; the others are empty, or longer than training allows


def switch_measures(run: Run, test: EvaluationSet) -> SwitchResult | None:
    """Measures of the switch, teacher-forced on the references; None if the model has no switch or no pair can be read.

    Pairs are encoded, and the right choices decided, as `prepare` does it for the dev split. A run with entities and
    without a tagger needs the tags of source and reference.
    """
    config, examples = run.config, len(test.source_texts)
    source_tags, tags = test.source_tags, test.reference_tags
    paired = None if source_tags is None or tags is None else list(zip(source_tags, tags, strict=True))
    can_encode = not config.pointers.uses_entities or config.pointers.tagger is not None or paired is not None
    if not run.model.output.has_switch or not can_encode:
        return None
    steps, pairs = [], 0
    for reference in test.references:
        split = _encoded(run, test.source_texts, reference, paired)
        pairs += len(split)
        line_of = np.array([line for group in split.groups for line in group.column("line").to_pylist()], np.int64)
        sizes = split.source_lengths, split.target_lengths
        batches = plan(*sizes, PAIRS_PER_BATCH, "sentences", 0, 0) if len(split) else []
        steps += [_steps(run, split.batch(rows), line_of[rows] - 1) for rows in batches]
    if not steps:
        return None
    d, z, example, pointing, right = (np.concatenate(part) for part in zip(*steps, strict=True))
    scores = switch_scores(d, z, example, examples)
    pointers = np.stack([np.bincount(example, which, examples) for which in (right, pointing)], 1).astype(np.float64)
    signature = f"pointer-accuracy|at:argmax-l|version:{__version__}"
    measures = [*scores.measures(), Measure("pointer accuracy", signature, pointers, ratio)]
    several = "" if len(test.references) == 1 else f"|of-refs:{len(test.references)}"
    forced = [_with_signature(measure, f"|forced:references{several}") for measure in measures]
    return SwitchResult(forced, scores.bins, pairs)


@torch.inference_mode()
def _steps(run: Run, batch: Batch, example: npt.NDArray[np.int64]) -> list[npt.NDArray[Any]]:
    """For every real step: d_t; z_t; its example; is its word in the source; is l_t highest at that word."""
    model = run.model
    batch = batch.to(next(model.parameters()).device)
    _, evidence, log_l = model(batch.x, batch.x_mask, batch.y, batch.x_form, batch.place)
    mask, shortlist, pointing, right = observed(run.config, model, batch, log_l)
    d = model.output.switch(evidence[mask]).sigmoid()
    parts = (d.float(), shortlist[mask], pointing[mask], right[mask])
    d_t, z_t, *pointers = (part.cpu().numpy() for part in parts)
    return [d_t, z_t, np.repeat(example, mask.sum(1).cpu().numpy()), *pointers]


def _encoded(
    run: Run, sources: Sequence[str], reference: Sequence[str], tags: list[tuple[Tagged, Tagged]] | None
) -> Split:
    """Pairs as the prepared corpus of the run would have them."""
    source, target = ([f"{text}\n".encode("utf-8", "replace") for text in side] for side in (sources, reference))
    pairs, _ = tokenize_pairs(run.lexicon.tokenization, source, target, tags, numbers=range(1, len(source) + 1))
    examples, _ = encode_pairs(run.lexicon, pairs, np.array(pairs.rows, np.int32) + 1)
    return Split([examples])


def _tokens_signature(tokenizer: Tokenizer, tags: Sequence[Tagged] | None) -> str:
    kind = f"{tokenizer.kind}-{tokenizer.language}" if tokenizer.kind == "moses" else tokenizer.kind
    return f"|tokens:{kind if tags is None else 'tags'}"


def _form_signature(tokenizer: Tokenizer) -> str:
    return f"|form:{form_name(tokenizer)}" if form_name(tokenizer) else ""


def _with_signature(measure: Measure, more: str) -> Measure:
    return replace(measure, signature=measure.signature + more)
