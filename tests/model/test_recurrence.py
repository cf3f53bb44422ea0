import pytest
import torch
from torch import nn

from pointing.model import recurrence
from pointing.model.recurrence import Weights, conditional_gru, gru, step

T, D, B, J, S, A = 4, 2, 3, 5, 6, 7


def normal(*shape, dtype=torch.float64):
    return (0.5 * torch.randn(*shape, dtype=dtype)).requires_grad_()


def gru_inputs(dtype=torch.float64):
    torch.manual_seed(0)
    shapes = (T, D, B, 3 * S), (D, B, S), (D, 3 * S, S), (D, 3 * S)
    return [normal(*shape, dtype=dtype) for shape in shapes]


def conditional_inputs(dtype=torch.float64):
    """gates, s, keys, h, x_mask, and the weights one by one."""
    torch.manual_seed(1)
    x_mask = torch.arange(J) < torch.tensor([[J], [1], [3]])
    shapes = (T, B, 3 * S), (B, S), (B, J, A), (B, J, A)
    of_weights = (3 * S, S), (3 * S,), (A, S), (1, A), (3 * S, A), (3 * S,), (3 * S, S), (3 * S,)
    first, weights = ([normal(*shape, dtype=dtype) for shape in some] for some in (shapes, of_weights))
    return [*first, x_mask, *weights]


def run_conditional(gates, s, keys, h, x_mask, *weights):
    return conditional_gru(gates, s, keys, h, x_mask, Weights(*weights))


def plain_step(gates, s, weight, bias):
    """torch's GRUCell, written out."""
    recurrent = s @ weight.T + bias
    r, u = ((gates + recurrent)[..., part : part + S].sigmoid() for part in (0, S))
    new = (gates[..., 2 * S :] + r * recurrent[..., 2 * S :]).tanh()
    return u * s + (1 - u) * new


def plain_conditional(gates, s, keys, h, x_mask, *weights):
    """The same, step by step, for autograd."""
    w = Weights(*weights)
    states, contexts, energies = [], [], []
    for gates_t in gates:
        middle = plain_step(gates_t, s, w.first, w.first_bias)
        e = ((keys + (middle @ w.query.T).unsqueeze(1)).tanh() @ w.score.T).squeeze(2)
        e = e.masked_fill(~x_mask, -torch.inf)
        c = (e.softmax(-1).unsqueeze(2) * h).sum(1)
        s = plain_step(c @ w.context.T + w.context_bias, middle, w.second, w.second_bias)
        states.append(s)
        contexts.append(c)
        energies.append(e)
    return torch.stack(states), torch.stack(contexts), torch.stack(energies)


def loss_of(outputs):
    """Some number that depends on all that is finite in the outputs, each entry differently."""
    torch.manual_seed(2)
    return sum((out.masked_fill(out == -torch.inf, 0).sin() * torch.randn_like(out)).sum() for out in outputs)


def gradients(run, inputs):
    wanted = [x for x in inputs if x.requires_grad]
    outputs = run(*inputs)
    return torch.autograd.grad(loss_of(outputs if isinstance(outputs, tuple) else (outputs,)), wanted)


def test_grus_side_by_side_are_torchs_with_their_gradients():
    torch.manual_seed(3)
    E = 8
    theirs = nn.GRU(E, S, bidirectional=True).double()
    x, first = torch.randn(T, B, E).double(), torch.randn(D, B, S).double().requires_grad_()
    parts = [[getattr(theirs, f"{name}_l0{way}") for way in ("", "_reverse")] for name in ("weight_hh", "bias_hh")]
    weight, bias = (torch.stack(part) for part in parts)
    ahead = x @ theirs.weight_ih_l0.T + theirs.bias_ih_l0
    back = x.flip(0) @ theirs.weight_ih_l0_reverse.T + theirs.bias_ih_l0_reverse
    states = gru(torch.stack([ahead, back], 1), first, weight, bias)
    ours = torch.cat([states[:, 0], states[:, 1].flip(0)], -1)
    expected, _ = theirs(x, first)
    torch.testing.assert_close(ours, expected)
    wanted = [first, *theirs.parameters()]
    for mine, its in zip(*(torch.autograd.grad(loss_of([out]), wanted) for out in (ours, expected)), strict=True):
        torch.testing.assert_close(mine, its)


def test_one_step_is_torchs_cell():
    torch.manual_seed(4)
    cell = nn.GRUCell(8, S).double()
    y, s = torch.randn(B, 8).double(), torch.randn(B, S).double()
    ours = step(y @ cell.weight_ih.T + cell.bias_ih, s @ cell.weight_hh.T + cell.bias_hh, s)
    torch.testing.assert_close(ours, cell(y, s))


def test_the_plain_step_of_these_tests_is_torchs_cell():
    torch.manual_seed(5)
    cell = nn.GRUCell(8, S).double()
    y, s = torch.randn(B, 8).double(), torch.randn(B, S).double()
    torch.testing.assert_close(
        plain_step(y @ cell.weight_ih.T + cell.bias_ih, s, cell.weight_hh, cell.bias_hh), cell(y, s)
    )


