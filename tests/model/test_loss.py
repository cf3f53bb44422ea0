"""The objective by hand: V = 4 words (EOS, UNK, a, b), sources of up to 3 places."""

import pytest
import torch

from pointing.config import Config
from pointing.corpus.examples import Batch
from pointing.model.decoder import Predicted
from pointing.model.loss import (
    choices,
    comparable,
    form_log_likelihood,
    forms_right,
    guidance,
    log_likelihood,
    objective,
    observed,
    smoothing,
)
from pointing.pointer_softmax import AlwaysPoint, NeverPoint, PointerSoftmax, Switch

V, B, T, J = 4, 2, 5, 3
EOS, UNK, a, b = range(V)
R, Q = 6, 7
UNREACHED = UNK


class Model:
    """As much of a Seq2Seq as the loss knows: its output layer."""

    def __init__(self, kind="pointer-softmax"):
        torch.manual_seed(0)
        switches = {"softmax": NeverPoint, "pointer-network": AlwaysPoint}
        self.output = PointerSoftmax(V, R, switches[kind]() if kind in switches else Switch(Q, 5, activation="tanh"))
        self.output.double()


def settings(loss="joint", unreachable="unk"):
    data = {name: {"source": "x", "target": "y"} for name in ("train", "dev")}
    return Config(data=data, training={"loss": loss}, pointers={"unreachable": unreachable})


def make_batch():
    """Sources: zorb a </s>, and b </s>. Targets: zorb a floop </s>, and a b </s>; zorb and floop are unknown."""
    mask = torch.tensor([[True, True, True, True, False], [True, True, True, False, False]])
    return Batch(
        rows=range(B),
        x=torch.tensor([[1, 2, 0], [3, 0, 0]]),
        x_mask=torch.tensor([[True, True, True], [True, True, False]]),
        source_words=torch.tensor([[V + 0, a, EOS], [b, EOS, 0]]),
        target=torch.tensor([[V + 0, a, UNREACHED, EOS, 0], [a, b, EOS, 0, 0]]),
        y=torch.tensor([[V + 0, a, UNREACHED, EOS, 0], [a, b, EOS, 0, 0]]),
        mask=mask,
    )


def predicted(seed=1):
    torch.manual_seed(seed)
    scores = torch.randn(B, T, J).double().masked_fill(~make_batch().x_mask.unsqueeze(1), -torch.inf)
    return Predicted(torch.randn(B, T, R).double(), torch.randn(B, T, Q).double(), scores.log_softmax(-1))


@torch.no_grad()
def parts(model, batch_predicted):
    """d, w, l, as probabilities."""
    readout, evidence, log_l = batch_predicted
    d = model.output.switch(evidence).sigmoid()
    return d, model.output.shortlist(readout).softmax(-1), log_l.exp()


def test_the_softmax_says_unknown_where_there_is_something_to_copy():
    batch = make_batch()
    target, mask = choices(Model("softmax"), batch, predicted()[2], to_attention=False)
    assert target.tolist() == [[UNK, a, UNK, EOS, 0], [a, b, EOS, 0, 0]]
    assert torch.equal(mask, batch.mask)


def test_the_pointer_softmax_takes_the_choices_as_they_were_prepared():
    batch = make_batch()
    target, mask = choices(Model(), batch, predicted()[2], to_attention=False)
    assert torch.equal(target, batch.target)
    assert torch.equal(mask, batch.mask)


def test_a_pointer_network_points_at_every_word_it_can():
    target, mask = choices(Model("pointer-network"), make_batch(), predicted()[2], to_attention=False)
    yes, no = True, False
    assert mask.tolist() == [[yes, yes, no, yes, no], [no, yes, yes, no, no]]  # floop and a are nowhere
    assert target[mask].tolist() == [V + 0, V + 1, V + 2, V + 0, V + 1]


def test_a_pointer_network_keeps_pointers_at_words_of_another_name():
    batch = make_batch()
    batch.target[0, 2] = V + 1  # floop is a dictionary's translation of a
    target, mask = choices(Model("pointer-network"), batch, predicted()[2], to_attention=False)
    assert target[0, 2] == V + 1
    assert mask[0, 2]


def test_a_pointer_network_does_not_point_at_padding():
    batch = make_batch()
    batch.source_words[1], batch.x_mask[1] = torch.tensor([b, a, EOS]), torch.tensor([True, False, False])
    _, mask = choices(Model("pointer-network"), batch, predicted()[2], to_attention=False)
    assert mask[1].tolist() == [False, True, False, False, False]  # a and the end stand only where there is padding


