"""Search over f_t, against teacher forcing and brute force."""

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import example, given
from hypothesis import settings as examples
from hypothesis import strategies as st

from pointing.config import Model, Search, checked
from pointing.corpus.batches import candidates_by_source
from pointing.corpus.examples import Batch
from pointing.errors import Misuse
from pointing.generation import beam
from pointing.model import fast_output
from pointing.model.encoder import Reads
from pointing.model.fast_output import FastOutput, Routes, top
from pointing.model.seq2seq import Seq2Seq
from pointing.text.vocabulary import EOS, FIRST, UNK

V, X, E, S = 11, 9, 5, 7
OUTPUTS = "pointer-softmax", "softmax", "pointer-network"


def make(output="pointer-softmax", seed=0, words=V, scale=0.8, **settings):
    torch.manual_seed(seed)
    model = Seq2Seq(Model(embedding=E, hidden=S, encoder=3, output=output, **settings), X, words).double().eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, 0, scale)
    return model


def batch_of(*sources, words=V):
    """Sources as names: below V a word that the target vocabulary has, from V on one that it has not."""
    lengths = [len(source) for source in sources]
    J = max(lengths) + 1
    x, source_words = np.zeros((2, len(sources), J), np.int64)
    for row, source in enumerate(sources):
        source_words[row, : len(source)] = [words + source.index(name) if name >= words else name for name in source]
        x[row, : len(source)] = [FIRST + name % (X - FIRST) for name in source]
    x_mask = np.arange(J) <= np.array(lengths)[:, None]
    empty = np.zeros((len(sources), 0), np.int64)
    arrays = (x, x_mask, source_words, empty, empty, empty > 0)
    return Batch(np.arange(len(sources)), *(torch.from_numpy(array) for array in arrays))


SOURCES = (3, 20, 5, 20, 3, 4), (7,), (21, 22, 23, 24), (), (5, 5, 5), (2, 30, 31, 9, 8, 30, 6, 32)


def search(model, *arguments, **options):
    return beam.search(model.for_search(), *arguments, **options)


def greedy(model, batch, max_length=200):
    return [hypotheses[0] for hypotheses in search(model, batch, Search(beam=1, max_length=max_length))]


def names_of(hypothesis, source_words, words=V):
    return [int(c) if c < words else int(source_words[c - words]) for c in hypothesis.choices]


def log_f_of(model, batch, row, names):
    """The whole log f_t (T, V + J) along names, teacher-forced."""
    x, x_mask = batch.x[row : row + 1], batch.x_mask[row : row + 1]
    with torch.no_grad():
        return model.output(*model(x, x_mask, torch.tensor([names])))[0]


def brute_force(model, batch, row, length, ranking="joint", normalize=lambda total, length: total / length, unk=False):
    """Every output of up to `length` words with its score, best first."""
    real = int(batch.x_mask[row].sum()) - 1
    source_words = batch.source_words[row]
    words = model.output.words
    allowed = [w for w in range(words) if w != EOS and (unk or w != UNK)]
    allowed += sorted({int(name) for name in source_words[:real] if name >= words})
    found = []
    for n in range(length + 1):
        names = torch.tensor([[*output, EOS] for output in itertools.product(allowed, repeat=n)])  # (N, n + 1)
        x, x_mask = (part[row : row + 1].expand(len(names), -1) for part in (batch.x, batch.x_mask))
        with torch.no_grad():
            log_f = model.output(*model(x, x_mask, names))  # (N, n + 1, V + J)
        column = torch.cat([torch.arange(words), source_words.masked_fill(~batch.x_mask[row], -1)])  # each one's name
        log_p = log_f.masked_fill(column != names.unsqueeze(-1), -math.inf)
        total = (log_p.amax(-1) if ranking == "joint" else log_p.logsumexp(-1)).sum(-1)  # over routes, then steps
        found += [(normalize(float(one), n + 1), some) for one, some in zip(total, names.tolist(), strict=True)]
    return sorted((one for one in found if one[0] > -math.inf), key=lambda one: -one[0])


