"""The layer against values by hand, against a naive version of itself, and at the edges."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F

from pointing.kernels import tanh_
from pointing.pointer_softmax import (
    AlwaysPoint,
    Annotations,
    NeverPoint,
    NoisyTanh,
    PointerNetwork,
    PointerSoftmax,
    Switch,
    _logsumexp,
    masked_log_softmax,
)

B, T, J, V, R, E, Q, A = 3, 4, 5, 7, 6, 8, 9, 10
INF = math.inf


def make(dtype=torch.float64, network=False, seed=0, **switch):
    torch.manual_seed(seed)
    own = PointerNetwork(Q, A, 11) if network else None
    return PointerSoftmax(V, R, Switch(E, 12, **switch), own).to(dtype).eval()


def inputs(dtype=torch.float64, seed=1):
    """A readout, evidence, log l with one masked position, targets of both kinds, and two padded steps."""
    g = torch.Generator().manual_seed(seed)
    x_mask = torch.ones(B, 1, J, dtype=torch.bool)
    x_mask[1, :, -1] = False
    log_l = masked_log_softmax(torch.randn(B, T, J, generator=g, dtype=torch.float64), x_mask).to(dtype)
    target = torch.tensor([[0, V + 2, 6, V], [3, 3, V + 3, 1], [V + 4, 2, 5, V + 1]])
    mask = torch.ones(B, T, dtype=torch.bool)
    mask[2, 2:] = False
    readout, evidence = (torch.randn(B, T, width, generator=g, dtype=torch.float64).to(dtype) for width in (R, E))
    return readout, evidence, log_l, target, mask


def annotations(seed=2, dtype=torch.float64):
    g = torch.Generator().manual_seed(seed)
    x_mask = torch.arange(J) < torch.tensor([[J], [J - 1], [1]])  # the last source is all padding but one
    return Annotations(
        torch.randn(B, T, Q, generator=g, dtype=dtype), torch.randn(B, J, A, generator=g, dtype=dtype), x_mask
    )


def set_by_hand(layer, switch_logit, log_w):
    """The switch's logit and the shortlist's logits become constants."""
    for parameter in layer.parameters():
        torch.nn.init.zeros_(parameter)
    layer.shortlist.bias.data = torch.tensor(log_w, dtype=torch.float64)
    layer.switch.last.bias.data.fill_(switch_logit)


def test_f_t_by_hand():
    # d = 3/4, w = (1/2, 1/4, 1/4), l = (1/5, 4/5)
    layer = PointerSoftmax(3, R, Switch(E, 2, bias=0)).double()
    set_by_hand(layer, math.log(3), [math.log(2), 0.0, 0.0])
    log_l = torch.tensor([[[1 / 5, 4 / 5]]], dtype=torch.float64).log()
    log_f = layer(torch.zeros(1, 1, R).double(), torch.zeros(1, 1, E).double(), log_l)
    expected = torch.tensor([[[3 / 8, 3 / 16, 3 / 16, 1 / 20, 1 / 5]]], dtype=torch.float64)
    torch.testing.assert_close(log_f.exp(), expected)


def test_joint_likelihood_by_hand():
    # as above: word 0 (3/8), then position 1 (1/5), then a padded step
    layer = PointerSoftmax(3, R, Switch(E, 2, bias=0)).double()
    set_by_hand(layer, math.log(3), [math.log(2), 0.0, 0.0])
    log_l = torch.tensor([[[1 / 5, 4 / 5]] * 3], dtype=torch.float64).log()
    target, mask = torch.tensor([[0, 3 + 1, 0]]), torch.tensor([[True, True, False]])
    log_p = layer.log_likelihood(torch.zeros(1, 3, R).double(), torch.zeros(1, 3, E).double(), log_l, target, mask)
    torch.testing.assert_close(log_p.exp(), torch.tensor([[3 / 8, 1 / 5, 1.0]], dtype=torch.float64))


def test_marginal_by_hand():
    # the source is (word 1, word 1): p(word 1) = 3/16 + 1/20 + 1/5, and its second column is struck out
    layer = PointerSoftmax(3, R, Switch(E, 2, bias=0)).double()
    set_by_hand(layer, math.log(3), [math.log(2), 0.0, 0.0])
    readout, evidence = torch.zeros(1, 1, R).double(), torch.zeros(1, 1, E).double()
    log_l = torch.tensor([[[1 / 5, 4 / 5]]], dtype=torch.float64).log()
    known, unknown = torch.tensor([[1, 1]]), torch.tensor([[3, 3]])  # an unknown word is named by its first place
    merged = layer.marginalize(layer(readout, evidence, log_l), known).exp()
    torch.testing.assert_close(merged, torch.tensor([[[3 / 8, 7 / 16, 3 / 16, 0, 0]]], dtype=torch.float64))
    merged = layer.marginalize(layer(readout, evidence, log_l), unknown).exp()
    torch.testing.assert_close(merged, torch.tensor([[[3 / 8, 3 / 16, 3 / 16, 1 / 4, 0]]], dtype=torch.float64))
    log_p = layer.log_marginal(readout, evidence, log_l, known, torch.tensor([[1]]))
    torch.testing.assert_close(log_p.exp(), torch.tensor([[7 / 16]], dtype=torch.float64))


@pytest.mark.parametrize("pointing", ["learned", "never", "always"])
@pytest.mark.parametrize("own_network", [False, True])
def test_f_t_is_a_distribution(pointing, own_network):
    switch = {"learned": Switch(E, 12), "never": NeverPoint(), "always": AlwaysPoint()}[pointing]
    layer = PointerSoftmax(V, R, switch, PointerNetwork(Q, A) if own_network else None).double()
    readout, evidence, log_l, *_ = inputs()
    f = layer(readout, evidence, annotations() if own_network else log_l).exp()
    torch.testing.assert_close(f.sum(-1), torch.ones(B, T).double())
    assert (f[..., :V].sum() > 0) == (pointing != "always")
    assert (f[..., V:].sum() > 0) == (pointing != "never")


@pytest.mark.parametrize("own_network", [False, True])
@pytest.mark.parametrize("candidates", [None, [0, 1, 2, 3, 5, 6]])
def test_training_path_equals_the_whole_f_t_with_its_gradients(own_network, candidates):
    layer = make(network=own_network)
    readout, evidence, log_l, target, mask = inputs()
    location = annotations() if own_network else log_l
    target = torch.where((target >= V) & (own_network), V, target)  # position 0 is there in every source
    ids = None if candidates is None else torch.tensor(candidates)
    results = []
    for fast in (True, False):
        layer.zero_grad()
        x = readout.clone().requires_grad_(), evidence.clone().requires_grad_()
        if fast:
            log_p = layer.log_likelihood(*x, location, target, mask, ids)
        else:
            log_p = layer(*x, location, ids).gather(-1, target.unsqueeze(-1)).squeeze(-1).masked_fill(~mask, 0)
        (log_p * torch.linspace(0.5, 1.5, B * T).view(B, T)).sum().backward()
        grads = [parameter.grad for parameter in (*layer.parameters(), *x)]
        results.append([log_p.detach(), *(g.to_dense() if g.is_sparse else g for g in grads)])
    for ours, naive in zip(*results, strict=True):
        torch.testing.assert_close(ours, naive)


def test_plain_softmax_is_the_layer_that_never_points():
    layer = PointerSoftmax(V, R, NeverPoint()).double()
    readout, evidence, log_l, target, mask = inputs()
    target = target % V
    log_p = layer.log_likelihood(readout, evidence, log_l, target, mask)
    logits = F.linear(readout, layer.shortlist.weight, layer.shortlist.bias)
    expected = -F.cross_entropy(logits[mask], target[mask], reduction="none")
    torch.testing.assert_close(log_p[mask], expected)
    assert [name for name, _ in layer.named_parameters()] == ["shortlist.weight", "shortlist.bias"]


@pytest.mark.parametrize("bias", [False, True])
def test_an_output_matrix_of_the_models_own_is_shared_with_or_without_a_bias(bias):
    readout, evidence, log_l, target, mask = inputs()
    own = torch.nn.Linear(R, V, bias=bias, dtype=torch.float64)
    shared = PointerSoftmax(V, R, Switch(E, 12), shortlist=own).double().eval()
    copied = PointerSoftmax(V, R, shared.switch).double().eval()
    copied.shortlist.weight.data = own.weight.data.clone()
    copied.shortlist.bias.data = own.bias.data.clone() if bias else torch.zeros(V, dtype=torch.float64)
    log_p = shared.log_likelihood(readout, evidence, log_l, target, mask)
    torch.testing.assert_close(log_p, copied.log_likelihood(readout, evidence, log_l, target, mask))
    torch.testing.assert_close(shared(readout, evidence, log_l), copied(readout, evidence, log_l))
    log_p.sum().backward()
    assert shared.shortlist is own
    assert own.weight.grad.abs().sum() > 0


def test_pointer_network_is_the_layer_that_always_points():
    layer = PointerSoftmax(V, R, AlwaysPoint(), PointerNetwork(Q, A)).double()
    readout, evidence, *_ = inputs()
    at = annotations()
    target = torch.full((B, T), V)
    log_p = layer.log_likelihood(readout, evidence, at, target)
    e = layer.network.score(torch.tanh(layer.network.key(at.h)[:, None] + layer.network.query(at.query)[:, :, None]))
    expected = e.squeeze(-1).masked_fill(~at.x_mask[:, None], -INF).log_softmax(-1)[..., 0]
    torch.testing.assert_close(log_p, expected)
    assert all(name.startswith("network.") for name, _ in layer.named_parameters())


def test_a_layer_that_always_points_never_writes_a_word():
    layer = PointerSoftmax(V, R, AlwaysPoint()).double()
    readout, evidence, log_l, *_ = inputs()
    words, nowhere = torch.full((B, T), 3), torch.full((B, J), V)
    assert (layer.log_likelihood(readout, evidence, log_l, words) == -INF).all()
    assert (layer.log_marginal(readout, evidence, log_l, nowhere, words) == -INF).all()


def test_what_has_no_way_at_all_has_a_gradient_of_zero():
    x = torch.tensor([[-math.inf] * 3, [0.0, math.log(3), -math.inf]], requires_grad=True)
    total = _logsumexp(x)
    torch.testing.assert_close(total, torch.tensor([-math.inf, math.log(4)]))
    total.sum().backward()
    torch.testing.assert_close(x.grad, torch.tensor([[0.0, 0.0, 0.0], [0.25, 0.75, 0.0]]))


def test_argmax_and_top_k_agree_with_the_whole_f_t():
    layer = make()
    readout, evidence, log_l, *_ = inputs()
    log_f = layer(readout, evidence, log_l)
    log_p, choice = layer.top(3, readout, evidence, log_l)
    torch.testing.assert_close(log_p, log_f.topk(3).values)
    assert torch.equal(log_f.gather(-1, choice), log_p)
    assert torch.equal(layer.top(1, readout, evidence, log_l)[1].squeeze(-1), log_f.argmax(-1))


def test_candidates_compete_among_themselves_and_keep_their_numbers():
    layer = make()
    readout, evidence, log_l, *_ = inputs()
    candidates = torch.tensor([6, 1, 4])
    log_f = layer(readout, evidence, log_l, candidates)
    assert log_f.shape == (B, T, V + J)
    assert (log_f[..., [0, 2, 3, 5]] == -INF).all()
    torch.testing.assert_close(log_f.exp().sum(-1), torch.ones(B, T).double())
    log_p, choice = layer.top(4, readout, evidence, log_l, candidates)
    assert torch.equal(log_f.gather(-1, choice), log_p)


def test_candidates_given_twice_count_once():
    layer = make()
    readout, evidence, log_l, *_ = inputs()
    once, twice = torch.tensor([2, 3]), torch.tensor([3, 2, 2, 3])
    torch.testing.assert_close(layer(readout, evidence, log_l, once), layer(readout, evidence, log_l, twice))
    _, choice = layer.top(4, readout, evidence, log_l, twice)
    assert all(len(set(row.tolist())) == 4 for row in choice.flatten(0, 1))


def test_sparse_gradients_equal_those_of_a_plain_softmax_over_the_candidates():
    layer = make()
    readout, evidence, log_l, target, mask = inputs()
    ids = torch.tensor([0, 1, 2, 3, 5, 6])  # all gold words, and 0
    layer.log_likelihood(readout, evidence, log_l, target, mask, ids).sum().backward()
    sparse = [parameter.grad.to_dense() for parameter in layer.shortlist.parameters()]
    layer.zero_grad()
    logits = F.linear(readout, layer.shortlist.weight, layer.shortlist.bias)
    logits[..., 4] = -INF
    words = mask & (target < V)
    (-F.cross_entropy(logits[words], target[words], reduction="sum")).backward()
    for ours, plain in zip(sparse, layer.shortlist.parameters(), strict=True):
        torch.testing.assert_close(ours, plain.grad)


@pytest.mark.filterwarnings("ignore:Sparse invariant checks")
@pytest.mark.parametrize("optimizer", [torch.optim.SparseAdam, torch.optim.Adagrad, torch.optim.SGD])
def test_an_optimiser_that_takes_sparse_gradients_moves_only_the_candidates(optimizer):
    layer = make()
    readout, evidence, log_l, target, mask = inputs()
    before = layer.shortlist.weight.detach().clone()
    layer.log_likelihood(readout, evidence, log_l, target, mask, torch.tensor([0])).sum().backward()
    optimizer(layer.shortlist.parameters(), lr=0.1).step()
    moved = (layer.shortlist.weight != before).any(1)
    assert moved.tolist() == [True, True, True, True, False, False, True]  # 4 and 5 are neither gold nor given


def test_gold_words_are_always_candidates():
    layer = make()
    readout, evidence, log_l, target, mask = inputs()
    gold = target[mask & (target < V)].unique()
    forgotten = layer.log_likelihood(readout, evidence, log_l, target, mask, torch.tensor([4]))
    given = layer.log_likelihood(readout, evidence, log_l, target, mask, torch.cat([gold, torch.tensor([4])]))
    torch.testing.assert_close(forgotten, given)


def test_only_the_candidates_rows_have_gradients():
    layer = make()
    readout, evidence, log_l, target, mask = inputs()
    target = torch.where(target < V, 2, target)
    layer.log_likelihood(readout, evidence, log_l, target, mask, torch.tensor([2, 5])).sum().backward()
    for parameter in layer.shortlist.parameters():
        assert parameter.grad.is_sparse
        assert parameter.grad.coalesce().indices().tolist() == [[2, 5]]


def test_an_empty_candidate_set_is_an_error_that_says_so():
    layer = make()
    readout, evidence, log_l, target, mask = inputs()
    nothing = torch.tensor([], dtype=torch.long)
    for call in (
        lambda: layer.log_likelihood(readout, evidence, log_l, target, mask, nothing),
        lambda: layer(readout, evidence, log_l, nothing),
        lambda: layer.top(1, readout, evidence, log_l, nothing),
    ):
        with pytest.raises(ValueError, match="candidate words is empty"):
            call()


def test_annotations_without_a_pointer_network_are_an_error_that_says_so():
    readout, evidence, *_ = inputs()
    with pytest.raises(ValueError, match="network=PointerNetwork"):
        make()(readout, evidence, annotations())


def test_padded_steps_and_positions_change_nothing():
    layer = make()
    readout, evidence, log_l, target, mask = inputs()
    log_p = layer.log_likelihood(readout, evidence, log_l, target, mask)
    assert (log_p[~mask] == 0).all()
    source_words = torch.full((B, J), V)
    marginal = layer.log_marginal(readout, evidence, log_l, source_words, target, mask)
    readout[~mask], evidence[~mask], target[~mask] = INF, -INF, 0
    wider = torch.cat([log_l, torch.full((B, T, 2), -INF)], -1)
    log_p_again = layer.log_likelihood(readout, evidence, wider, target, mask)
    torch.testing.assert_close(log_p_again, log_p)
    wider_words = torch.full((B, J + 2), V)
    marginal_again = layer.log_marginal(readout, evidence, wider, wider_words, target, mask)
    torch.testing.assert_close(marginal_again, marginal)
    (log_p_again.sum() + marginal_again[marginal_again.isfinite()].sum()).backward()
    assert all(parameter.grad.isfinite().all() for parameter in layer.parameters())


@pytest.mark.parametrize("candidates", [None, torch.tensor([1, 3, 5])])
def test_gradcheck_of_the_joint_likelihood(candidates):
    layer = make(layers=2, activation="tanh")
    readout, evidence, log_l, target, mask = inputs()
    weights = [layer.shortlist.weight, layer.shortlist.bias] if candidates is None else []
    finite = log_l.masked_fill(log_l == -INF, -30)
    gradients = [x.requires_grad_() for x in (readout, evidence, finite, *weights)]

    def joint(*x):
        return layer.log_likelihood(*x[:3], target, mask, candidates)

    assert torch.autograd.gradcheck(joint, gradients)


def test_gradcheck_of_the_marginal_and_of_the_pointer_network():
    layer = make(network=True, activation="noisy-tanh")
    readout, evidence, *_ = inputs()
    at = annotations()
    source_words = torch.tensor([[0, V + 1, 3, 3, V + 1], [2, 2, 2, 2, 0], [6, 0, 0, 0, 0]])
    word = torch.tensor([[0, V + 1, 3, 5], [2, 2, 1, 4], [6, 6, 0, 1]])
    mask = torch.ones(B, T, dtype=torch.bool)
    mask[2, 3] = False

    def marginal(readout, evidence, query, h):
        location = Annotations(query, h, at.x_mask)
        return layer.log_marginal(readout, evidence, location, source_words, word, mask)

    def joint(readout, evidence, query, h):
        location = Annotations(query, h, at.x_mask)
        return layer.log_likelihood(readout, evidence, location, torch.full((B, T), V), mask)

    gradients = [x.clone().requires_grad_() for x in (readout, evidence, at.query, at.h)]
    assert torch.autograd.gradcheck(marginal, gradients)
    assert torch.autograd.gradcheck(joint, gradients)


def test_marginal_loss_equals_the_marginalized_f_t():
    layer = make()
    readout, evidence, log_l, _, mask = inputs()
    source_words = torch.tensor([[0, V + 1, 3, 3, V + 1], [2, 2, 2, 2, 0], [6, V + 1, V + 2, 1, V + 1]])
    word = torch.tensor([[0, V + 1, 3, 5], [2, 2, 1, 4], [V + 1, V + 2, 0, 1]])
    merged = layer.marginalize(layer(readout, evidence, log_l), source_words)
    torch.testing.assert_close(merged.exp().sum(-1), torch.ones(B, T).double())
    expected = merged.gather(-1, word.unsqueeze(-1)).squeeze(-1)
    log_p = layer.log_marginal(readout, evidence, log_l, source_words, word, mask)
    torch.testing.assert_close(log_p, expected.masked_fill(~mask, 0))


def test_a_source_with_nothing_to_copy_leaves_everything_to_the_shortlist():
    layer = make()
    readout, evidence, log_l, target, mask = inputs()
    log_l[0] = -INF
    target[0] = torch.tensor([0, 1, 2, 3])
    readout.requires_grad_()
    evidence.requires_grad_()
    log_l.requires_grad_()
    f = layer(readout, evidence, log_l).exp()
    torch.testing.assert_close(f.sum(-1), torch.ones(B, T).double())
    assert (f[0, :, V:] == 0).all()
    words = F.linear(readout, layer.shortlist.weight, layer.shortlist.bias).log_softmax(-1)
    log_p = layer.log_likelihood(readout, evidence, log_l, target, mask)
    torch.testing.assert_close(log_p[0], words[0].gather(-1, target[0].unsqueeze(-1)).squeeze(-1))
    log_p.sum().backward()
    for x in (readout, evidence, log_l, *layer.parameters()):
        assert x.grad is None or x.grad.isfinite().all()


def test_a_source_that_is_all_padding_but_one_is_copied_from_there():
    layer = make(network=True)
    readout, evidence, *_ = inputs()
    at = annotations()
    log_f = layer(readout, evidence, at)
    assert (log_f[2, :, V + 1 :] == -INF).all()
    d = F.logsigmoid(-layer.switch(evidence))
    torch.testing.assert_close(log_f[2, :, V], d[2])


@pytest.mark.parametrize("logit", [-1e4, 1e4, -INF, INF])
def test_a_saturated_switch_gives_no_nan_and_exact_zeros(logit):
    layer = make()
    readout, evidence, log_l, target, mask = inputs()
    layer.switch.last.bias.data.fill_(logit)
    log_f = layer(readout, evidence, log_l)
    assert not log_f.isnan().any()
    torch.testing.assert_close(log_f.exp().sum(-1), torch.ones(B, T).double())
    chosen = torch.where(target < V, target, V) if logit < 0 else target  # what the switch forbids costs 1e4 or inf
    log_p = layer.log_likelihood(readout, evidence, log_l, chosen, mask)
    assert not log_p.isnan().any()
    log_p[log_p.isfinite()].sum().backward()
    assert all(p.grad is None or not p.grad.isnan().any() for p in layer.parameters())


def test_float64_is_left_alone_under_autocast():
    with torch.autocast("cpu", torch.bfloat16):
        log_p = make().log_likelihood(*inputs())
    torch.testing.assert_close(log_p, make().log_likelihood(*inputs()), atol=0.05, rtol=0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_autocast_stays_near_float64(dtype):
    layer, exact = make(torch.float32), make(torch.float64)
    x64, x32 = inputs(), inputs(torch.float32)
    with torch.autocast("cpu", dtype, enabled=dtype != torch.float32):
        log_p = layer.log_likelihood(*x32)
        log_f = layer(*x32[:3])
    assert log_p.dtype == log_f.dtype == torch.float32
    tolerance = {"rtol": 0, "atol": 1e-5 if dtype == torch.float32 else 0.05}
    torch.testing.assert_close(log_p.double(), exact.log_likelihood(*x64), **tolerance)
    torch.testing.assert_close(log_f.double(), exact(*x64[:3]), **tolerance)
    log_p.sum().backward()
    exact.log_likelihood(*x64).sum().backward()
    for ours, right in zip(layer.parameters(), exact.parameters(), strict=True):
        torch.testing.assert_close(ours.grad.double(), right.grad, rtol=0, atol=1e-4 if dtype == torch.float32 else 0.3)


def test_many_rows_and_words_take_the_chunks_path(monkeypatch):
    import pointing.kernels as module

    whole = make().log_likelihood(*inputs())
    layer = make()
    monkeypatch.setattr(module, "TRAINING_LOGITS_IN_CACHE", 1)
    log_p = layer.log_likelihood(*inputs())
    torch.testing.assert_close(log_p, whole)
    log_p.sum().backward()
    reference = make()
    reference(*inputs()[:3]).gather(-1, inputs()[3].unsqueeze(-1)).squeeze(-1)[inputs()[4]].sum().backward()
    torch.testing.assert_close(layer.shortlist.weight.grad, reference.shortlist.weight.grad)


def test_backward_can_be_repeated():
    layer = make()
    loss = layer.log_likelihood(*inputs()).sum()
    loss.backward(retain_graph=True)
    once = layer.shortlist.weight.grad.clone()
    loss.backward()
    torch.testing.assert_close(layer.shortlist.weight.grad, 2 * once)


def test_the_switch_starts_towards_the_shortlist_and_sharpens():
    switch = Switch(E, 3, bias=1.0, inverse_temperature=2.0)
    torch.nn.init.zeros_(switch.last.weight)
    torch.testing.assert_close(switch(torch.zeros(1, E)).sigmoid(), torch.tensor([1 / (1 + math.exp(-2))]))


def test_the_switch_by_hand_with_a_residual_from_the_lower_layer():
    # a1 = relu(2 - 0.5) = 1.5; a2 = relu(3 * 1.5 + 1) + 1.5 = 7; logit = 0.5 * 7 - 1
    def by_hand(residual):
        switch = Switch(1, 1, layers=2, activation="relu", residual=residual, bias=-1.0)
        for parameter, value in zip(switch.parameters(), [1.0, -0.5, 3.0, 1.0, 0.5, -1.0], strict=True):
            parameter.data.fill_(value)
        return switch(torch.tensor([2.0])).item()

    assert by_hand(residual=True) == 2.5
    assert by_hand(residual=False) == 1.75


def test_a_switch_without_layers_is_logistic_regression():
    switch = Switch(E, 3, layers=0)
    evidence = torch.randn(B, T, E)
    torch.testing.assert_close(switch(evidence), switch.last(evidence).squeeze(-1))


def test_noisy_tanh_by_hand_at_test_time():
    x = torch.tensor([-3.0, -1.0, -0.4, 0.0, 0.9, 1.0, 2.0])
    expected = torch.tensor([-0.9, -1.0, -0.4, 0.0, 0.9, 1.0, 0.95])  # beyond 1: sgn (1 - 0.05 δ)
    torch.testing.assert_close(NoisyTanh().eval()(x), expected)


def test_noisy_tanh_is_noisy_in_training_only_where_it_saturates():
    torch.manual_seed(0)
    x = torch.tensor([0.5, 3.0]).repeat(20_000, 1)
    y = NoisyTanh().train()(x)
    assert (y[:, 0] == 0.5).all()
    # δ = 2: s = 0.5 (σ(4) - 0.5)² = 0.11619
    torch.testing.assert_close(y[:, 1].mean(), torch.tensor(0.9), atol=0.005, rtol=0)
    torch.testing.assert_close(
        y[:, 1].std(), torch.tensor(0.5 * (1 / (1 + math.exp(-4)) - 0.5) ** 2), atol=2e-3, rtol=0
    )


def test_noisy_tanhs_gradient_is_that_of_its_formula():
    x = torch.tensor([-4.0, -1.3, -0.9, -0.2, 0.7, 1.1, 2.5], dtype=torch.float64).requires_grad_()
    torch.manual_seed(0)
    y = NoisyTanh().train()(x)
    torch.manual_seed(0)
    delta = (x.abs() - 1).clamp(min=0)
    spread = 0.5 * (torch.sigmoid(delta**2) - 0.5) ** 2
    expected = x - x.sign() * 1.05 * delta - spread * torch.randn_like(x)
    torch.testing.assert_close(y, expected)
    torch.testing.assert_close(*(torch.autograd.grad(out.sin().sum(), x) for out in (y, expected)))


@settings(max_examples=50, deadline=None)
@given(st.data())
def test_any_mask_and_any_targets_give_the_whole_f_ts_values(data):
    b, t, j, v = (data.draw(st.integers(1, 4)) for _ in range(4))
    g = torch.Generator().manual_seed(data.draw(st.integers(0, 10_000)))
    layer = PointerSoftmax(v, R, Switch(E, 3)).double().eval()
    x_mask = torch.rand(b, 1, j, generator=g) < 0.6
    log_l = masked_log_softmax(torch.randn(b, t, j, generator=g).double() * 5, x_mask)
    target = torch.randint(v + j, (b, t), generator=g)
    mask = torch.rand(b, t, generator=g) < 0.7
    readout, evidence = torch.randn(b, t, R, generator=g).double(), torch.randn(b, t, E, generator=g).double()
    log_f = layer(readout, evidence, log_l)
    expected = log_f.gather(-1, target.unsqueeze(-1)).squeeze(-1).masked_fill(~mask, 0)
    torch.testing.assert_close(layer.log_likelihood(readout, evidence, log_l, target, mask), expected)
    torch.testing.assert_close(log_f.exp().sum(-1), torch.ones(b, t).double())


def test_tanh_in_place_is_tanh():
    x = torch.linspace(-30, 30, 6001, dtype=torch.float64)
    torch.testing.assert_close(tanh_(x.clone()), x.tanh(), rtol=0, atol=1e-15)
    torch.testing.assert_close(tanh_(x.float()).double(), x.float().double().tanh(), rtol=0, atol=2e-7)
