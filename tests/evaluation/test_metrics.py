"""Scores by hand, and held against sacrebleu, rouge_score and multi-bleu's definition written out naively."""

import math
import random
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rouge_score.rouge_scorer import RougeScorer
from sacrebleu.metrics import BLEU, CHRF

from pointing.errors import Misuse
from pointing.evaluation.metrics import (
    RougeWords,
    bleu,
    chrf,
    exact_match,
    exact_match_of_tokens,
    rouge,
    tokenised_bleu,
)
from pointing.evaluation.significance import Measure

EVERY = [
    bleu,
    tokenised_bleu,
    chrf,
    exact_match,
    exact_match_of_tokens,
    rouge,
    lambda *lines: rouge(*lines, max_bytes=75),
]


def by_name(measures):
    return {measure.name: measure.score for measure in measures}


def flat(found):
    return [found] if isinstance(found, Measure) else found


def corpus(lines=60, seed=1, right=0.7):
    """Hypotheses that keep most words of the first of two references, of all lengths from none."""
    rng = random.Random(seed)
    words = [f"{a}{b}" for a in "bcdf" for b in ("a", "alking", "ies", ".", "É")]
    first = [[rng.choice(words) for _ in range(rng.randint(0, 15))] for _ in range(lines)]
    kept = [[word if rng.random() < right else rng.choice(words) for word in line] for line in first]
    second = [[word for word in line if rng.random() < 0.8] for line in first]
    return [" ".join(line) for line in kept], [[" ".join(line) for line in side] for side in (first, second)]


# by hand


def test_bleu_by_hand():
    # The second sentence is right; of the first, a b c d | e for a b c d | f g: n-grams right 4 3 2 1 of 5 4 3 2.
    hypotheses, references = ["a b c d e", "v w x y"], [["a b c d f g", "v w x y"]]
    precisions = [8 / 9, 6 / 7, 4 / 5, 2 / 3]
    expected = 100 * math.exp(1 - 10 / 9) * math.prod(precisions) ** (1 / 4)
    assert tokenised_bleu(hypotheses, references).score == pytest.approx(expected)
    assert bleu(hypotheses, references).score == pytest.approx(expected)


def test_without_a_right_4_gram_multi_bleu_is_0_and_sacrebleu_smooths():
    hypotheses, references = ["a b c x y"], [["a b c d e"]]  # right 3 2 1 0 of 5 4 3 2
    assert tokenised_bleu(hypotheses, references).score == 0
    assert bleu(hypotheses, references).score == pytest.approx(100 * (3 / 5 * 2 / 4 * 1 / 3 * (1 / 2) / 2) ** (1 / 4))
    assert tokenised_bleu(["a b"], [["a b"]]).score == bleu(["a b"], [["a b"]]).score == 0  # there is no 4-gram at all


def test_the_nearest_reference_counts_for_the_brevity_penalty_and_of_two_as_near_the_shorter():
    # 5 words; references of 4, 6 and 9. The shorter of the near ones: no penalty, though two references are longer.
    references = [["a b c d e f g h i"], ["a b c d e f"], ["a b c d"]]
    assert tokenised_bleu(["a b c d e"], references).score == pytest.approx(100)
    assert tokenised_bleu(["a b c d e"], references[:2]).score == pytest.approx(100 * math.exp(1 - 6 / 5))


def test_case_and_tokens_matter_to_tokenised_bleu():
    assert tokenised_bleu(["a b c D"], [["a b c d"]]).score == 0
    assert bleu(["hello there, you two"], [["hello there , you two"]]).score == pytest.approx(100)
    assert tokenised_bleu(["hello there, you two"], [["hello there , you two"]]).score == 0


def test_chrf_by_hand():
    # abc for abd: characters right 2 of 3, pairs 1 of 2, triples 0 of 1; precision is recall is F.
    assert chrf(["a bc"], [["ab d"]]).score == pytest.approx(100 * (2 / 3 + 1 / 2 + 0) / 3)
    # ab for abcd: precision 1 of both orders that ab has; recall 2/4 and 1/3. F2 = 5 P R / (4 P + R)
    recall = (2 / 4 + 1 / 3) / 2
    assert chrf(["ab"], [["abcd"]]).score == pytest.approx(100 * 5 * recall / (4 + recall))


def test_rouge_by_hand():
    # Stems run cat run; run the cat. Both: run, cat. LCS: run cat.
    scores = by_name(rouge(["Running cats run"], [["runs the cat"]]))
    assert scores["ROUGE-1 F1"] == scores["ROUGE-L F1"] == pytest.approx(100 * 2 / 3)
    assert scores["ROUGE-2 F1"] == 0
    # a b of a b c d, and nothing of the second example: recalls 1/2 and 0, precisions 1 and 0, on average
    scores = by_name(rouge(["a b", "x"], [["a b c d", "y"]]))
    assert scores["ROUGE-1 recall"] == pytest.approx(25)
    assert scores["ROUGE-1 precision"] == pytest.approx(50)
    assert scores["ROUGE-1 F1"] == pytest.approx(100 * (2 / 3) / 2)
    assert scores["ROUGE-2 recall"] == pytest.approx(100 * (1 / 3) / 2)


