import pytest
import torch
from torch import nn

from pointing.config import Training
from pointing.training import optimizers
from pointing.training.optimizers import Adadelta, Adam, build_optimizer, clip_gradients, learning_rate

THEIRS = {
    "adadelta": lambda p: torch.optim.Adadelta(p, lr=0.7, rho=0.95, eps=1e-6),
    "adam": lambda p: torch.optim.Adam(p, lr=0.02),
    "adamw": lambda p: torch.optim.AdamW(p, lr=0.02, weight_decay=0.1),
}
OURS = {
    "adadelta": lambda p: Adadelta(p, lr=0.7),
    "adam": lambda p: Adam(p, lr=0.02),
    "adamw": lambda p: Adam(p, lr=0.02, weight_decay=0.1),
}
V, E = 6, 5


def parameters(*shapes):
    torch.manual_seed(0)
    return {f"p{n}": nn.Parameter(torch.randn(*shape)) for n, shape in enumerate(shapes)}


def make(name, some):
    return OURS[name](some.values())


def tensors(some, optimizer):
    """The parameters and all that the optimiser keeps about them."""
    kept = {f"{slot}.{name}": value for name, p in some.items() for slot, value in optimizer.state[p].items()}
    return some | kept


def sparse(rows, grad):
    return torch.sparse_coo_tensor(torch.tensor([rows]), grad, (V, E), check_invariants=False)


@pytest.mark.parametrize("name", THEIRS)
@pytest.mark.parametrize("numbers", [2**16, 7])
def test_dense_updates_are_torchs(name, numbers, monkeypatch):
    monkeypatch.setattr(optimizers, "NUMBERS_IN_CACHE", numbers)
    ours, copies = parameters((4, 3), (5,)), parameters((4, 3), (5,))
    optimizer, theirs = make(name, ours), THEIRS[name](copies.values())
    for update in range(1, 9):
        for p, copy in zip(ours.values(), copies.values(), strict=True):
            p.grad = torch.randn_like(p) * 10 ** (update % 3 - 1)
            copy.grad = p.grad.clone()
        optimizer.step()
        theirs.step()
        for p, copy in zip(ours.values(), copies.values(), strict=True):
            torch.testing.assert_close(p, copy)


@pytest.mark.parametrize("name", THEIRS)
def test_where_every_row_has_a_gradient_sparse_is_dense(name):
    some, whole = parameters((V, E)), parameters((V, E))
    sparsely, densely = make(name, some), make(name, whole)
    for _ in range(5):
        grad, order = torch.randn(V, E), torch.randperm(V)
        whole["p0"].grad, some["p0"].grad = grad, sparse(order.tolist(), grad[order]).coalesce()
        sparsely.step()
        densely.step()
        torch.testing.assert_close(some["p0"], whole["p0"])
    expected = tensors(whole, densely)
    for slot, tensor in tensors(some, sparsely).items():
        torch.testing.assert_close(tensor, expected[slot])


@pytest.mark.parametrize("name", THEIRS)
def test_rows_without_a_gradient_are_left_as_they_are(name):
    some = parameters((V, E))
    optimizer = make(name, some)
    some["p0"].grad = torch.randn(V, E)
    optimizer.step()  # statistics that could decay
    before = {slot: tensor.clone() for slot, tensor in tensors(some, optimizer).items()}
    some["p0"].grad = sparse([4, 1], torch.randn(2, E)).coalesce()
    optimizer.step()
    for slot, tensor in tensors(some, optimizer).items():
        same = (tensor == before[slot]).all(1)
        assert same.tolist() == [True, False, True, True, False, True], slot


def test_a_parameter_without_a_gradient_is_left_as_it_is():
    some = parameters((V, E), (2,))
    optimizer = make("adam", some)
    before = some["p1"].clone()
    some["p0"].grad = torch.ones(V, E)
    optimizer.step()
    assert torch.equal(some["p1"], before)
    assert not optimizer.state[some["p1"]]["means"].any()


