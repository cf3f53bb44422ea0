"""BLEU, chrF, ROUGE and exact match in percent, each a `Measure` with a signature that says how it was computed.

A hypothesis is a line; a reference is a list of lines, one for each hypothesis. Each function says whether its lines
are detokenised text or tokens separated by spaces. sacreBLEU and rouge-score count the n-grams of each example;
this module keeps these counts, and computes the scores of many resamples at once from their sums.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial
from importlib.metadata import version
from itertools import chain, product
from operator import attrgetter
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.helpers import extract_all_char_ngrams

from pointing import __version__
from pointing.errors import Misuse
from pointing.evaluation.common_subsequence import common_length
from pointing.evaluation.significance import Floats, Measure, ratio
from pointing.text.forms import NARROW, NO_BREAK, SPACE, SPACES

Lines = Sequence[str]
BLEU_ORDER = 4  # the longest n-grams, in words
CHRF_ORDER = 6  # the longest n-grams, in characters
DUC_BYTES = 75
FOLDED_DIGIT = "#"  # as in Gigaword
ROUGE_TYPES = {"rouge1": "ROUGE-1", "rouge2": "ROUGE-2", "rougeL": "ROUGE-L"}


def bleu(hypotheses: Lines, references: Sequence[Lines], lowercase: bool = False) -> Measure:
    """BLEU of detokenised text with sacreBLEU's default settings: 13a tokens, smoothed; case kept unless told."""
    metric = BLEU(lowercase=lowercase, force=True)  # force: no warning on the terminal
    return _bleu_measure("BLEU, lower-cased" if lowercase else "BLEU", metric, hypotheses, references)


def tokenised_bleu(hypotheses: Lines, references: Sequence[Lines]) -> Measure:
    """BLEU of tokens separated by spaces, as Moses' multi-bleu.perl: case kept, not smoothed. The paper's metric.

    The score is 0 if no 4-gram matches. With several references, the brevity penalty takes the one whose length is
    closest to the hypothesis', and the shorter one of two that are equally close. Scores of two papers cannot be
    compared, because they depend on the tokenizer.
    """
    metric = BLEU(tokenize="none", smooth_method="none", force=True)
    measure = _bleu_measure("BLEU, tokenised", metric, hypotheses, references)
    return replace(measure, signature=f"{measure.signature}|as:multi-bleu.perl")


def _bleu_measure(name: str, metric: BLEU, hypotheses: Lines, references: Sequence[Lines]) -> Measure:
    """The counts of each example are sacreBLEU's, taken from its score of a corpus of one line."""
    _check(hypotheses, references)
    counts = []
    for hypothesis, *lines in zip(hypotheses, *references, strict=True):
        score = metric.corpus_score([hypothesis], [[line] for line in lines])
        counts.append([score.sys_len, score.ref_len, *score.counts, *score.totals])
    of_sums = partial(_bleu, smooth=metric.smooth_method != "none")
    return Measure(name, f"BLEU|{metric.get_signature().format()}", np.array(counts, np.float64), of_sums)


def chrf(hypotheses: Lines, references: Sequence[Lines]) -> Measure:
    """chrF2 of detokenised text with sacreBLEU's default settings.

    With several references, each example counts with the one that gives it the highest score.
    """
    _check(hypotheses, references)
    counts = []  # sacreBLEU's scores do not tell these counts, but its n-grams are public
    for lines in zip(hypotheses, *references, strict=True):
        ours, *theirs = (extract_all_char_ngrams(line, CHRF_ORDER) for line in lines)
        counts.append([list(chain.from_iterable(map(_matches, ours, ngrams))) for ngrams in theirs])
    of_references = np.array(counts, np.float64)  # (examples, references, 18)
    best = _chrf(of_references).argmax(1)
    metric = CHRF(char_order=CHRF_ORDER)
    metric.corpus_score(hypotheses[:1], [reference[:1] for reference in references])  # its signature tells nrefs then
    signature = f"chrF2|{metric.get_signature().format()}"
    return Measure("chrF2", signature, of_references[np.arange(len(best)), best], _chrf)


def _matches(hypothesis: Counter[str], reference: Counter[str]) -> list[int]:
    """Number of n-grams of the hypothesis (0 if the reference has none), of the reference, and in both."""
    both = sum(min(count, reference[ngram]) for ngram, count in hypothesis.items() if ngram in reference)
    return [hypothesis.total() if reference else 0, reference.total(), both]