def test_rouge_takes_the_reference_of_best_f1_for_each_kind():
    # Words: the short one has 2 of 4, all of its own, F1 = 4/6; the long one 3 of 4, of 12 of its own, F1 = 6/16.
    scores = by_name(rouge(["a b c d"], [["a b c e f g h i j k l m"], ["a d"]]))
    assert scores["ROUGE-1 recall"] == pytest.approx(100)
    assert scores["ROUGE-2 recall"] == pytest.approx(100 * 2 / 11)  # of pairs the short one shares none


def test_rouge_of_75_bytes_is_recall_of_what_is_left():
    # 72 bytes and 2, then é of two bytes: the cut goes through it, and ab, after it, is gone
    hypothesis = "é" * 36 + " bé ab"
    scores = by_name(rouge([hypothesis], [["é" * 36 + " b ab"]], max_bytes=75))
    assert scores.keys() == {f"ROUGE-{kind} recall, 75 bytes" for kind in "12L"}
    assert scores["ROUGE-1 recall, 75 bytes"] == pytest.approx(100 * 2 / 3)
    assert by_name(rouge(["the cattle"], [["the cat"]], max_bytes=7))["ROUGE-2 recall, 7 bytes"] == 100


def test_rouge_keeps_letters_of_all_scripts_and_folded_digits():
    assert RougeWords().tokenize("L'été à Noël, ##.# кошки_हिन्दी") == [
        "l",
        "été",
        "à",
        "noël",
        "##",
        "#",
        "кошки",
        "हिन्दी",
    ]
    assert RougeWords().tokenize("e\u0301te\u0301") == ["été"]
    assert RougeWords(stem=False, word_characters="").tokenize("running ## C#") == ["running", "c"]
    assert by_name(rouge(["à l'été"], [["a l'ete"]]))["ROUGE-1 F1"] == pytest.approx(100 / 3)


@pytest.mark.parametrize("measure", [exact_match, exact_match_of_tokens])
def test_exact_match_by_hand(measure):
    hypotheses = ["a b", "a  b ", "A b", ""]
    assert measure(hypotheses, [["a b"] * 3 + ["x"]]).score == 50
    assert measure(hypotheses, [["a b"] * 3 + ["x"], ["x", "x", "A b", ""]]).score == 100


@pytest.mark.parametrize(
    ("hypothesis", "reference", "equal"),
    [
        ("caf\u00e9", "cafe\u0301", True),
        ("a\tb\u2003 c ", " a b c", True),
        ("a \u00a0: b", "a\u00a0: b", True),  # a run with a no-break space is one
        ("a : b", "a\u00a0: b", False),
        ("a\u202f: b", "a\u00a0: b", False),
        ("a: b", "a : b", False),
        ("\ufb01le", "file", False),
        ("Name", "name", False),
    ],
)
def test_exact_match_is_character_by_character_but_for_nfc_and_runs_of_white_space(hypothesis, reference, equal):
    assert exact_match([hypothesis], [[reference]]).score == (100 if equal else 0)


# against others


def naive_multi_bleu(hypotheses, references):
    """What multi-bleu.perl does, line by line."""
    right, total, length, wanted = Counter(), Counter(), 0, 0
    for hypothesis, *those in zip(hypotheses, *references, strict=True):
        words, those = hypothesis.split(), [line.split() for line in those]
        length += len(words)
        wanted += min((abs(len(line) - len(words)), len(line)) for line in those)[1]
        for n in range(1, 5):
            most = Counter()
            for line in those:
                most |= Counter(zip(*(line[k:] for k in range(n)), strict=False))
            ngrams = Counter(zip(*(words[k:] for k in range(n)), strict=False))
            right[n] += (ngrams & most).total()
            total[n] += ngrams.total()
    if not all(right[n] for n in range(1, 5)):
        return 0
    brevity = min(1, math.exp(1 - wanted / length))
    return 100 * brevity * math.exp(sum(math.log(right[n] / total[n]) for n in range(1, 5)) / 4)


@pytest.mark.parametrize("references", [1, 2])
@pytest.mark.parametrize("right", [0.1, 0.7])
def test_corpus_scores_are_sacrebleus_and_multi_bleus(references, right):
    hypotheses, lines = corpus(right=right)
    lines = lines[:references]
    assert bleu(hypotheses, lines).score == pytest.approx(BLEU().corpus_score(hypotheses, lines).score)
    assert chrf(hypotheses, lines).score == pytest.approx(CHRF().corpus_score(hypotheses, lines).score)
    assert tokenised_bleu(hypotheses, lines).score == pytest.approx(naive_multi_bleu(hypotheses, lines))