def test_what_nothing_reaches_is_where_the_model_looks():
    batch, log_l = make_batch(), predicted()[2].clone()
    log_l[0, 2] = torch.tensor([0.2, 0.7, 0.1]).log()
    target, mask = choices(Model(), batch, log_l, to_attention=True)
    assert target.tolist() == [[V + 0, a, V + 1, EOS, 0], [a, b, EOS, 0, 0]]
    assert torch.equal(mask, batch.mask)
    softmax, _ = choices(Model("softmax"), batch, log_l, to_attention=True)
    assert softmax[0, 2] == UNK  # a softmax cannot look


def test_what_nothing_reaches_is_never_the_end_of_the_source():
    batch, log_l = make_batch(), predicted()[2].clone()
    batch.target[1, 0] = UNREACHED
    log_l[0, 2] = torch.tensor([0.2, 0.1, 0.7]).log()
    log_l[1, 0] = torch.tensor([0.1, 0.9, 0.0]).log()  # this source ends at its second position
    target, _ = choices(Model(), batch, log_l, to_attention=True)
    assert target.tolist() == [[V + 0, a, V + 0, EOS, 0], [V + 0, b, EOS, 0, 0]]


def test_an_empty_source_has_nothing_to_look_at():
    batch = make_batch()
    batch.target[1, 0], batch.x_mask[1] = UNREACHED, torch.tensor([True, False, False])
    target, _ = choices(Model(), batch, predicted()[2], to_attention=True)
    assert target[1, 0] == UNREACHED


def test_looking_is_rewarded_at_the_place_and_the_choice_has_no_gradient():
    batch, model = make_batch(), Model()
    readout, evidence, log_l = predicted()
    log_l = log_l.clone().requires_grad_()
    log_p = log_likelihood(settings(unreachable="attention"), model, Predicted(readout, evidence, log_l), batch)
    best = int(log_l[0, 2, :2].argmax())  # the third position is the end
    d = model.output.switch(evidence).sigmoid()
    torch.testing.assert_close(log_p[0, 2], (1 - d[0, 2]).log() + log_l[0, 2, best])
    (grad,) = torch.autograd.grad(log_p.sum(), log_l)
    expected = torch.zeros_like(grad)
    expected[0, 0, 0], expected[0, 2, best] = 1, 1  # zorb, and the looking at; nothing through the argmax
    torch.testing.assert_close(grad, expected)


def test_joint_by_hand():
    model, batch, some = Model(), make_batch(), predicted()
    d, w, p = parts(model, some)
    log_p = log_likelihood(settings(), model, some, batch)
    expected = torch.tensor(
        [
            [(1 - d[0, 0]) * p[0, 0, 0], d[0, 1] * w[0, 1, a], d[0, 2] * w[0, 2, UNK], d[0, 3] * w[0, 3, EOS], 1],
            [d[1, 0] * w[1, 0, a], d[1, 1] * w[1, 1, b], d[1, 2] * w[1, 2, EOS], 1, 1],
        ]
    ).double()
    torch.testing.assert_close(log_p.exp(), expected)


def test_marginal_by_hand():
    model, batch, some = Model(), make_batch(), predicted()
    d, w, p = parts(model, some)
    log_p = log_likelihood(settings("marginal"), model, some, batch)

    def both(n, t, word, place):
        return d[n, t] * w[n, t, word] + (1 - d[n, t]) * p[n, t, place]

    first = [(1 - d[0, 0]) * p[0, 0, 0], both(0, 1, a, 1), d[0, 2] * w[0, 2, UNK], both(0, 3, EOS, 2), 1]
    second = [d[1, 0] * w[1, 0, a], both(1, 1, b, 0), both(1, 2, EOS, 1), 1, 1]
    torch.testing.assert_close(log_p.exp(), torch.tensor([first, second]).double())


@pytest.mark.parametrize("loss", ["joint", "marginal"])
def test_only_candidates_compete(loss):
    model, batch, some = Model(), make_batch(), predicted()
    allowed = torch.tensor([EOS, UNK, a])
    batch.y[1, 1] = batch.target[1, 1] = a  # in place of b, so that b is no word to predict
    log_p = log_likelihood(settings(loss), model, some, batch, allowed)
    d, _, p = parts(model, some)
    w = model.output.shortlist(some.readout)[..., allowed].softmax(-1).detach()
    by_pointer = (1 - d[0, 1]) * p[0, 1, 1] if loss == "marginal" else 0
    torch.testing.assert_close(log_p[0, 1].exp(), d[0, 1] * w[0, 1, a] + by_pointer)
    torch.testing.assert_close(log_p[1, 0].exp(), d[1, 0] * w[1, 0, a])


@pytest.mark.parametrize("kind", ["softmax", "pointer-network"])
def test_without_a_switch_there_is_nothing_to_sum_out(kind):
    model, batch, some = Model(kind), make_batch(), predicted()
    joint, marginal = (log_likelihood(settings(loss), model, some, batch) for loss in ("joint", "marginal"))
    assert joint.isfinite().all()
    torch.testing.assert_close(marginal, joint)