@pytest.mark.parametrize("output", OUTPUTS)
@pytest.mark.parametrize("ranking", ["joint", "marginal"])
def test_a_beam_that_is_wide_enough_finds_what_brute_force_finds(output, ranking):
    model = make(output, words=6)
    batch = batch_of((3, 20, 3), (20, 21), words=6)
    settings = Search(beam=400, nbest=20, ranking=ranking, max_length=3)
    for row, found in enumerate(search(model, batch, settings)):
        expected = brute_force(model, batch, row, 3, ranking)[:20]
        assert [names_of(one, batch.source_words[row], 6) for one in found] == [names for _, names in expected]
        np.testing.assert_allclose([one.score for one in found], [score for score, _ in expected])


@pytest.mark.parametrize(
    ("normalize", "by"),
    [
        ({"normalize": "none"}, lambda total, n: total),
        ({"normalize": "gnmt", "alpha": 0.9}, lambda total, n: total / ((5 + n) / 6) ** 0.9),
    ],
)
def test_length_normalisation_by_brute_force(normalize, by):
    model, batch = make(words=5, seed=3), batch_of((3, 20), words=5)
    settings = Search(beam=300, nbest=10, max_length=3, allow_unk=True, **normalize)
    found = search(model, batch, settings)[0]
    expected = brute_force(model, batch, 0, 3, normalize=by, unk=True)[:10]
    assert [names_of(one, batch.source_words[0], 5) for one in found] == [names for _, names in expected]
    np.testing.assert_allclose([one.score for one in found], [score for score, _ in expected])


@pytest.mark.parametrize("output", OUTPUTS)
@pytest.mark.parametrize("feed", ["word", "source"])
def test_stepwise_scores_are_the_teacher_forced_scores_of_the_same_choices(output, feed):
    model, batch = make(output, feed=feed), batch_of(*SOURCES)
    for row, found in enumerate(search(model, batch, Search(beam=4, nbest=3, max_length=9), locations=True)):
        for one in found:
            names = torch.tensor([names_of(one, batch.source_words[row])])
            x, x_mask = batch.x[row : row + 1], batch.x_mask[row : row + 1]
            readout, evidence, log_l = model(x, x_mask, names)
            log_p = model.output.log_likelihood(readout, evidence, log_l, torch.from_numpy(one.choices)[None])[0]
            np.testing.assert_allclose(one.log_p, log_p.detach())
            np.testing.assert_allclose(one.location, log_l[0].exp().detach())
            np.testing.assert_allclose(one.d, torch.sigmoid(model.output.switch(evidence))[0].detach())
            assert one.score == pytest.approx(float(one.log_p.sum()) / len(one.choices))


def test_forms_are_the_models_own_of_the_words_of_each_hypothesis():
    torch.manual_seed(0)
    model = Seq2Seq(Model(embedding=E, hidden=S, encoder=3), X, V, reads=Reads(forms=True)).double().eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, 0, 0.8)
    batch = batch_of(*SOURCES)
    batch = batch._replace(x_form=torch.zeros_like(batch.x))
    seen = set()
    for row, hypotheses in enumerate(search(model, batch, Search(beam=4, nbest=2, max_length=12))):
        for hypothesis in hypotheses:
            source = [part[row : row + 1] for part in (batch.x, batch.x_mask)]
            y = torch.tensor([names_of(hypothesis, batch.source_words[row])])
            with torch.no_grad():
                readout = model(*source, y, batch.x_form[row : row + 1]).readout
                expected = model.form_logits(readout, *source, y).argmax(-1)[0]
            assert hypothesis.forms.tolist()[:-1] == expected.tolist()[:-1]  # the end is not written
            seen |= set(hypothesis.forms.tolist())
    assert len(seen) > 2


