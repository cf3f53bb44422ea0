import pytest
import torch
from torch import nn

from pointing.config import Training
from pointing.training import optimizers
from pointing.training.optimizers import Optimizer, clip, values

THEIRS = {
    "adadelta": lambda p: torch.optim.Adadelta(p, lr=0.7, rho=0.95, eps=1e-6),
    "adam": lambda p: torch.optim.Adam(p, lr=0.02),
    "adamw": lambda p: torch.optim.AdamW(p, lr=0.02, weight_decay=0.1),
}
RATES = {"adadelta": 0.7, "adam": 0.02, "adamw": 0.02}
V, E = 6, 5


def settings(optimizer, **more):
    decay = {"weight_decay": 0.1} if optimizer == "adamw" else {}
    return Training(optimizer=optimizer, learning_rate=RATES[optimizer], **decay, **more)


def parameters(*shapes):
    torch.manual_seed(0)
    return {f"p{n}": nn.Parameter(torch.randn(*shape)) for n, shape in enumerate(shapes)}


def sparse(rows, grad):
    return torch.sparse_coo_tensor(torch.tensor([rows]), grad, (V, E), check_invariants=False)


@pytest.mark.parametrize("name", THEIRS)
@pytest.mark.parametrize("numbers", [2**16, 7])
def test_dense_updates_are_torchs(name, numbers, monkeypatch):
    monkeypatch.setattr(optimizers, "IN_CACHE", numbers)
    ours, copies = parameters((4, 3), (5,)), parameters((4, 3), (5,))
    optimizer, theirs = Optimizer(ours.items(), settings(name)), THEIRS[name](copies.values())
    for update in range(1, 9):
        for p, copy in zip(ours.values(), copies.values(), strict=True):
            p.grad = torch.randn_like(p) * 10 ** (update % 3 - 1)
            copy.grad = p.grad.clone()
        optimizer.update(update)
        theirs.step()
        for p, copy in zip(ours.values(), copies.values(), strict=True):
            torch.testing.assert_close(p, copy)
            assert p.grad is None


@pytest.mark.parametrize("name", THEIRS)
def test_where_every_row_has_a_gradient_sparse_is_dense(name):
    some, whole = parameters((V, E)), parameters((V, E))
    sparsely, densely = Optimizer(some.items(), settings(name)), Optimizer(whole.items(), settings(name))
    for update in range(1, 6):
        grad, order = torch.randn(V, E), torch.randperm(V)
        whole["p0"].grad, some["p0"].grad = grad, sparse(order.tolist(), grad[order]).coalesce()
        sparsely.update(update)
        densely.update(update)
        torch.testing.assert_close(some["p0"], whole["p0"])
    for slot in sparsely.slots:
        torch.testing.assert_close(sparsely.slots[slot], densely.slots[slot])


@pytest.mark.parametrize("name", THEIRS)
def test_rows_without_a_gradient_are_left_as_they_are(name):
    some = parameters((V, E))
    optimizer = Optimizer(some.items(), settings(name))
    some["p0"].grad = torch.randn(V, E)
    optimizer.update(1)  # statistics that could decay
    before = {slot: tensor.clone() for slot, tensor in (optimizer.slots | some).items()}
    some["p0"].grad = sparse([4, 1], torch.randn(2, E)).coalesce()
    optimizer.update(2)
    for slot, tensor in (optimizer.slots | some).items():
        same = (tensor == before[slot]).all(1)
        assert same.tolist() == [True, False, True, True, False, True], slot


def test_a_parameter_without_a_gradient_is_left_as_it_is():
    some = parameters((V, E), (2,))
    optimizer = Optimizer(some.items(), settings("adam"))
    before = some["p1"].clone()
    some["p0"].grad = torch.ones(V, E)
    optimizer.update(1)
    assert torch.equal(some["p1"], before)
    assert not optimizer.slots["means.p1"].any()


@pytest.mark.parametrize("name", THEIRS)
def test_a_row_that_is_there_twice_gets_the_sum_of_its_gradients(name):
    twice, once = parameters((V, E)), parameters((V, E))
    a, b, c = torch.randn(3, E)
    twice["p0"].grad, once["p0"].grad = (
        sparse([2, 5, 2], torch.stack([a, b, c])),
        sparse([5, 2], torch.stack([b, a + c])),
    )
    for some in (twice, once):
        Optimizer(some.items(), settings(name)).update(1)
    torch.testing.assert_close(twice["p0"], once["p0"])


def test_adadelta_by_hand():
    # E[g²] = 0.05 · 4; Δ = √(1e-6 / (0.2 + 1e-6)) · 2; E[Δ²] = 0.05 Δ²
    some = {"p": nn.Parameter(torch.tensor([1.0], dtype=torch.float64))}
    optimizer = Optimizer(some.items(), Training())
    some["p"].grad = torch.tensor([2.0], dtype=torch.float64)
    optimizer.update(1)
    delta = 2 * (1e-6 / (0.2 + 1e-6)) ** 0.5
    assert some["p"].item() == pytest.approx(1 - delta, rel=1e-12)
    assert optimizer.slots["squares.p"].item() == pytest.approx(0.2)
    assert optimizer.slots["deltas.p"].item() == pytest.approx(0.05 * delta**2)


