"""Protected positions in search: every hypothesis copies each exactly once, whatever the model would rather do."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from test_beam import SOURCES, V, batch_of, make
from test_beam import search as search_freely

from pointing.config import Search
from pointing.generation.reader import ANYWHERE, ARGUMENT, HINT, TAG, TERM
from pointing.generation.spans import Spans
from pointing.model.fast_output import FAVOUR, PULL, PULL_TO_KNOWN, FastOutput, Routes, Terms
from pointing.text.vocabulary import EOS

WORDS = ((20, 3, 21, 22, 4), (23,), (3, 4, 5), (24, 25, 26, 27), (5, 28, 29))
MARKS = ((ARGUMENT, 0, ARGUMENT, ANYWHERE, 0), (ANYWHERE,), (0, 0, 0), (TAG, TAG, ARGUMENT, TAG), (0, ANYWHERE, TAG))


def marks_of(*rows):
    width = max(map(len, rows)) + 1
    return torch.tensor([[*row, *[0] * (width - len(row))] for row in rows])


def search(model, batch, settings, protected, aliases=None):
    aliases = torch.full_like(protected, -1) if aliases is None else aliases
    return search_freely(model, batch, settings, spans=Spans(protected, aliases, V))


def pointed(hypothesis):
    """The positions that it copies; not the source's end, at which it may end."""
    return [int(choice) - V for choice in hypothesis.choices[:-1] if choice >= V]


@pytest.mark.parametrize("ranking", ["joint", "marginal"])
@pytest.mark.parametrize("beam", [1, 2, 5])
@pytest.mark.parametrize("output", ["pointer-softmax", "pointer-network"])
def test_each_protected_position_is_copied_exactly_once_and_in_its_order(output, beam, ranking):
    for seed in range(25):
        model = make(output, seed, scale=1.5)
        settings = Search(beam=beam, nbest=beam, ranking=ranking, max_length=12)
        for row, hypotheses in enumerate(search(model, batch_of(*WORDS), settings, protected=marks_of(*MARKS))):
            assert hypotheses
            for hypothesis in hypotheses:
                positions = pointed(hypothesis)
                for place, mark in enumerate(MARKS[row]):
                    assert positions.count(place) == 1 or not mark
                for kind in (ARGUMENT, TAG):
                    ordered = [place for place in positions if place < len(MARKS[row]) and MARKS[row][place] == kind]
                    assert ordered == sorted(ordered)
                assert hypothesis.choices[-1] == EOS or hypothesis.choices[-1] == V + len(WORDS[row])


def test_they_are_copied_even_where_there_is_room_for_nothing_else():
    found = search(make(seed=3), batch_of(*WORDS), Search(max_length=1), protected=marks_of(*MARKS))
    assert sorted(pointed(found[3][0])) == [0, 1, 2, 3]
    assert [len(hypotheses[0].choices) for hypotheses in found[1:4]] == [2, 2, 5]


def test_a_hypothesis_that_would_rather_end_writes_nothing_but_what_is_missing():
    model = make(seed=1)
    model.output.shortlist.bias.data[EOS] = 50.0  # it would always end at once,
    model.output.switch.last.bias.data.fill_(20.0)  # by the shortlist
    (hypotheses,) = search(model, batch_of(WORDS[0]), Search(beam=4), protected=marks_of(MARKS[0]))
    assert sorted(pointed(hypotheses[0])) == [0, 2, 3]
    assert len(hypotheses[0].choices) == 4


def test_without_marks_the_search_is_what_it_was():
    for seed in range(5):
        model, batch = make(seed=seed), batch_of(*SOURCES)
        plain, marked = (
            search_freely(model, batch, Search(nbest=3), spans=spans)
            for spans in (None, Spans(torch.zeros_like(batch.x), torch.full_like(batch.x, -1), V))
        )
        for before, after in zip(plain, marked, strict=True):
            assert [h.choices.tolist() for h in before] == [h.choices.tolist() for h in after]
            assert [h.score for h in before] == [h.score for h in after]


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 4))
def test_a_batch_gives_what_its_sources_give_one_by_one(seed, beam):
    model, chosen = make(seed=seed, scale=1.2), Search(beam=beam, max_length=9)
    together = search(model, batch_of(*WORDS), chosen, protected=marks_of(*MARKS))
    for row, hypotheses in enumerate(together):
        (alone,) = search(model, batch_of(WORDS[row]), chosen, protected=marks_of(MARKS[row]))
        assert hypotheses[0].choices.tolist() == alone[0].choices.tolist()
        np.testing.assert_allclose(hypotheses[0].score, alone[0].score)


def test_a_term_is_written_once_by_its_pointer_or_by_the_same_word_of_the_shortlist():
    marks, terms = marks_of((TERM, 0, TERM, 0)), (0, 2)
    aliases = torch.full_like(marks, -1)
    aliases[0, list(terms)] = 6
    routes = set()
    for seed in range(40):
        (hypotheses,) = search(make(seed=seed, scale=1.5), batch_of((20, 3, 21, 4)), Search(beam=3), marks, aliases)
        pointers = [position for position in pointed(hypotheses[0]) if position in terms]
        by_word = hypotheses[0].choices.tolist().count(6)
        assert len(pointers) == len(set(pointers))
        assert len(pointers) + by_word >= 2
        routes.add((len(pointers), by_word))
    assert {(2, 0), (1, 1)} <= routes


def test_a_hint_may_be_left_out_and_is_never_written_twice():
    counts = set()
    for seed in range(40):
        marks = marks_of((HINT, 0, ANYWHERE))
        (hypotheses,) = search(make(seed=seed, scale=1.5), batch_of((20, 3, 21)), Search(max_length=8), marks)
        counts.add(pointed(hypotheses[0]).count(0))
        assert pointed(hypotheses[0]).count(2) == 1
    assert counts == {0, 1}


@torch.inference_mode()
def test_a_look_at_a_term_draws_the_model_to_it():
    model, batch = make(seed=2), batch_of((3, 20, 4))
    routes = Routes(FastOutput(model.output), batch.source_words, batch.x_mask, Search(beam=V))
    predicted = model(batch.x, batch.x_mask, torch.zeros(1, 1, dtype=torch.long))
    opened = torch.tensor([[[False, True, False, False]]])
    unknown, known = (Terms(opened, torch.tensor([[-1, word, -1, -1]])) for word in (-1, 7))
    (free, _), (drawn, _), (chosen, _) = (routes(*predicted, None, terms) for terms in (None, unknown, known))
    d, look = model.output.switch(predicted.evidence).sigmoid().item(), predicted.log_l.exp()[0, 0, 1].item()

    def p(ways, choice):
        return ways.log_p[0, 0, ways.choice[0, 0].tolist().index(choice)].exp().item()

    # outside the shortlist: a part of the shortlist's probability goes to the position
    assert p(free, V + 1) == pytest.approx((1 - d) * look)
    assert p(drawn, V + 1) == pytest.approx((1 - d) * look + PULL * d * look)
    assert p(drawn, 7) == pytest.approx(p(free, 7) * (1 - PULL * look))
    # a word of the shortlist: less goes to the position, and the word's logit is raised
    assert p(chosen, V + 1) == pytest.approx((1 - d) * look + PULL_TO_KNOWN * d * look)
    shares = [p(free, 7) / d, p(chosen, 7) / (d * (1 - PULL_TO_KNOWN * look))]  # of the shortlist's softmax
    odds = [share / (1 - share) for share in shares]
    assert math.log(odds[1] / odds[0]) == pytest.approx(FAVOUR * look)