@pytest.mark.parametrize("choices", [3, 200])
def test_the_best_choices_of_each_step_are_those_of_the_whole_f_t(choices):
    model, batch = make(), batch_of(*SOURCES)
    settings = Search(beam=3, max_length=6, max_ratio=None, allow_unk=True)
    for row, (hypothesis, *_) in enumerate(search(model, batch, settings, choices=choices)):
        assert hypothesis.others.shape == hypothesis.log_p_others.shape == (len(hypothesis.choices), choices)
        log_f = log_f_of(model, batch, row, names_of(hypothesis, batch.source_words[row]))
        for t, (other, log_p) in enumerate(zip(hypothesis.others, hypothesis.log_p_others, strict=True)):
            assert (np.diff(log_p[log_p > -math.inf]) <= 0).all()
            assert log_p[0] == pytest.approx(log_f[t].max().item(), abs=1e-9)
            for choice, value in zip(other[log_p > -math.inf], log_p[log_p > -math.inf], strict=True):
                assert value == pytest.approx(log_f[t, choice].item(), abs=1e-9)
            assert choices == 3 or log_p[-1] == -math.inf  # there are not 200


@pytest.mark.parametrize("output", OUTPUTS)
def test_beam_1_is_greedy(output):
    model, batch = make(output, seed=5), batch_of(*SOURCES)
    for row, one in enumerate(greedy(model, batch, max_length=12)):
        names = []
        while len(names) < len(one.choices):
            log_f = log_f_of(model, batch, row, [*names, EOS])[-1]
            log_f[UNK] = -math.inf
            last = len(names) == min(12, 3 * len(SOURCES[row]) + 10)
            end = V + len(SOURCES[row])
            choice = int(log_f.argmax()) if not last else max((EOS, end), key=lambda c: log_f[c])
            names.append(choice if choice < V else int(batch.source_words[row, choice - V]))
        assert names == names_of(one, batch.source_words[row])
        assert EOS not in names[:-1]
        assert names[-1] == EOS


@pytest.mark.parametrize("beam", [1, 3, 8])
@pytest.mark.parametrize("ranking", ["joint", "marginal"])
def test_a_batch_gives_what_its_sources_give_one_by_one(beam, ranking):
    model = make(seed=2)
    settings = Search(beam=beam, nbest=beam, ranking=ranking, coverage=0.2, block_ngrams=2, max_length=20)
    together = search(model, batch_of(*SOURCES), settings, locations=True)
    for source, found in zip(SOURCES, together, strict=True):
        (alone,) = search(model, batch_of(source), settings, locations=True)
        assert len(alone) == len(found) >= 1
        for one, other in zip(alone, found, strict=True):
            np.testing.assert_array_equal(one.choices, other.choices)
            np.testing.assert_allclose(one.log_p, other.log_p)
            np.testing.assert_allclose(one.location, other.location[:, : len(source) + 1])
            assert one.score == pytest.approx(other.score)


def ended_in_the_beam(model, batch, row, beam, length, normalize):
    """Every hypothesis that has ended and was ever one of the `beam` best, best first: all steps, without early end."""
    words, real = model.output.words, batch.x_mask[row]
    column = torch.cat([torch.arange(words), batch.source_words[row].masked_fill(~real, -1)])
    hypotheses, ended = [(0.0, 0.0, ())], {}
    for n in range(length + 1):
        pool = [one for one in hypotheses if one[2][-1:] == (EOS,)]
        for _, total, names in hypotheses:
            if names[-1:] == (EOS,):
                continue
            log_f = log_f_of(model, batch, row, [*names, EOS])[-1]
            for name in {EOS} if n == length else set(column.tolist()) - {UNK, -1}:
                log_p = float(log_f[column == name].max())
                pool.append((normalize(total + log_p, n + 1), total + log_p, (*names, name)))
        hypotheses = sorted(pool, reverse=True)[:beam]
        ended |= {names: score for score, _, names in hypotheses if names[-1] == EOS}
    return sorted(((score, list(names)) for names, score in ended.items()), reverse=True)


@pytest.mark.parametrize("nbest", [1, 2])
@pytest.mark.parametrize(("normalize", "by"), [("none", lambda total, n: total), ("dl4mt", lambda total, n: total / n)])
def test_a_hypothesis_that_ended_and_fell_out_of_the_beam_is_not_lost(nbest, normalize, by):
    batch = batch_of((3, 20), words=6)
    for seed in (0, 1, 2, 14, 38, 42, 81, 116):  # with most of these a search that forgets it finds something worse
        model = make(words=6, seed=seed)
        found = search(model, batch, Search(beam=3, nbest=nbest, max_length=8, normalize=normalize))[0]
        expected = ended_in_the_beam(model, batch, 0, 3, 8, by)[:nbest]
        assert [names_of(one, batch.source_words[0], 6) for one in found] == [names for _, names in expected]
        np.testing.assert_allclose([one.score for one in found], [score for score, _ in expected])


