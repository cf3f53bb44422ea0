"""BLEU, chrF, ROUGE and exact match: each a `Measure` with a signature that says how it was computed, in percent.

Hypotheses are lines, references a list of lines for each reference; whether those are detokenised or tokens with spaces
between, each function says. Counting is sacrebleu's and rouge-score's; what is done here is to keep what each example
adds, and to turn many sums into many scores at once.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from importlib.metadata import version
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from pointing import __version__
from pointing.errors import Misuse
from pointing.evaluation.significance import Floats, Measure, ratio

if TYPE_CHECKING:
    from sacrebleu.metrics.base import Metric

Lines = Sequence[str]
ORDER = 4  # BLEU's n-grams
DUC_BYTES = 75
KEPT = "#"  # a folded digit, as in Gigaword
ROUGE = {"rouge1": "ROUGE-1", "rouge2": "ROUGE-2", "rougeL": "ROUGE-L"}


def bleu(hypotheses: Lines, references: Sequence[Lines]) -> Measure:
    """BLEU of detokenised text as sacrebleu computes it by default: its own 13a tokens, cased, smoothed."""
    from sacrebleu.metrics.bleu import BLEU

    numbers, signature = _sacrebleu(BLEU(force=True), hypotheses, references)  # force: no advice on the terminal
    return Measure("BLEU", f"BLEU|{signature}", numbers, _smoothed_bleu)


def tokenised_bleu(hypotheses: Lines, references: Sequence[Lines]) -> Measure:
    """BLEU of tokens with spaces between, as Moses' multi-bleu.perl: cased, not smoothed; the paper's metric.

    Without a single right 4-gram it is 0. Of several references the one nearest in length counts for the brevity
    penalty, of two as near the shorter. Not to be compared between papers: it depends on who tokenised.
    """
    from sacrebleu.metrics.bleu import BLEU

    metric = BLEU(tokenize="none", smooth_method="none", force=True)
    numbers, signature = _sacrebleu(metric, hypotheses, references)
    return Measure("BLEU, tokenised", f"BLEU|{signature}|as:multi-bleu.perl", numbers, _plain_bleu)


def chrf(hypotheses: Lines, references: Sequence[Lines]) -> Measure:
    """chrF2 of detokenised text as sacrebleu computes it by default."""
    from sacrebleu.metrics.chrf import CHRF

    numbers, signature = _sacrebleu(CHRF(), hypotheses, references)
    return Measure("chrF2", f"chrF2|{signature}", numbers, _chrf)


def exact_match(hypotheses: Lines, references: Sequence[Lines]) -> Measure:
    """How many hypotheses are one of their references, word by word; how much white space lies between is no matter."""
    _check(hypotheses, references)
    right = [
        hypothesis.split() in [reference.split() for reference in those]
        for hypothesis, *those in zip(hypotheses, *references, strict=True)
    ]
    signature = f"exact-match|nrefs:{len(references)}|case:mixed|tok:spaces|version:{__version__}"
    return Measure("exact match", signature, _mean(np.array(right)), ratio)


def rouge(
    hypotheses: Lines,
    references: Sequence[Lines],
    *,
    max_bytes: int | None = None,
    stem: bool = True,
    kept: str = KEPT,
) -> list[Measure]:
    """ROUGE-1, -2 and -L by rouge-score, averaged over examples: F1, recall and precision, full-length.

    With max_bytes (75 for DUC) the hypothesis is cut there, in the middle of a word if it must be, and only recall is
    given. Of several references the one of best F1 counts, for each of the three on its own; ROUGE-1.5.5 sums over the
    references (`-f A`) or takes the one of best recall (`-f B`).

    Departures: letters and digits of all scripts make words, and the characters in `kept`; rouge-score and ROUGE-1.5.5
    know a-z and 0-9 alone. In ASCII text without `kept` the figures are rouge-score's own. ROUGE-1.5.5 cuts references
    at max_bytes too; those of DUC are no longer than that.
    """
    from rouge_score.rouge_scorer import RougeScorer

    _check(hypotheses, references)
    words = RougeWords(stem, kept)
    scorer = RougeScorer(list(ROUGE), tokenizer=words)
    if max_bytes is not None:
        hypotheses = [_cut(hypothesis, max_bytes) for hypothesis in hypotheses]
    scores = [scorer.score_multi(those, line) for line, *those in zip(hypotheses, *references, strict=True)]

    several = "" if len(references) == 1 else "|multi:best-F1"
    limit = "" if max_bytes is None else f"|limit:{max_bytes}-bytes"
    how = f"nrefs:{len(references)}{several}|case:lc|{words.signature}{limit}|version:{version('rouge-score')}"
    kinds = {"F1": "fmeasure", "recall": "recall", "precision": "precision"}
    suffix = "" if max_bytes is None else f", {max_bytes} bytes"
    return [
        Measure(
            f"{name} {kind}{suffix}",
            f"{name}-{kind}|{how}",
            _mean(np.array([getattr(score[key], field) for score in scores])),
            ratio,
        )
        for key, name in ROUGE.items()
        for kind, field in kinds.items()
        if kind == "recall" or max_bytes is None
    ]


class RougeWords:
    """rouge-score's tokenizer for all scripts: lower case, words of letters and digits, long ones stemmed by Porter.

    Text without spaces between words (Chinese, Thai) must be segmented before.
    """

    def __init__(self, stem: bool = True, kept: str = KEPT) -> None:
        self._stems: dict[str, str] = {}
        self._letters = _Letters({ord(character): ord(character) for character in kept})
        self._stemmer = None
        stemmed = "none"
        if stem:
            from nltk.stem.porter import PorterStemmer

            self._stemmer = PorterStemmer()
            stemmed = f"porter[nltk-{version('nltk')}]"
        self.signature = f"tok:unicode{f'+{kept}' if kept else ''}|stem:{stemmed}"

    def tokenize(self, text: str) -> list[str]:
        words = unicodedata.normalize("NFC", text.lower()).translate(self._letters).split()
        return [self._stem(word) for word in words]

    def _stem(self, word: str) -> str:
        if self._stemmer is None or len(word) <= 3:
            return word
        if word not in self._stems:
            self._stems[word] = self._stemmer.stem(word)
        return self._stems[word]


class _Letters(dict[int, int]):
    """For str.translate: letters, their marks and digits stay, anything else becomes a space. Fills as it is asked."""

    def __missing__(self, character: int) -> int:
        stays = unicodedata.category(chr(character))[0] in "LMN"
        self[character] = character if stays else ord(" ")
        return self[character]


def _cut(line: str, most: int) -> str:
    """The first bytes of a line; a character that is cut through is left out."""
    return line.encode("utf-8", "replace")[:most].decode("utf-8", "ignore")


def _mean(values: Floats | npt.NDArray[np.bool_]) -> Floats:
    """What `ratio` makes the mean of."""
    return np.stack([values.astype(np.float64), np.ones(len(values))], 1)


def _sacrebleu(metric: Metric, hypotheses: Lines, references: Sequence[Lines]) -> tuple[Floats, str]:
    """What each example adds, as sacrebleu's own significance tests take it, and the signature."""
    _check(hypotheses, references)
    numbers = np.array(metric._extract_corpus_statistics(hypotheses, references), np.float64)
    return numbers, metric.get_signature().format()