def test_what_is_kept_between_updates_is_all_there_is():
    def run(updates, some, optimizer):
        for update in updates:
            torch.manual_seed(update)
            some["p0"].grad = torch.randn(V, E)
            optimizer.update(update)

    through, cut = parameters((V, E)), parameters((V, E))
    run(range(1, 7), through, Optimizer(through.items(), settings("adam")))
    first = Optimizer(cut.items(), settings("adam"))
    run(range(1, 4), cut, first)
    second = Optimizer(cut.items(), settings("adam"))
    second.slots.update(first.slots)
    run(range(4, 7), cut, second)
    assert torch.equal(through["p0"], cut["p0"])


@pytest.mark.parametrize("norm", [0.5, 1e3])
def test_clipping_is_torchs(norm):
    ours, theirs = parameters((4, 3), (5,)), parameters((4, 3), (5,))
    for p, copy in zip(ours.values(), theirs.values(), strict=True):
        p.grad = torch.randn_like(p)
        copy.grad = p.grad.clone()
    total = clip(ours, norm)
    torch.testing.assert_close(total, nn.utils.clip_grad_norm_(theirs.values(), norm))
    for p, copy in zip(ours.values(), theirs.values(), strict=True):
        torch.testing.assert_close(p.grad, copy.grad, rtol=1e-5, atol=1e-6)


def test_clipping_of_sparse_gradients_by_hand():
    # Row 2 twice: 3 + 0 in one column, and the dense 4: the norm is 5
    some = parameters((V, E), (1,))
    grad = torch.zeros(2, E)
    grad[:, 1] = torch.tensor([1.0, 2.0])
    some["p0"].grad, some["p1"].grad = sparse([2, 2], grad), torch.tensor([4.0])
    assert clip(some, 1.0).item() == pytest.approx(5)
    assert some["p0"].grad.is_sparse
    assert some["p0"].grad.to_dense()[2, 1].item() == pytest.approx(3 / 5)
    assert some["p1"].grad.item() == pytest.approx(4 / 5)
    assert clip(some, None).item() == pytest.approx(1)
    assert some["p1"].grad.item() == pytest.approx(4 / 5)


def test_a_gradient_that_is_no_number_is_not_made_one_by_clipping():
    some = parameters((2,), (3,))
    some["p0"].grad, some["p1"].grad = torch.tensor([1.0, torch.inf]), torch.ones(3)
    assert clip(some, 1.0).isinf()
    assert torch.equal(some["p1"].grad, torch.ones(3))


def test_values_may_be_changed_in_place():
    some = parameters((V, E), (3,), (2,))
    some["p0"].grad, some["p1"].grad = sparse([3, 3], torch.ones(2, E)), torch.ones(3)
    for grad in values(some):
        grad.mul_(10)
    assert torch.equal(some["p0"].grad.to_dense()[3], torch.full((E,), 20.0))
    assert torch.equal(some["p1"].grad, torch.full((3,), 10.0))


@pytest.mark.parametrize(
    ("schedule", "rates"),
    [
        ({}, {1: 0.3, 1000: 0.3}),
        ({"warmup": 10}, {1: 0.03, 5: 0.15, 10: 0.3, 11: 0.3, 1000: 0.3}),
        ({"warmup": 4, "decay": "inverse-sqrt"}, {2: 0.15, 4: 0.3, 16: 0.15, 400: 0.03}),
        ({"decay": "inverse-sqrt"}, {1: 0.3, 4: 0.15, 100: 0.03}),
        ({"decay": "linear", "updates": 3}, {1: 0.225, 2: 0.15, 3: 0.075, 4: 0.0, 9: 0.0}),
        ({"warmup": 2, "decay": "linear", "updates": 5}, {1: 0.15, 2: 0.3, 3: 0.225, 5: 0.075, 6: 0.0}),
        ({"warmup": 5, "decay": "linear", "updates": 5}, {5: 0.3, 6: 0.0}),
    ],
)
def test_learning_rates_at_their_corners(schedule, rates):
    # linear: from the height at the warm-up's end to 0 one update after the last, so that the last one still learns
    optimizer = Optimizer([], Training(optimizer="adam", learning_rate=0.3, **schedule))
    assert {update: optimizer.rate(update) for update in rates} == pytest.approx(rates)


def test_each_rule_has_a_rate_of_its_own():
    rates = {name: Optimizer([], Training(optimizer=name)).rate(1) for name in THEIRS}
    assert rates == {"adadelta": 1.0, "adam": 0.001, "adamw": 0.001}


def test_a_line_must_end_somewhere():
    with pytest.raises(ValueError, match="decay linear ends at the last update: set training"):
        Training(decay="linear")
