import pytest
import torch
from torch.nn import functional as F

from pointing.config import Model
from pointing.model import Seq2Seq, _gru
from pointing.pointer_softmax import Switch

V, X, B, J, T, E, S = 11, 9, 3, 5, 4, 6, 7


def make(output="pointer-softmax", seed=0):
    torch.manual_seed(seed)
    model = Seq2Seq(Model(embedding=E, hidden=S, output=output), X, V).double().eval()
    for parameter in model.parameters():  # the paper's first weights are so small that little could go wrong visibly
        torch.nn.init.normal_(parameter, 0, 0.5)
    return model


def inputs():
    torch.manual_seed(1)
    x_mask = torch.arange(J) < torch.tensor([[J], [2], [4]])
    x = torch.randint(X, (B, J)) * x_mask
    y = torch.randint(V, (B, T))  # names below V; a copied word has a name from V on
    target = torch.where(torch.rand(B, T) < 0.4, V + 1, y)
    mask = torch.arange(T) < torch.tensor([[T], [3], [1]])
    return x, x_mask, y, target, mask


def test_shapes():
    x, x_mask, y, *_ = inputs()
    readout, evidence, log_l = make()(x, x_mask, y)
    assert (readout.shape, evidence.shape, log_l.shape) == ((B, T, E), (B, T, 3 * S), (B, T, J))
    torch.testing.assert_close(log_l.exp().sum(-1), torch.ones(B, T).double())
    assert (log_l[1, :, 2:] == -torch.inf).all()


def test_stepwise_equals_teacher_forced():
    model = make()
    x, x_mask, y, *_ = inputs()
    readout, evidence, log_l = model(x, x_mask, y)
    source, s = model.decoder.read(model.encoder(x, x_mask), x_mask)
    y_prev = torch.zeros(B, E).double()
    for t in range(T):
        s, c, log_l_t = model.decoder.step(model.decoder.gates(y_prev), s, source)
        torch.testing.assert_close(log_l_t, log_l[:, t])
        torch.testing.assert_close(torch.cat([c, s], -1), evidence[:, t])
        torch.testing.assert_close(model.readout(s, y_prev, c), readout[:, t])
        y_prev = model.embedding(y[:, t])


def test_a_batch_equals_its_sentences_one_by_one():
    model = make()
    x, x_mask, y, target, mask = inputs()
    together = model.output.log_likelihood(*model(x, x_mask, y), target, mask)
    for n in range(B):
        j, t = int(x_mask[n].sum()), int(mask[n].sum())
        alone = model(x[n : n + 1, :j], x_mask[n : n + 1, :j], y[n : n + 1, :t])
        log_p = model.output.log_likelihood(*alone, target[n : n + 1, :t])
        torch.testing.assert_close(together[n, :t], log_p[0])


def test_the_decoders_gru_is_pytorchs():
    model = make()
    s, y = torch.randn(B, S).double(), torch.randn(B, E).double()
    torch.testing.assert_close(_gru(model.decoder.gates(y), s, model.decoder.first), model.decoder.first(y, s))


def test_only_the_output_layer_differs_between_the_three_models():
    names = {
        output: {n for n, _ in make(output).named_parameters()}
        for output in ("softmax", "pointer-softmax", "pointer-network")
    }
    below = {name for name in names["softmax"] if not name.startswith("output.")}
    assert all({n for n in some if not n.startswith("output.")} == below for some in names.values())
    assert not any("switch" in name for name in names["softmax"] | names["pointer-network"])


def test_first_weights_are_dl4mts_and_the_switch_starts_towards_the_shortlist():
    torch.manual_seed(0)
    model = Seq2Seq(Model(embedding=40, hidden=50), 100, 200)
    assert abs(model.embedding.weight.std() - 0.01) < 0.001
    u = model.decoder.first.weight_hh.chunk(3)[0]
    torch.testing.assert_close(u @ u.T, torch.eye(50), atol=1e-5, rtol=0)
    assert isinstance(model.output.switch, Switch)
    assert model.output.switch.last.bias.item() == 1.0
    assert not model.decoder.start.bias.any()


@pytest.mark.parametrize("output", ["softmax", "pointer-softmax"])
def test_a_model_learns_one_batch_by_heart(output):
    torch.manual_seed(0)
    model = Seq2Seq(Model(embedding=16, hidden=24, output=output), X, V)
    x, x_mask, y, target, mask = inputs()
    target = y if output == "softmax" else target
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(150):
        loss = -model.output.log_likelihood(*model(x, x_mask, y), target, mask).sum() / B
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loss < 0.05
    _, choice = model.eval().output.top(1, *model(x, x_mask, y))
    assert torch.equal(choice.squeeze(-1)[mask], target[mask])


def test_gradients_reach_every_parameter():
    model = make()
    x, x_mask, y, target, mask = inputs()
    F.relu(-model.output.log_likelihood(*model(x, x_mask, y), target, mask)).sum().backward()
    assert [name for name, p in model.named_parameters() if p.grad is None or not p.grad.any()] == []