@pytest.mark.parametrize("name", THEIRS)
def test_a_row_that_is_there_twice_gets_the_sum_of_its_gradients(name):
    twice, once = parameters((V, E)), parameters((V, E))
    a, b, c = torch.randn(3, E)
    twice["p0"].grad, once["p0"].grad = (
        sparse([2, 5, 2], torch.stack([a, b, c])),
        sparse([5, 2], torch.stack([b, a + c])),
    )
    for some in (twice, once):
        make(name, some).step()
    torch.testing.assert_close(twice["p0"], once["p0"])


def test_adadelta_by_hand():
    # E[g²] = 0.05 · 4; Δ = √(1e-6 / (0.2 + 1e-6)) · 2; E[Δ²] = 0.05 Δ²
    some = {"p": nn.Parameter(torch.tensor([1.0], dtype=torch.float64))}
    optimizer = Adadelta(some.values())
    some["p"].grad = torch.tensor([2.0], dtype=torch.float64)
    optimizer.step()
    delta = 2 * (1e-6 / (0.2 + 1e-6)) ** 0.5
    assert some["p"].item() == pytest.approx(1 - delta, rel=1e-12)
    assert optimizer.state[some["p"]]["squares"].item() == pytest.approx(0.2)
    assert optimizer.state[some["p"]]["deltas"].item() == pytest.approx(0.05 * delta**2)


@pytest.mark.parametrize("name", OURS)
def test_a_state_dict_is_all_that_is_kept_between_steps(name):
    def steps(numbers, some, optimizer):
        for number in numbers:
            torch.manual_seed(number)
            some["p0"].grad = torch.randn(V, E)
            optimizer.step()

    through, cut = parameters((V, E)), parameters((V, E))
    steps(range(1, 7), through, make(name, through))
    first = make(name, cut)
    steps(range(1, 4), cut, first)
    second = make(name, cut)
    second.load_state_dict(first.state_dict())
    steps(range(4, 7), cut, second)
    assert torch.equal(through["p0"], cut["p0"])


@pytest.mark.parametrize("name", OURS)
def test_tensors_whose_numbers_are_not_in_a_row_are_updated_too(name):
    ours, copies = ({"p": nn.Parameter(torch.arange(12.0).view(3, 4).T)} for _ in range(2))
    ours["p"].grad = torch.randn(4, 3)
    copies["p"].grad = ours["p"].grad.clone()
    make(name, ours).step()
    THEIRS[name](copies.values()).step()
    torch.testing.assert_close(ours["p"], copies["p"])


def test_groups_have_settings_of_their_own_and_a_closure_gives_the_loss():
    some = parameters((3,), (3,))
    optimizer = Adadelta([{"params": [some["p0"]]}, {"params": [some["p1"]], "lr": 0.0}])
    before = {name: p.detach().clone() for name, p in some.items()}

    def closure():
        optimizer.zero_grad()
        loss = sum(p.square().sum() for p in some.values())
        loss.backward()
        return loss.item()

    assert optimizer.step(closure) == pytest.approx(sum(p.square().sum().item() for p in before.values()))
    assert torch.equal(some["p1"], before["p1"])
    assert not torch.equal(some["p0"], before["p0"])


@pytest.mark.parametrize("name", OURS)
def test_torchs_scaler_and_schedulers_take_them(name):
    some, scaled = parameters((V, E)), parameters((V, E))
    plainly, optimizer = make(name, some), make(name, scaled)
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
    schedules = [torch.optim.lr_scheduler.LambdaLR(each, lambda step: 0.5**step) for each in (plainly, optimizer)]
    rows = torch.tensor([1, 4, 1])
    for factor in (1.0, torch.inf, 3.0):  # the second one overflows, and is skipped
        losses = [factor * nn.functional.embedding(rows, each["p0"], sparse=True).sum() for each in (some, scaled)]
        if factor < torch.inf:
            losses[0].backward()
            plainly.step()
        scaler.scale(losses[1]).backward()
        assert scaled["p0"].grad.is_sparse
        scaler.step(optimizer)
        scaler.update()
        for each in (plainly, optimizer):
            each.zero_grad()
        for schedule in schedules:
            schedule.step()
    torch.testing.assert_close(scaled["p0"], some["p0"])
    assert scaler.get_scale() == 2.0
    assert optimizer.param_groups[0]["lr"] == OURS[name]([nn.Parameter(torch.ones(1))]).param_groups[0]["lr"] / 8