NORMS = {
    "none": lambda total, n: total,
    "dl4mt": lambda total, n: total / n,
    "gnmt": lambda total, n: total / ((5 + n) / 6) ** 0.6,
}


# In the first two an open hypothesis that is worse than an ended one becomes better than it.
@example(seed=12, normalize="dl4mt", beam=3, nbest=1, length=8, scale=0.8)
@example(seed=17, normalize="dl4mt", beam=3, nbest=1, length=8, scale=0.8)
@examples(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    normalize=st.sampled_from(sorted(NORMS)),
    beam=st.integers(1, 4),
    nbest=st.integers(1, 4),
    length=st.integers(1, 8),
    scale=st.sampled_from([0.5, 0.8, 1.5]),
)
def test_a_search_that_ends_early_finds_what_the_whole_search_finds(seed, normalize, beam, nbest, length, scale):
    model, batch, nbest = make(words=6, seed=seed, scale=scale), batch_of((3, 20), words=6), min(nbest, beam)
    limits = {"max_length": length, "normalize": normalize}
    found = search(model, batch, Search(beam=beam, nbest=nbest, **limits))[0]
    expected = ended_in_the_beam(model, batch, 0, beam, length, NORMS[normalize])[:nbest]
    assert [names_of(one, batch.source_words[0], 6) for one in found] == [names for _, names in expected]
    np.testing.assert_allclose([one.score for one in found], [score for score, _ in expected])


@pytest.mark.parametrize("seed", range(5))
def test_the_n_best_are_sorted_and_different_and_copy_only_what_is_there(seed):
    model, batch = make(seed=seed), batch_of(*SOURCES)
    for row, found in enumerate(search(model, batch, Search(beam=6, nbest=6, max_length=15))):
        scores = [one.score for one in found]
        assert scores == sorted(scores, reverse=True)
        names = [tuple(names_of(one, batch.source_words[row])) for one in found]
        assert len(set(names)) == len(names) == 6
        for one in found:
            assert UNK not in one.choices
            assert one.choices.max() <= V + len(SOURCES[row])
            assert (one.choices[:-1] < V + len(SOURCES[row])).all()  # the source's end only as the output's end


def test_a_wider_beam_is_never_worse_under_plain_probability_when_it_holds_everything():
    model, batch = make(words=5, seed=1), batch_of((3, 20), words=5)
    best = [search(model, batch, Search(beam=k, normalize="none", max_length=3))[0][0].score for k in (1, 300)]
    assert best[0] <= best[1] + 1e-12


def test_lengths_are_kept():
    model, batch = make(seed=4), batch_of(*SOURCES)
    for found in search(model, batch, Search(beam=3, nbest=3, min_length=4, max_length=4)):
        assert [len(one.choices) for one in found] == [5, 5, 5]  # the end counted
    limits = [min(200, 2 * len(source) + 10) for source in SOURCES]
    found = search(model, batch, Search(beam=2, min_length=200, max_ratio=2.0))
    assert [len(one[0].choices) - 1 for one in found] == limits


def test_a_pointer_network_that_must_not_end_and_has_nothing_to_copy_ends():
    (found,) = search(make("pointer-network"), batch_of(()), Search(beam=3, min_length=5))
    assert [list(one.choices) for one in found] == [[V]]


@pytest.mark.parametrize("n", [1, 2, 3])
def test_no_n_gram_comes_twice(n):
    model, batch = make(seed=6), batch_of(*SOURCES)
    settings = Search(beam=4, nbest=4, min_length=12, max_length=30)
    plain, blocked = (search(model, batch, settings.model_copy(update={"block_ngrams": k})) for k in (None, n))

    def repeats(found):
        for row, some in enumerate(found):
            for one in some:
                names = names_of(one, batch.source_words[row])[:-1]
                grams = [tuple(names[i : i + n]) for i in range(len(names) - n + 1)]
                yield len(grams) - len(set(grams))

    assert sum(repeats(plain)) > 0
    assert sum(repeats(blocked)) == 0


