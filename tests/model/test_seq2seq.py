import pytest
import torch
from torch.nn import functional as F

from pointing.config import Model
from pointing.model.encoder import Reads
from pointing.model.seq2seq import FastGRUSearch, GRUSearch, GRUState, Seq2Seq
from pointing.text.vocabulary import UNK

V, X, B, J, T, E, S = 11, 9, 3, 5, 4, 6, 7


def make(output="pointer-softmax", seed=0, forms=False, **settings):
    torch.manual_seed(seed)
    model = Seq2Seq(Model(embedding=E, hidden=S, output=output, **settings), X, V, reads=Reads(forms)).double().eval()
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


@pytest.mark.parametrize("form", [GRUSearch, FastGRUSearch])
@pytest.mark.parametrize("feed", ["word", "source"])
@torch.inference_mode()
def test_stepwise_equals_teacher_forced(feed, form):
    model = make(feed=feed)
    x, x_mask, y, *_ = inputs()
    y[0, 1], y[2, 0] = V + 3, V + 1  # two copied words that the target vocabulary does not have
    readout, evidence, log_l = model(x, x_mask, y)
    search_form = form(model)
    state = search_form.read(x, x_mask)
    for t in range(T):
        predicted, state = search_form.step(state)
        torch.testing.assert_close(predicted.log_l, log_l[:, t : t + 1])
        torch.testing.assert_close(predicted.evidence, evidence[:, t : t + 1])
        torch.testing.assert_close(predicted.readout, readout[:, t : t + 1])
        state, _ = search_form.follow(state, torch.zeros(B, 1, dtype=torch.long), y[:, t : t + 1])


@pytest.mark.parametrize("form", [GRUSearch, FastGRUSearch])
@torch.inference_mode()
def test_stepwise_forms_are_the_teacher_forced_ones(form):
    model = make(feed="source", forms=True)
    x, x_mask, y, *_ = inputs()
    y[0, 1] = V + 3
    x_form = torch.randint(16, x.shape)
    expected = model.form_logits(model(x, x_mask, y, x_form).readout, x, x_mask, y)
    assert expected.shape == (B, T, 16)
    assert len(expected.argmax(-1).unique()) > 2
    search_form = form(model)
    state = search_form.read(x, x_mask, x_form)
    for t in range(T):
        _, state = search_form.step(state)
        state, forms = search_form.follow(state, torch.zeros(B, 1, dtype=torch.long), y[:, t : t + 1])
        assert torch.equal(forms, expected[:, t : t + 1].argmax(-1))


def test_the_source_is_read_with_its_forms_and_only_if_there_are_any():
    x, x_mask, y, *_ = inputs()
    model, plain = make(forms=True), make()
    x_form = torch.randint(16, x.shape)
    assert not torch.equal(model(x, x_mask, y, x_form).readout, model(x, x_mask, y, x_form * 0).readout)
    assert torch.equal(plain(x, x_mask, y, x_form).readout, plain(x, x_mask, y).readout)
    assert plain.form_logits(plain(x, x_mask, y).readout, x, x_mask, y) is None


def test_hypotheses_of_one_source_step_as_if_each_had_its_own():
    model, K = make(), 3
    x, x_mask, *_ = inputs()
    source, _ = model.read(x, x_mask)
    s, y_prev = torch.randn(B, K, S).double(), torch.randn(B, K, E).double()
    together, after = GRUSearch(model).step(GRUState(source, s, y_prev, y_prev))
    for k in range(K):
        alone, after_alone = GRUSearch(model).step(
            GRUState(source, *(part[:, k : k + 1] for part in (s, y_prev, y_prev)))
        )
        torch.testing.assert_close(after.s[:, k : k + 1], after_alone.s)
        for parts, part in zip(together, alone, strict=True):
            torch.testing.assert_close(parts[:, k : k + 1], part)


@torch.inference_mode()
def test_the_fast_step_is_the_reference():
    model, K = make(), 3
    x, x_mask, *_ = inputs()
    source, _ = model.read(x, x_mask)
    state = GRUState(source, *(torch.randn(B, K, width).double() for width in (S, E, E)))
    (reference, after), (fast, fast_after) = (form(model).step(state) for form in (GRUSearch, FastGRUSearch))
    torch.testing.assert_close(fast_after.s, after.s)
    for ours, expected in zip(fast, reference, strict=True):
        torch.testing.assert_close(ours, expected)
    assert isinstance(model.for_search(), FastGRUSearch)  # on a CPU


def test_a_model_in_training_mode_is_not_searched():
    with pytest.raises(ValueError, match="training mode"):
        make().train().for_search()


def test_our_loop_over_the_source_is_pytorchs():
    torch.manual_seed(3)
    model = Seq2Seq(Model(embedding=E, hidden=S, encoder_layers=2), X, V).double()
    _, x_mask, *_ = inputs()
    embedded = torch.randn(J, B, E).double()
    ours, theirs = (run(embedded, x_mask.sum(1)) for run in (model.encoder._by_hand, model.encoder._by_library))
    real = x_mask.t()
    torch.testing.assert_close(ours[real], theirs[real])