def exact_match(hypotheses: Lines, references: Sequence[Lines]) -> Measure:
    """Share of the hypotheses that equal one of their references character by character, as they are delivered.

    Characters are those of NFC, and a run of white space counts as one space.
    """
    signature = f"exact-match|nrefs:{len(references)}|case:mixed|text:delivered,nfc,single-spaces|version:{__version__}"
    return _equality("exact match", signature, _literal, hypotheses, references)


def exact_match_of_tokens(hypotheses: Lines, references: Sequence[Lines]) -> Measure:
    """Share of the hypotheses whose tokens, which spaces separate, are those of one of their references."""
    signature = f"exact-match-of-tokens|nrefs:{len(references)}|case:mixed|tok:spaces|version:{__version__}"
    return _equality("exact match (tokens)", signature, str.split, hypotheses, references)


def _equality(
    name: str, signature: str, form: Callable[[str], object], hypotheses: Lines, references: Sequence[Lines]
) -> Measure:
    """Share of the hypotheses whose form equals that of one of their references."""
    _check(hypotheses, references)
    right = [
        form(hypothesis) in [form(line) for line in lines]
        for hypothesis, *lines in zip(hypotheses, *references, strict=True)
    ]
    return Measure(name, signature, _mean(np.array(right)), ratio)


def _literal(line: str) -> str:
    """The line with each run of white space as one: a no-break space if the run has one, as `text.forms` writes it."""
    return re.sub(r"\s+", _one_space, unicodedata.normalize("NFC", line).strip())


def _one_space(run: re.Match[str]) -> str:
    return next((SPACES[kind] for kind in (NARROW, NO_BREAK) if SPACES[kind] in run[0]), SPACES[SPACE])


def rouge(
    hypotheses: Lines,
    references: Sequence[Lines],
    *,
    max_bytes: int | None = None,
    stem: bool = True,
    word_characters: str = FOLDED_DIGIT,
) -> list[Measure]:
    """F1, recall and precision of ROUGE-1, -2 and -L (`ROUGE-L F1` and so on), by rouge-score, averaged over examples.

    With `max_bytes` (75 for DUC) the hypothesis is cut after so many bytes, if need be inside a word, and only recall
    is returned. With several references, each of ROUGE-1, -2 and -L takes the reference with the highest F1.
    ROUGE-1.5.5 sums over the references instead (`-f A`) or takes the one with the highest recall (`-f B`).

    Departures: words consist of letters and digits of all scripts and of `word_characters`; for rouge-score and
    ROUGE-1.5.5 they consist of a-z and 0-9. For ASCII text without `word_characters` the scores equal rouge-score's.
    ROUGE-1.5.5 cuts references after `max_bytes` too; DUC's references are no longer than that.
    """
    from rouge_score.rouge_scorer import RougeScorer

    _check(hypotheses, references)
    words = RougeWords(stem, word_characters)
    scorer = RougeScorer(["rouge1", "rouge2"], tokenizer=_Tokenized())
    kinds = {"F1": "fmeasure", "recall": "recall", "precision": "precision"}
    limit = suffix = ""
    if max_bytes is not None:
        hypotheses = [_first_bytes(hypothesis, max_bytes) for hypothesis in hypotheses]
        kinds, limit, suffix = {"recall": "recall"}, f"|limit:{max_bytes}-bytes", f", {max_bytes} bytes"
    by_f1 = attrgetter("fmeasure")
    scores = [
        {**scorer.score_multi(theirs, ours), "rougeL": max((_rouge_l(ours, each) for each in theirs), key=by_f1)}
        for ours, *theirs in (map(words.tokenize, lines) for lines in zip(hypotheses, *references, strict=True))
    ]
    several = "" if len(references) == 1 else "|multi:best-F1"
    how = f"nrefs:{len(references)}{several}|case:lc|{words.signature}{limit}|version:{version('rouge-score')}"
    measures = []
    for (key, name), (kind, field) in product(ROUGE_TYPES.items(), kinds.items()):
        values = np.array([getattr(score[key], field) for score in scores])
        measures.append(Measure(f"{name} {kind}{suffix}", f"{name}-{kind}|{how}", _mean(values), ratio))
    return measures


class _RougeL(NamedTuple):
    """As rouge-score names and computes them."""

    precision: float
    recall: float
    fmeasure: float


def _rouge_l(hypothesis: Sequence[str], reference: Sequence[str]) -> _RougeL:
    """rouge-score's ROUGE-L. Its own table has a cell for each pair of words: minutes for 10,000 words a side."""
    common = common_length(reference, hypothesis)
    precision, recall = common / max(1, len(hypothesis)), common / max(1, len(reference))
    return _RougeL(precision, recall, 2 * precision * recall / (precision + recall) if common else 0.0)