@pytest.mark.parametrize("n", [1, 2])
def test_blocking_changes_nothing_where_nothing_would_come_twice(n):
    compared = 0
    for seed in range(6):
        model, batch = make(seed=seed), batch_of(*SOURCES)
        plain, blocked = (search(model, batch, Search(beam=1, max_length=20, block_ngrams=k)) for k in (None, n))
        for row, ((one,), (other,)) in enumerate(zip(plain, blocked, strict=True)):
            names = names_of(one, batch.source_words[row])
            if len(set(names)) == len(names):
                np.testing.assert_array_equal(one.choices, other.choices)
                compared += 1
    assert compared >= 6


def test_coverage_is_gnmts():
    model, batch = make(seed=7), batch_of((3, 20, 5))
    settings = Search(beam=5, nbest=5, normalize="gnmt", alpha=0.7, coverage=0.3, max_length=6)
    for one in search(model, batch, settings, locations=True)[0]:
        attended = np.minimum(one.location[:, :3].sum(0), 1)
        expected = one.log_p.sum() / ((5 + len(one.choices)) / 6) ** 0.7 + 0.3 * np.log(attended).sum()
        assert one.score == pytest.approx(expected)


def test_unk_is_chosen_only_when_asked_for():
    model, batch = make("softmax"), batch_of(*SOURCES)
    with torch.no_grad():
        model.output.shortlist.bias[UNK] = 50.0
    assert all(UNK not in one.choices for one in greedy(model, batch))
    allowed = search(model, batch, Search(beam=1, allow_unk=True, max_length=3))
    assert all((found[0].choices[:-1] == UNK).all() for found in allowed)


def test_only_a_sources_own_candidates_compete():
    model, batch = make(seed=8), batch_of(*SOURCES)
    allowed = candidates_by_source(batch, 5, V)
    left_out = [sorted(set(range(V)) - set(row.tolist())) for row in allowed]
    assert all(left_out)
    assert len({tuple(words) for words in left_out}) > 1
    for row, found in enumerate(search(model, batch, Search(beam=4, nbest=4, max_length=8), candidates=allowed)):
        for one in found:
            names = torch.tensor([names_of(one, batch.source_words[row])])
            assert not set(one.choices) & set(left_out[row])
            parts = model(batch.x[row : row + 1], batch.x_mask[row : row + 1], names)
            log_p = model.output(*parts, allowed[row])[0].gather(1, torch.tensor(one.choices)[:, None])[:, 0]
            np.testing.assert_allclose(one.log_p, log_p.detach())
    everything = search(model, batch, Search(), candidates=torch.arange(V).repeat(len(SOURCES), 1))
    for one, other in zip(everything, search(model, batch, Search()), strict=True):
        np.testing.assert_array_equal(one[0].choices, other[0].choices)


@pytest.mark.parametrize("allowed", [None, torch.arange(V).repeat(2, 1)])
def test_a_placeholder_that_the_source_lacks_is_never_chosen(allowed):
    model, batch = make(seed=9), batch_of((2, 20, 4), (20, 21))  # 2, 3 and 4 are placeholders
    with torch.no_grad():
        model.output.shortlist.bias[2:5] = 5.0
        model.output.switch.last.bias.fill_(3.0)

    def words(placeholders):
        settings = Search(beam=3, nbest=3, max_length=9)
        found = search(model, batch, settings, placeholders=placeholders, candidates=allowed)
        pairs = zip(found, batch.source_words, strict=True)
        return [{name for one in some for name in names_of(one, row)} & {2, 3, 4} for some, row in pairs]

    assert words(placeholders=0) == [{2, 3}, {2}]  # as words like others they are all open
    assert words(placeholders=3) == [{2, 4}, set()]