def test_comparable_by_hand():
    # Both models are asked for a, b, the end, or some other word: zorb and floop are the same event.
    model, batch, some = Model(), make_batch(), predicted()
    d, w, p = parts(model, some)
    unknown = d[0, [0, 2]] * w[0, [0, 2], UNK] + (1 - d[0, [0, 2]]) * p[0, [0, 2], 0]
    log_p = comparable(model, some, batch)
    torch.testing.assert_close(log_p[0, [0, 2]].exp(), unknown)
    torch.testing.assert_close(log_p[0, 1].exp(), d[0, 1] * w[0, 1, a] + (1 - d[0, 1]) * p[0, 1, 1])
    torch.testing.assert_close(log_p[1, 0].exp(), d[1, 0] * w[1, 0, a])
    assert not log_p[~batch.mask].any()


def test_comparable_is_the_softmaxs_own_likelihood():
    model, batch, some = Model("softmax"), make_batch(), predicted()
    torch.testing.assert_close(comparable(model, some, batch), log_likelihood(settings(), model, some, batch))


@pytest.mark.parametrize("kind", ["softmax", "pointer-softmax"])
def test_the_comparable_events_are_everything_that_can_happen(kind):
    model, batch, some = Model(kind), make_batch(), predicted()
    batch = batch._replace(mask=torch.ones_like(batch.mask))
    every = [comparable(model, some, batch._replace(y=torch.full((B, T), word))).exp() for word in range(V)]
    torch.testing.assert_close(sum(every), torch.ones(B, T).double())
    for name in range(V, V + J):  # a word to copy is "some other word", whichever it is
        torch.testing.assert_close(
            comparable(model, some, batch._replace(y=torch.full((B, T), name))).exp(), every[UNK]
        )


class Formless(Model):
    """A model of words alone."""

    def form_logits(self, readout, x, x_mask, y, place=None):
        return None


PLAIN = Formless()


class FormModel:
    """Three forms; their probabilities depend on the word alone."""

    def form_logits(self, readout, x, x_mask, y, place=None):
        return torch.tensor([[0.1, 0.1, 0.8], [0.5, 0.25, 0.25]]).log()[(y == a).long()]


def test_forms_by_hand():
    # zorb a floop </s>, and a b </s>: each word but the end has a form
    batch = make_batch()._replace(y_form=torch.tensor([[2, 0, 1, 0, 0], [1, 2, 0, 0, 0]]))
    log_p = form_log_likelihood(FormModel(), predicted(), batch)
    expected = torch.tensor([[0.8, 0.5, 0.1, 1, 1], [0.25, 0.8, 1, 1, 1]])
    torch.testing.assert_close(log_p.exp(), expected)
    words, right = forms_right(FormModel(), predicted(), batch)
    assert words.tolist() == [[True, True, True, False, False], [True, True, False, False, False]]
    assert right.tolist() == [[True, True, False, False, False], [False, True, False, False, False]]


def test_a_corpus_without_forms_teaches_none():
    assert form_log_likelihood(FormModel(), predicted(), make_batch()) is None
    assert not forms_right(FormModel(), predicted(), make_batch())[0].any()


LINKS = torch.tensor([[0, 1, -1, 2, -1], [-1, 0, 1, -1, -1]])  # -1: the word is linked to nothing


def test_guidance_is_the_probability_of_looking_at_what_is_linked():
    some = predicted()
    log_l = guidance(some, make_batch()._replace(links=LINKS))
    l_t = some.log_l.exp().float()
    expected = [[l_t[0, 0, 0], l_t[0, 1, 1], 1, l_t[0, 3, 2], 1], [1, l_t[1, 1, 0], l_t[1, 2, 1], 1, 1]]
    torch.testing.assert_close(log_l.exp(), torch.tensor(expected))
    padded = LINKS.clone()
    padded[0, 4] = 0  # a link of padding is none
    torch.testing.assert_close(guidance(some, make_batch()._replace(links=padded)), log_l)
    assert guidance(some, make_batch()) is None


@pytest.mark.parametrize("candidates", [None, torch.tensor([b, EOS]), torch.tensor([EOS])])
def test_smoothing_is_the_mean_of_all_words_less_the_target(candidates):
    # the target's words always compete: EOS, UNK and a; b only as a candidate
    model, batch, some = Model(), make_batch(), predicted()
    batch.target[1, 1] = a
    words = [EOS, UNK, a, b] if candidates is None or b in candidates else [EOS, UNK, a]
    log_w = model.output.shortlist(some.readout)[..., words].log_softmax(-1)
    less = log_w.mean(-1, keepdim=True) - log_w  # (B, T, words); `words` are in the order of their ids
    expected = torch.zeros(B, T)
    for n, t in [(0, 1), (0, 2), (0, 3), (1, 0), (1, 1), (1, 2)]:  # (0, 0) is copied, the others are padding
        expected[n, t] = less[n, t, batch.target[n, t]]
    found = smoothing(model.output, some.readout, batch.target, batch.mask, candidates)
    assert found.dtype == torch.float
    torch.testing.assert_close(found, expected)