@pytest.mark.parametrize("norm", [0.5, 1e3])
def test_clipping_is_torchs(norm):
    ours, theirs = parameters((4, 3), (5,)), parameters((4, 3), (5,))
    for p, copy in zip(ours.values(), theirs.values(), strict=True):
        p.grad = torch.randn_like(p)
        copy.grad = p.grad.clone()
    total = clip_gradients(ours.values(), norm)
    torch.testing.assert_close(total, nn.utils.clip_grad_norm_(theirs.values(), norm))
    for p, copy in zip(ours.values(), theirs.values(), strict=True):
        torch.testing.assert_close(p.grad, copy.grad, rtol=1e-5, atol=1e-6)


def test_clipping_of_sparse_gradients_by_hand():
    # Row 2 twice: 3 + 0 in one column, and the dense 4: the norm is 5
    some = parameters((V, E), (1,))
    grad = torch.zeros(2, E)
    grad[:, 1] = torch.tensor([1.0, 2.0])
    some["p0"].grad, some["p1"].grad = sparse([2, 2], grad), torch.tensor([4.0])
    assert clip_gradients(some.values(), 1.0).item() == pytest.approx(5)
    assert some["p0"].grad.is_sparse
    assert some["p0"].grad.to_dense()[2, 1].item() == pytest.approx(3 / 5)
    assert some["p1"].grad.item() == pytest.approx(4 / 5)
    assert clip_gradients(some.values(), None).item() == pytest.approx(1)
    assert some["p1"].grad.item() == pytest.approx(4 / 5)


def test_a_gradient_that_is_no_number_is_not_made_one_by_clipping():
    some = parameters((2,), (3,))
    some["p0"].grad, some["p1"].grad = torch.tensor([1.0, torch.inf]), torch.ones(3)
    assert clip_gradients(some.values(), 1.0).isinf()
    assert torch.equal(some["p1"].grad, torch.ones(3))


@pytest.mark.parametrize(
    ("schedule", "rates"),
    [
        ({}, {1: 0.3, 1000: 0.3}),
        ({"updates": 100}, {1: 0.3, 50: 0.3, 100: 0.3}),  # without a decay it does not matter when a run ends
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
    settings = Training(optimizer="adam", learning_rate=0.3, **schedule)
    assert {update: learning_rate(settings, update) for update in rates} == pytest.approx(rates)


def test_the_settings_choose_the_optimiser_and_its_rate():
    made = {
        name: build_optimizer([nn.Parameter(torch.ones(1))], Training(optimizer=name, weight_decay=decay, warmup=4))
        for name, decay in (("adadelta", 0.0), ("adam", 0.0), ("adamw", 0.1))
    }
    assert [type(optimizer) for optimizer in made.values()] == [Adadelta, Adam, Adam]
    groups = {name: optimizer.param_groups[0] for name, optimizer in made.items()}
    assert {name: group["lr"] for name, group in groups.items()} == {
        "adadelta": 0.25,
        "adam": 0.00025,
        "adamw": 0.00025,
    }
    assert [groups[name]["weight_decay"] for name in ("adam", "adamw")] == [0.0, 0.1]


def test_a_line_must_end_somewhere():
    with pytest.raises(ValueError, match="decay linear ends at the last update: set training"):
        Training(decay="linear")


def test_the_learning_rate_is_torchs_unless_one_is_given():
    p = nn.Parameter(torch.zeros(2))
    assert Adam([p]).defaults["lr"] == torch.optim.Adam([p]).defaults["lr"]