class _Tokenized:
    """Takes the place of rouge-score's tokenizer for lines that are words already."""

    def tokenize(self, words: list[str]) -> list[str]:
        return words


class RougeWords:
    """rouge-score's tokenizer, extended to all scripts.

    Text is lower-cased. Words are sequences of letters, digits and `word_characters`; Porter's algorithm stems words
    of more than 3 characters. Text without spaces between words (Chinese, Thai) must be segmented before.
    """

    def __init__(self, stem: bool = True, word_characters: str = FOLDED_DIGIT) -> None:
        self._letters = _Letters({ord(character): ord(character) for character in word_characters})
        self._stem: Callable[[str], str] | None = None
        stemmer = "none"
        if stem:
            from nltk.stem.porter import PorterStemmer

            self._stem = cache(PorterStemmer().stem)
            stemmer = f"porter[nltk-{version('nltk')}]"
        self.signature = f"tok:unicode{f'+{word_characters}' if word_characters else ''}|stem:{stemmer}"

    def tokenize(self, text: str) -> list[str]:
        words = unicodedata.normalize("NFC", text.lower()).translate(self._letters).split()
        return words if self._stem is None else [word if len(word) <= 3 else self._stem(word) for word in words]


class _Letters(dict[int, int]):
    """A table for str.translate: letters, their marks and digits stay, any other character becomes a space.

    An entry is computed when its character is first met.
    """

    def __missing__(self, character: int) -> int:
        stays = unicodedata.category(chr(character))[0] in "LMN"
        self[character] = character if stays else ord(" ")
        return self[character]


def _first_bytes(line: str, count: int) -> str:
    """The first bytes of a line, without a last character of which they hold only a part."""
    return line.encode("utf-8", "replace")[:count].decode("utf-8", "ignore")


def _mean(values: Floats | npt.NDArray[np.bool_]) -> Floats:
    """Values (examples,) as the numbers (examples, 2) from which `ratio` computes their mean."""
    return np.stack([values.astype(np.float64), np.ones(len(values))], 1)


def _bleu(sums: Floats, smooth: bool) -> Floats:
    """Brevity penalty · exp(mean of log p_n), n = 1 … 4, where p_n is the share of the n-grams that match.

    sums (…, 10) are the lengths of hypothesis and reference, the 4 numbers of matching n-grams, and the 4 numbers of
    all n-grams of the hypothesis. Smoothing is that of mteval-v13a: the k-th order without a match counts 1 / 2^k
    matches.
    """
    length, reference_length = sums[..., 0], sums[..., 1]
    matches, total = sums[..., 2 : 2 + BLEU_ORDER], sums[..., 2 + BLEU_ORDER :]
    without_match = (matches == 0) & (total > 0)
    smoothed = np.where(without_match, 0.5 ** without_match.cumsum(-1), matches) if smooth else matches
    with np.errstate(divide="ignore", invalid="ignore"):
        log_p = np.log(np.where(total > 0, smoothed / total, 0))  # (…, 4), -inf for 0
        log_brevity = np.where(length < reference_length, 1 - reference_length / length, 0)
        score: Floats = 100 * np.exp(log_brevity + log_p.mean(-1))
    return np.where(matches.any(-1), score, 0)


def _chrf(sums: Floats, beta: float = 2) -> Floats:
    """F_β of the mean precision and the mean recall over n-grams of 1 … 6 characters.

    sums (…, 18) are for each n the number of n-grams of the hypothesis, of the reference, and in both. An order n of
    which one side has no n-grams is left out of the means.
    """
    ours, theirs, both = np.moveaxis(sums.reshape(*sums.shape[:-1], -1, 3), -1, 0)  # (…, 6) each
    counted = (ours > 0) & (theirs > 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        orders = counted.sum(-1)
        precision = np.where(counted, both / ours, 0).sum(-1) / orders
        recall = np.where(counted, both / theirs, 0).sum(-1) / orders
        score: Floats = 100 * (1 + beta**2) * precision * recall / (beta**2 * precision + recall)
    return np.where(both.any(-1), score, 0)


def _check(hypotheses: Lines, references: Sequence[Lines]) -> None:
    if not references:
        raise Misuse("there is nothing to score against: give at least one reference")
    for number, reference in enumerate(references, 1):
        if len(reference) != len(hypotheses):
            which = "the reference" if len(references) == 1 else f"reference {number}"
            raise Misuse(f"there are {len(hypotheses)} hypotheses, but {which} has {len(reference)} lines")
    if not hypotheses:
        raise Misuse("there is nothing to score: no hypothesis, no reference line")