def test_the_conditional_gru_is_the_plain_loop_with_its_gradients():
    inputs = conditional_inputs()
    for ours, plain in zip(run_conditional(*inputs), plain_conditional(*inputs), strict=True):
        torch.testing.assert_close(ours, plain)
    for ours, plain in zip(gradients(run_conditional, inputs), gradients(plain_conditional, inputs), strict=True):
        torch.testing.assert_close(ours, plain)


def test_gru_gradients_by_differences():
    assert torch.autograd.gradcheck(gru, gru_inputs())


def test_conditional_gru_gradients_by_differences():
    def finite(*inputs):
        s, c, e = run_conditional(*inputs)
        return s, c, e[inputs[4].expand_as(e)]

    assert torch.autograd.gradcheck(finite, conditional_inputs())


@pytest.mark.parametrize("output", [0, 1, 2])
def test_gradients_where_the_loss_reads_only_one_output(output):
    inputs = conditional_inputs()
    wanted = [x for x in inputs if x.requires_grad]
    for ours, plain in zip(
        *(
            torch.autograd.grad(loss_of([run(*inputs)[output]]), wanted, allow_unused=True, materialize_grads=True)
            for run in (run_conditional, plain_conditional)
        ),
        strict=True,
    ):
        torch.testing.assert_close(ours, plain)


def test_padding_is_closed_and_gets_no_gradient():
    inputs = conditional_inputs()
    x_mask = inputs[4]
    e = run_conditional(*inputs)[2]
    assert torch.equal(e == -torch.inf, ~x_mask.expand_as(e))
    _, _, grad_keys, grad_h, *_ = gradients(run_conditional, inputs)
    assert not grad_keys[~x_mask].any()
    assert not grad_h[~x_mask].any()
    changed = [*inputs[:2], *(x.detach().masked_fill(~x_mask.unsqueeze(2), 1e3) for x in inputs[2:4]), *inputs[4:]]
    for before, after in zip(run_conditional(*inputs), run_conditional(*changed), strict=True):
        torch.testing.assert_close(after, before)


@pytest.mark.parametrize("needed", [[0], [1], [2, 3], [5], [8, 9], [12]])
def test_gradients_when_only_some_inputs_need_them(needed):
    everything = conditional_inputs()
    all_of_them = dict(zip([n for n in range(13) if n != 4], gradients(run_conditional, everything), strict=True))
    some = [x if n == 4 else x.detach().requires_grad_(n in needed) for n, x in enumerate(everything)]
    for n, grad in zip(needed, gradients(run_conditional, some), strict=True):
        torch.testing.assert_close(grad, all_of_them[n])


def test_without_gradients_the_loops_give_the_same_and_keep_nothing():
    with torch.no_grad():
        states, (s, _, _) = gru(*gru_inputs()), run_conditional(*conditional_inputs())
    assert not states.requires_grad
    assert not s.requires_grad
    torch.testing.assert_close(states, gru(*gru_inputs()).detach())


@pytest.mark.parametrize("numbers", [1, J * A, 2 * J * A, 2 * J * A + 3])
def test_how_much_is_worked_on_at_a_time_changes_nothing(monkeypatch, numbers):
    inputs = conditional_inputs()
    whole, whole_gradients = run_conditional(*inputs), gradients(run_conditional, inputs)
    monkeypatch.setattr(recurrence, "ATTENTION_NUMBERS_IN_CACHE", numbers)
    monkeypatch.setattr(recurrence, "MATRIX_NUMBERS_IN_CACHE", numbers)
    for some, all_at_once in zip(run_conditional(*inputs), whole, strict=True):
        torch.testing.assert_close(some, all_at_once)
    for some, all_at_once in zip(gradients(run_conditional, inputs), whole_gradients, strict=True):
        torch.testing.assert_close(some, all_at_once)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_states_are_exact_whatever_autocast_is(dtype):
    for run, inputs in ((gru, gru_inputs(torch.float32)), (run_conditional, conditional_inputs(torch.float32))):
        rounded = [inputs[0].detach().to(dtype), *inputs[1:]]  # what a linear layer gives under autocast
        exact = run(rounded[0].float(), *inputs[1:])
        with torch.autocast("cpu", dtype):
            under_autocast = run(*rounded)
        pairs = zip(under_autocast, exact, strict=True) if isinstance(exact, tuple) else [(under_autocast, exact)]
        for ours, expected in pairs:
            assert ours.dtype == torch.float32
            assert torch.equal(ours, expected)


def test_gradients_come_back_in_the_type_of_what_went_in():
    inputs = gru_inputs(torch.float32)
    gates = inputs[0].detach().bfloat16().requires_grad_()
    with torch.autocast("cpu", torch.bfloat16):
        loss = loss_of([gru(gates, *inputs[1:])])
    loss.backward()
    assert gates.grad.dtype == torch.bfloat16
    assert inputs[2].grad.dtype == torch.float32


def test_one_step_one_example_one_place():
    torch.manual_seed(6)
    inputs = conditional_inputs()
    one = [inputs[0][:1, :1], inputs[1][:1], *(x[:1, :1] for x in inputs[2:5]), *inputs[5:]]
    for ours, plain in zip(run_conditional(*one), plain_conditional(*one), strict=True):
        torch.testing.assert_close(ours, plain)
    s, c, _ = run_conditional(*one)
    torch.testing.assert_close(c[0], one[3][:, 0])  # one place gets all the attention
    assert s.shape == (1, 1, S)