WORDS = st.lists(st.sampled_from(["a", "b", "c", "d.", "É"]), max_size=7).map(" ".join)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(WORDS, WORDS, WORDS), min_size=1, max_size=5))
def test_each_example_has_the_score_that_sacrebleu_gives_it_alone(triples):
    """Also where there is smoothing, no n-gram of an order, or nothing at all."""
    hypotheses, *references = map(list, zip(*triples, strict=True))
    for ours, theirs in (
        (bleu, BLEU()),
        (tokenised_bleu, BLEU(tokenize="none", smooth_method="none", force=True)),
        (chrf, CHRF()),
    ):
        measure = ours(hypotheses, references)
        for (line, *others), score in zip(triples, measure.of_sums(measure.numbers), strict=True):
            assert score == pytest.approx(theirs.corpus_score([line], [[other] for other in others]).score)
    assert tokenised_bleu(hypotheses, references).score == pytest.approx(naive_multi_bleu(hypotheses, references))


ASCII = st.lists(
    st.sampled_from(["running", "Runs", "ponies", "the", "cat's", "3.5", "a_b", "x-ray", "...", "flies", "sky"]),
    max_size=9,
).map(" ".join) | st.text(st.characters(codec="ascii", exclude_characters="#"), max_size=30)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(ASCII, ASCII, ASCII), min_size=1, max_size=4))
def test_rouge_of_ascii_is_rouge_scores_own(triples):
    theirs = RougeScorer(["rouge1", "rouge2", "rougeL"], use_stemmer=True)
    expected = [theirs.score_multi([first, second], line) for line, first, second in triples]
    hypotheses, *references = map(list, zip(*triples, strict=True))
    found = by_name(rouge(hypotheses, references))
    for kind in "12L":
        for name, field in (("F1", "fmeasure"), ("recall", "recall"), ("precision", "precision")):
            mean = np.mean([getattr(score[f"rouge{kind}"], field) for score in expected])
            assert found[f"ROUGE-{kind} {name}"] == pytest.approx(100 * mean, abs=1e-9)


# properties


LONG = st.lists(st.sampled_from(["a", "Running", "d.", "É", "##"]), min_size=4, max_size=9).map(" ".join)  # ≤ 75 bytes


@settings(max_examples=30, deadline=None)
@given(st.lists(LONG, min_size=1, max_size=4), st.lists(WORDS, min_size=4, max_size=4))
def test_a_reference_against_itself_is_100(lines, others):
    for score in EVERY:
        for measure in flat(score(lines, [lines])) + flat(score(lines, [others[: len(lines)], lines])):
            assert measure.score == pytest.approx(100)


@pytest.mark.parametrize("score", EVERY)
def test_the_order_of_examples_is_no_matter(score):
    hypotheses, references = corpus()
    order = random.Random(3).sample(range(len(hypotheses)), len(hypotheses))
    turned = [hypotheses[k] for k in order], [[lines[k] for k in order] for lines in references]
    for one, other in zip(flat(score(hypotheses, references)), flat(score(*turned)), strict=True):
        assert one.score == pytest.approx(other.score)


@pytest.mark.parametrize("score", EVERY)
def test_empty_lines_score_nothing_and_break_nothing(score):
    for measure in flat(score(["", "", "a"], [["a b c d", "", ""]])):
        assert measure.score == (pytest.approx(100 / 3) if measure.name.startswith("exact match") else 0)


# signatures


def test_signatures_say_how_it_was_done():
    hypotheses, references = corpus()
    for ours, theirs in ((bleu, BLEU()), (chrf, CHRF())):
        theirs.corpus_score(hypotheses, references)
        found = ours(hypotheses, references)
        assert found.signature == f"{found.name}|{theirs.get_signature()}"
    assert "nrefs:2|case:mixed|eff:no|tok:none|smooth:none|" in tokenised_bleu(hypotheses, references).signature
    whole, *_ = rouge(hypotheses, references)
    assert whole.signature.startswith("ROUGE-1-F1|nrefs:2|multi:best-F1|case:lc|tok:unicode+#|stem:porter[nltk-")
    cut, *_ = rouge(hypotheses, references[:1], max_bytes=75, stem=False, word_characters="")
    assert cut.signature.startswith("ROUGE-1-recall|nrefs:1|case:lc|tok:unicode|stem:none|limit:75-bytes|version:")
    assert exact_match(hypotheses, references).signature.startswith("exact-match|nrefs:2|case:mixed|text:delivered,")
    tokens = exact_match_of_tokens(hypotheses, references).signature
    assert tokens.startswith("exact-match-of-tokens|nrefs:2|case:mixed|tok:spaces|")


# misuse


@pytest.mark.parametrize("score", EVERY)
@pytest.mark.parametrize(
    ("hypotheses", "references", "message"),
    [
        ([], [[]], "nothing to score"),
        (["a"], [], "at least one reference"),
        (["a", "b"], [["a"]], "2 hypotheses, but the reference has 1 lines"),
        (["a", "b"], [["a", "b"], ["a", "b", "c"]], "2 hypotheses, but reference 2 has 3 lines"),
    ],
)
def test_what_cannot_be_scored_is_misuse(score, hypotheses, references, message):
    with pytest.raises(Misuse, match=message):
        score(hypotheses, references)