def _smoothed_bleu(sums: Floats) -> Floats:
    return _bleu(sums, smooth=True)


def _plain_bleu(sums: Floats) -> Floats:
    return _bleu(sums, smooth=False)


def _bleu(sums: Floats, smooth: bool) -> Floats:
    """BP · exp(mean of log p_n) of sums (…, 10): both lengths, right n-grams for n = 1 … 4, all n-grams.

    Smoothed, the k-th p_n without a right n-gram is 1 / 2^k of one n-gram, as in mteval-v13a.
    """
    length, wanted = sums[..., 0], sums[..., 1]
    right, total = sums[..., 2 : 2 + ORDER], sums[..., 2 + ORDER :]
    none_right = (right == 0) & (total > 0)
    counted = np.where(none_right, 0.5 ** none_right.cumsum(-1), right) if smooth else right
    with np.errstate(divide="ignore", invalid="ignore"):
        log_p = np.log(np.where(total > 0, counted / total, 0))  # (…, 4), -inf for 0
        log_brevity = np.where(length < wanted, 1 - wanted / length, 0)
        score: Floats = 100 * np.exp(log_brevity + log_p.mean(-1))
    return np.where(right.any(-1), score, 0)


def _chrf(sums: Floats, beta: float = 2) -> Floats:
    """F_β of the mean precision and the mean recall over n-grams of 1 … 6 characters, where both sides have any.

    Of sums (…, 18): n-grams of the hypothesis, of the reference, of both, for each n.
    """
    ours, theirs, both = np.moveaxis(sums.reshape(*sums.shape[:-1], -1, 3), -1, 0)  # (…, 6) each
    there = (ours > 0) & (theirs > 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        orders = there.sum(-1)
        precision = np.where(there, both / ours, 0).sum(-1) / orders
        recall = np.where(there, both / theirs, 0).sum(-1) / orders
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