class Formed(Model):
    """Predicts forms, too."""

    form_logits = FormModel.form_logits


def config_with(**training):
    data = {name: {"source": "x", "target": "y"} for name in ("train", "dev")}
    pointers = {"guidance": training.pop("guidance", 0.0)}
    return Config(data=data, training=training, pointers=pointers)


def test_the_objective_has_only_the_parts_that_are_asked_for():
    batch, some = make_batch()._replace(links=LINKS), predicted()
    plain = objective(config_with(), PLAIN, some, batch)
    torch.testing.assert_close(plain.log_p, log_likelihood(settings(), PLAIN, some, batch))
    assert plain.others == []
    assert objective(config_with(guidance=0.5), PLAIN, some, make_batch()).others == []  # nothing is linked
    assert objective(config_with(smoothing=0.1), Formless("pointer-network"), some, batch).others == []  # no shortlist
    assert objective(config_with(smoothing=0.1, loss="marginal"), PLAIN, some, batch).others == []  # no target


def test_the_parts_of_the_objective_have_their_weights():
    formed = Formed()
    batch, some = (
        make_batch()._replace(links=LINKS, y_form=torch.tensor([[2, 0, 1, 0, 0], [1, 2, 0, 0, 0]])),
        predicted(),
    )
    log_p, (forms, guided, smoothed) = objective(config_with(guidance=0.5, smoothing=0.1), formed, some, batch)
    torch.testing.assert_close(log_p, log_likelihood(settings(), formed, some, batch))
    torch.testing.assert_close(forms, form_log_likelihood(formed, some, batch))
    torch.testing.assert_close(guided, 0.5 * guidance(some, batch))
    expected = 0.1 * smoothing(formed.output, some.readout, batch.target, batch.mask)
    torch.testing.assert_close(smoothed, expected)
    few = torch.tensor([EOS, b])
    log_p, (_, _, smoothed) = objective(config_with(guidance=0.5, smoothing=0.1), formed, some, batch, few)
    torch.testing.assert_close(log_p, log_likelihood(settings(), formed, some, batch, few))
    torch.testing.assert_close(smoothed, 0.1 * smoothing(formed.output, some.readout, batch.target, batch.mask, few))


def test_what_is_smoothed_is_what_is_taught():
    config = config_with(smoothing=0.5)
    config = config.model_copy(update={"pointers": settings(unreachable="attention").pointers})
    (smoothed,) = objective(config, PLAIN, predicted(), make_batch()).others
    assert smoothed[0, 2] == 0  # floop, which nothing reaches, is taught as a place to look at
    assert smoothed[0, 1] != 0


def test_what_the_text_says_of_every_step():
    # zorb zorb </s>, and b </s>: the second zorb is as right as the first
    batch, log_l = make_batch(), predicted()[2].clone()
    batch.source_words[0, 1] = V + 0
    batch.target[1, 1] = V + 0
    log_l[0, 0] = torch.tensor([0.2, 0.7, 0.1]).log()
    log_l[1, 1] = torch.tensor([0.4, 0.6, 0.0]).log()  # at the end, which is another word
    mask, shortlist, pointing, found = observed(settings(), PLAIN, batch, log_l)
    yes, no = True, False
    assert torch.equal(mask, batch.mask)
    assert shortlist.tolist() == [[no, yes, yes, yes, yes], [yes, no, yes, yes, yes]]
    assert pointing.tolist() == [[yes, no, no, no, no], [no, yes, no, no, no]]
    assert found.tolist() == [[yes, no, no, no, no], [no, no, no, no, no]]
    looked = observed(settings(unreachable="attention"), PLAIN, batch, log_l)
    assert looked.shortlist.tolist() == [[no, yes, no, yes, yes], [yes, no, yes, yes, yes]]  # floop is looked at
    assert torch.equal(looked.pointing, pointing)
    assert torch.equal(looked.found, found)


def test_sources_without_a_word_have_nothing_to_find():
    batch = make_batch()
    ends = torch.full((B, 1), EOS)
    batch = batch._replace(source_words=ends, x_mask=ends == EOS, target=batch.target.clamp(max=UNK))
    said = observed(settings(), PLAIN, batch, torch.zeros(B, T, 1))
    assert not said.pointing.any()
    assert not said.found.any()