@pytest.mark.parametrize("ranking", ["joint", "marginal"])
@pytest.mark.parametrize("output", OUTPUTS)
def test_the_fast_output_is_the_layers_own_f_t(output, ranking):
    model, batch = make(output, seed=10), batch_of(*SOURCES)
    parts = model(batch.x, batch.x_mask, torch.zeros(len(SOURCES), 1, dtype=torch.long))
    settings = Search(beam=V, ranking=ranking, allow_unk=True)
    routes = Routes(FastOutput(model.output), batch.source_words, batch.x_mask, settings)
    with torch.no_grad():
        log_f = model.output(*parts)  # (B, 1, V + J)
        summed = model.output.marginalize(log_f, batch.source_words)
        ways, d = routes(*parts)
    torch.testing.assert_close(d, torch.sigmoid(model.output.switch(parts.evidence)).detach())
    for row in range(len(SOURCES)):
        alive = ways.log_p[row, 0] > -math.inf
        log_p, choice, word = (part[row, 0][alive] for part in ways)
        assert len(set(word.tolist())) == len(word)
        if ranking == "marginal":
            np.testing.assert_allclose(log_p, summed[row, 0][word])
            assert float(log_p.exp().sum()) == pytest.approx(1)
        else:
            column = torch.cat([torch.arange(V), batch.source_words[row].masked_fill(~batch.x_mask[row], -1)])
            best = [log_f[row, 0][column == name].max() for name in word]
            np.testing.assert_allclose(log_p, best)
            np.testing.assert_allclose(log_p, log_f[row, 0][choice])


@pytest.mark.parametrize("few", [0, 10**6])  # with blocks, and without
@given(st.integers(0, 999), st.integers(1, 900), st.integers(1, 4), st.sampled_from([2, 9, 99, 999]))
def test_top_takes_the_first_of_equals(few, seed, N, k, different):
    values, k = np.random.default_rng(seed).integers(0, different, N).tolist(), min(k, N)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fast_output, "FEW_NUMBERS", few)
        value, place = top(torch.tensor([values], dtype=torch.float32), k)
    expected = sorted(range(N), key=lambda i: (-values[i], i))[:k]
    assert place[0].tolist() == expected
    assert value[0].tolist() == [values[i] for i in expected]


def test_the_first_of_equals_may_lie_in_a_block_whose_largest_is_smaller(monkeypatch):
    monkeypatch.setattr(fast_output, "FEW_NUMBERS", 0)
    x = torch.zeros(1, 400)
    x[0, [70, 80, 3]] = torch.tensor([9.0, 5.0, 5.0])
    assert top(x, 2)[1].tolist() == [[70, 3]]


@pytest.mark.parametrize("N", [161, 320, 352, 353, 5000])
def test_top_of_many_numbers_is_that_of_all_sorted(N):
    x = torch.randn(7, 400, N, generator=torch.Generator().manual_seed(N))  # so many that they are looked at in blocks
    x[0, :, 5:] = -math.inf
    x[1] = x[1].sort().values
    value, place = top(x, 5)
    torch.testing.assert_close(value, x.sort(-1, descending=True).values[..., :5], rtol=0, atol=0)
    torch.testing.assert_close(x.gather(-1, place), value, rtol=0, atol=0)


def test_settings_that_do_not_fit_together_are_refused():
    for values, word in (
        ({"beam": 2, "nbest": 3}, "nbest"),
        ({"min_length": 9, "max_length": 8}, "min_length"),
        ({"beam": 10**11}, "beam"),
    ):
        with pytest.raises(Misuse, match=word):
            checked(Search, values)


@pytest.mark.parametrize("key", ["max_ratio", "alpha", "coverage"])
@pytest.mark.parametrize("value", [math.inf, math.nan])
def test_settings_that_are_no_numbers_are_refused(key, value):
    with pytest.raises(Misuse, match=key):
        checked(Search, {key: value})


def test_a_ratio_beyond_all_integers_is_no_limit():
    model, batch = make(), batch_of(*SOURCES)
    for huge, none in zip(*(search(model, batch, Search(max_ratio=ratio)) for ratio in (1e30, None)), strict=True):
        assert list(huge[0].choices) == list(none[0].choices)


def test_a_length_beyond_all_memory_is_refused():
    with pytest.raises(Misuse, match="max_length"):
        checked(Search, {"max_length": 10**30})