def test_what_is_fed_back_after_a_copy():
    x, x_mask, *_ = inputs()
    y = torch.tensor([[4, V + 2], [V, 3], [V + 1, 0]])
    for feed, output in (("word", "pointer-softmax"), ("source", "pointer-softmax"), ("source", "softmax")):
        model = make(feed=feed, output=output)
        fed = model.feed(y, model.read_words(x, x_mask, None))
        torch.testing.assert_close(fed[0, 0], model.embedding.weight[4])
        if feed == "word" or output == "softmax":  # which never copies, so at test it is never told either
            torch.testing.assert_close(fed[0, 1], model.embedding.weight[UNK])
        else:
            torch.testing.assert_close(fed[0, 1], model.copied(model.encoder.embedding.weight[x[0, 2]]))


def test_sparse_gradients_are_the_dense_ones():
    x, x_mask, y, target, mask = inputs()
    gradients = {}
    for sparse in (False, True):
        torch.manual_seed(0)
        model = Seq2Seq(Model(embedding=E, hidden=S, dropout=0.0), X, V, sparse).double().eval()
        (-model.output.log_likelihood(*model(x, x_mask, y), target, mask).sum()).backward()
        gradients[sparse] = model.encoder.embedding.weight.grad, model.embedding.weight.grad
    for dense, few in zip(gradients[False], gradients[True], strict=True):
        assert few.is_sparse
        torch.testing.assert_close(few.to_dense(), dense)


def test_tied_embeddings_are_one_parameter():
    model = Seq2Seq(Model(embedding=E, hidden=S, tied=True), X, V)
    assert model.output.shortlist.weight is model.embedding.weight
    assert "output.shortlist.weight" not in dict(model.named_parameters())


def test_dropout_is_there_in_training_and_not_after():
    torch.manual_seed(0)
    model = Seq2Seq(Model(embedding=E, hidden=S, dropout=0.5), X, V)
    x, x_mask, y, *_ = inputs()
    assert not torch.equal(model(x, x_mask, y)[0], model(x, x_mask, y)[0])
    model.eval()
    assert torch.equal(model(x, x_mask, y)[0], model(x, x_mask, y)[0])


def test_the_readout_has_dropout_of_its_own():
    model = make(dropout=0.5).train()
    x, x_mask, y, *_ = inputs()
    with torch.no_grad():
        readout = model(x.repeat(9, 1), x_mask.repeat(9, 1), y.repeat(9, 1)).readout
    assert 0.4 < float((readout == 0).double().mean()) < 0.6  # a tanh is never exactly 0


def test_a_batch_equals_its_sentences_one_by_one():
    model = make()
    x, x_mask, y, target, mask = inputs()
    together = model.output.log_likelihood(*model(x, x_mask, y), target, mask)
    for n in range(B):
        j, t = int(x_mask[n].sum()), int(mask[n].sum())
        alone = model(x[n : n + 1, :j], x_mask[n : n + 1, :j], y[n : n + 1, :t])
        log_p = model.output.log_likelihood(*alone, target[n : n + 1, :t])
        torch.testing.assert_close(together[n, :t], log_p[0])


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
    assert model.output.switch.last.bias.item() == 1.0
    assert not model.decoder.start.bias.any()


@pytest.mark.parametrize("bias", [-2.0, 0.0, 3.5])
def test_the_switch_starts_where_its_setting_says(bias):
    model = Seq2Seq(Model(embedding=E, hidden=S, switch={"bias": bias}), X, V)
    assert model.output.switch.last.bias.item() == bias


def is_orthogonal(weight):
    return torch.allclose(weight @ weight.T, torch.eye(len(weight)), atol=1e-5)


def test_square_matrices_of_the_attention_and_of_the_start_are_orthogonal_at_first():
    torch.manual_seed(0)
    decoder = Seq2Seq(Model(embedding=40, hidden=50, encoder=25), 100, 200).decoder  # A = S: all three are square
    assert all(is_orthogonal(layer.weight) for layer in (decoder.attention.key, decoder.attention.query, decoder.start))
    model = Seq2Seq(Model(embedding=40, hidden=50, init=0.01), 100, 200)  # A = 2 S: only the key is
    assert is_orthogonal(model.decoder.attention.key.weight)
    for layer in (model.decoder.attention.query, model.decoder.start, model.from_y):  # from_y is of the deep output
        assert abs(layer.weight.std() - 0.01) < 0.001


def test_first_weights_may_be_larger():
    torch.manual_seed(0)
    model = Seq2Seq(Model(embedding=40, hidden=50, init=0.3), 100, 200)
    assert abs(model.embedding.weight.std() - 0.3) < 0.02
    assert abs(model.output.shortlist.weight.std() - 0.3) < 0.02
    u = model.decoder.first.weight_hh.chunk(3)[0]
    torch.testing.assert_close(u @ u.T, torch.eye(50), atol=1e-5, rtol=0)


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


def test_a_model_that_has_diverged_tells_its_trainer_by_the_loss():
    model = make()
    x, x_mask, y, target, mask = inputs()
    torch.nn.init.constant_(model.decoder.attention.query.weight, torch.nan)
    predicted = model(x, x_mask, y)
    assert predicted.log_l[mask].isnan().any()
    assert model.output.log_likelihood(*predicted, target, mask).sum().isnan()
