"""Every kind of model does what model/decoder.py asks of it: the same tests run over all of them."""

from itertools import product

import numpy as np
import pytest
import torch
from model_kinds import KINDS, NAMES

from pointing.config import Config, Model, Search
from pointing.corpus.examples import Batch
from pointing.generation.beam import search
from pointing.model.encoder import Reads, of_positions
from pointing.model.loss import choices, log_likelihood, smoothing
from pointing.model.seq2seq import Seq2Seq
from pointing.model.ssru import SSRU
from pointing.model.transformer import Transformer
from pointing.text.vocabulary import EOS, UNK

V, X, E = 11, 9, 8
each_kind = pytest.mark.parametrize("kind", KINDS, ids=NAMES)


def make(kind, *, forms=False, familiarity=False, sparse=False, **settings):
    torch.manual_seed(0)
    settings = {"feed": "source", "dropout": 0.0, "heads": 2} | settings
    model = Model(kind=kind, embedding=E, hidden=10, encoder=7, **settings)
    layers = {} if model.kind.decoder == "gru" else {"decoder_layers": 2}
    made = Seq2Seq if model.kind.decoder == "gru" else Transformer
    model = made(model.model_copy(update=layers), X, V, sparse, Reads(forms, familiarity)).double().eval()
    for parameter in model.parameters():  # first weights are so small that little could go wrong visibly
        if parameter.dim() > 1:
            torch.nn.init.normal_(parameter, 0, 0.4)
    return model


def batch(pieces):
    """Three sources of different lengths, whose targets copy words that the target vocabulary does not have.

    With `pieces` the words of the sources are read in one to three pieces.
    """
    x_mask = torch.arange(5) < torch.tensor([[5], [3], [4]])
    source_words = torch.tensor([[3, V + 1, 4, 5, EOS], [V, V + 1, EOS, 0, 0], [5, 3, V + 2, EOS, 0]])
    y = torch.tensor([[5, V + 1, 4, 3, EOS], [V + 1, 8, V, EOS, 0], [7, EOS, 0, 0, 0]])
    mask = torch.arange(5) < torch.tensor([[5], [4], [2]])
    if not pieces:
        x = torch.tensor([[2, 3, 4, 5, EOS], [6, 7, EOS, 0, 0], [5, 2, 6, EOS, 0]])
        return Batch(np.arange(3), x, x_mask, source_words, y, y, mask)
    x = torch.tensor([[2, 3, 3, 8, 4, 5, EOS], [6, 8, 7, 2, EOS, 0, 0], [5, 2, 6, EOS, 0, 0, 0]])
    place = torch.tensor([[0, 1, 1, 1, 2, 3, 4], [0, 0, 1, 1, 2, -1, -1], [0, 1, 2, 3, -1, -1, -1]])
    return Batch(np.arange(3), x, x_mask, source_words, y, y, mask, None, None, place)


def run(model, examples, rows=slice(None)):
    parts = examples.x, examples.x_mask, examples.y, examples.place
    x, x_mask, y, place = (None if part is None else part[rows] for part in parts)
    return model(x, x_mask, y, None, place)


@each_kind
@pytest.mark.parametrize("pieces", [False, True])
@torch.inference_mode()
def test_stepwise_equals_teacher_forced(kind, pieces):
    model, examples = make(kind), batch(pieces)
    whole, form = run(model, examples), model.for_search()
    state = form.read(examples.x, examples.x_mask, None, examples.place)
    for t in range(examples.y.shape[1]):
        predicted, state = form.step(state)
        for part, expected in zip(predicted, whole, strict=True):
            torch.testing.assert_close(part, expected[:, t : t + 1])
        state, _ = form.follow(state, torch.zeros(3, 1, dtype=torch.long), examples.y[:, t : t + 1])


@each_kind
@pytest.mark.parametrize("pieces", [False, True])
@pytest.mark.parametrize("beam", [1, 4])
def test_a_search_scores_as_teacher_forcing_does(kind, pieces, beam):
    model, examples = make(kind), batch(pieces)
    found = search(model.for_search(), examples, Search(beam=beam, nbest=beam, max_length=8), locations=True)
    for row, hypotheses in enumerate(found):
        assert len(hypotheses) == beam
        for hypothesis in hypotheses:
            taken = torch.from_numpy(hypothesis.choices)
            y = torch.where(taken < V, taken, examples.source_words[row][(taken - V).clamp(min=0)])
            predicted = run(model, examples._replace(y=y.expand(3, -1)), slice(row, row + 1))
            log_p = model.output.log_likelihood(*predicted, taken.unsqueeze(0))[0]
            np.testing.assert_allclose(hypothesis.log_p, log_p.detach(), atol=1e-5)
            np.testing.assert_allclose(hypothesis.location, predicted.log_l[0].exp().detach(), atol=1e-5)


@each_kind
@pytest.mark.parametrize("pieces", [False, True])
def test_the_coverage_penalty_is_of_positions(kind, pieces):
    model, examples = make(kind), batch(pieces)
    settings = Search(beam=3, nbest=3, coverage=0.3, normalize="none", max_length=8)
    for row, hypotheses in enumerate(search(model.for_search(), examples, settings, locations=True)):
        words = examples.x_mask[row] & (examples.source_words[row] != EOS)
        for hypothesis in hypotheses:
            attended = hypothesis.location.sum(0)[words.numpy()]
            expected = hypothesis.log_p.sum() + 0.3 * np.log(np.minimum(attended, 1)).sum()
            np.testing.assert_allclose(hypothesis.score, expected, rtol=1e-5)


@each_kind
@pytest.mark.parametrize("pieces", [False, True])
@torch.no_grad()
def test_a_source_alone_is_what_it_is_among_longer_ones(kind, pieces):
    model, examples = make(kind), batch(pieces)
    together = run(model, examples)
    read = (examples.x_mask if examples.place is None else examples.place >= 0).sum(1)
    for row, positions in enumerate(examples.x_mask.sum(1).tolist()):
        place = None if examples.place is None else examples.place[row : row + 1, : read[row]]
        x, x_mask = examples.x[row : row + 1, : read[row]], examples.x_mask[row : row + 1, :positions]
        alone = model(x, x_mask, examples.y[row : row + 1], None, place)
        torch.testing.assert_close(alone.log_l[0], together.log_l[row, :, :positions])
        torch.testing.assert_close(alone.readout[0], together.readout[row])


@each_kind
@torch.no_grad()
def test_words_of_one_piece_are_read_as_words(kind):
    model, examples = make(kind), batch(pieces=False)
    position = torch.where(examples.x_mask, torch.arange(5), -1)
    in_pieces = run(model, examples._replace(place=position))
    for part, expected in zip(in_pieces, run(model, examples), strict=True):
        torch.testing.assert_close(part, expected)


@each_kind
@torch.no_grad()
def test_a_later_word_changes_no_earlier_step(kind):
    model, examples = make(kind), batch(pieces=True)
    before = run(model, examples)
    y = examples.y.clone()
    y[:, 2] = 9
    after = run(model, examples._replace(y=y))
    torch.testing.assert_close(after.readout[:, :3], before.readout[:, :3])
    assert not torch.allclose(after.readout[:, 3], before.readout[:, 3])


@each_kind
@torch.no_grad()
def test_what_a_copied_word_is_read_as_is_fed_back(kind):
    model, examples = make(kind), batch(pieces=True)
    x = examples.x.clone()
    x[0, 3] = 7  # the last piece of the word that is copied at the second step
    words = model.read_words(examples.x, examples.x_mask, examples.place)
    torch.testing.assert_close(
        words[0, 1], model.copied(model.encoder.embedding.weight[torch.tensor([3, 3, 8])].mean(0))
    )
    fed = model.feed(examples.y, words)
    torch.testing.assert_close(fed[0, 1], words[0, 1])
    torch.testing.assert_close(fed[0, 0], model.embedding.weight[5])
    assert not torch.allclose(model.feed(examples.y, model.read_words(x, examples.x_mask, examples.place)), fed)


@each_kind
def test_sparse_gradients_are_the_dense_ones(kind):
    gradients = {}
    for sparse in (False, True):
        model, examples = make(kind, sparse=sparse), batch(pieces=True)
        model.output.log_likelihood(*run(model, examples), examples.target, examples.mask).sum().backward()
        gradients[sparse] = model.encoder.embedding.weight.grad, model.embedding.weight.grad
    for dense, few in zip(gradients[False], gradients[True], strict=True):
        assert few.is_sparse
        torch.testing.assert_close(few.to_dense(), dense)


@each_kind
def test_a_model_learns_a_batch_by_heart_and_the_search_finds_it(kind):
    config = Config(data={part: {"source": "x", "target": "y"} for part in ("train", "dev")})
    model, examples = make(kind).float(), batch(pieces=True)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(80):
        loss = -log_likelihood(config, model, run(model, examples), examples).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loss < 0.2
    for row, hypotheses in enumerate(search(model.eval().for_search(), examples, Search(beam=3))):
        assert hypotheses[0].choices.tolist() == examples.target[row][examples.mask[row]].tolist()


@each_kind
def test_a_model_in_training_mode_is_not_searched(kind):
    with pytest.raises(ValueError, match="eval"):
        make(kind).train().for_search()


@each_kind
def test_tied_embeddings_are_one_parameter(kind):
    model = make(kind, tied=True)
    assert model.output.shortlist.weight is model.embedding.weight


@each_kind
@torch.no_grad()
def test_forms_are_read_and_predicted(kind):
    model, examples = make(kind, forms=True), batch(pieces=False)
    x_form = torch.randint(4, examples.x.shape)
    written = model(examples.x, examples.x_mask, examples.y, x_form)
    assert not torch.allclose(written.readout, model(examples.x, examples.x_mask, examples.y, x_form * 0).readout)
    expected = model.form_logits(written.readout, examples.x, examples.x_mask, examples.y).argmax(-1)
    form = model.for_search()
    state = form.read(examples.x, examples.x_mask, x_form)
    for t in range(examples.y.shape[1]):
        _, state = form.step(state)
        state, forms = form.follow(state, torch.zeros(3, 1, dtype=torch.long), examples.y[:, t : t + 1])
        assert torch.equal(forms[:, 0], expected[:, t])


def test_positions_are_the_means_of_their_pieces():
    x = torch.tensor([[[2.0], [4.0], [9.0]], [[1.0], [5.0], [100.0]]])
    place = torch.tensor([[0, 0, 1], [0, 1, -1]])
    x_mask = torch.tensor([[True, True], [True, True]])
    assert of_positions(x, place, x_mask).squeeze(-1).tolist() == [[3.0, 9.0], [1.0, 5.0]]


def test_an_ssru_steps_as_it_is_trained_and_has_the_gradient_that_autograd_finds():
    unit = SSRU(2).double()
    x = torch.randn(3, 5, 2, dtype=torch.double, requires_grad=True)
    c, outputs = unit.start(x[:, :1]), []
    for t in range(5):
        out, c = unit.step(x[:, t : t + 1], c)
        outputs.append(out)
    torch.testing.assert_close(unit.all_steps(x), torch.cat(outputs, 1))
    weights = torch.randn(3, 5, 2, dtype=torch.double)
    by_autograd = torch.autograd.grad((torch.cat(outputs, 1) * weights).sum(), [x, *unit.parameters()])
    by_hand = torch.autograd.grad((unit.all_steps(x) * weights).sum(), [x, *unit.parameters()])
    for one, other in zip(by_hand, by_autograd, strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("candidates", [None, torch.tensor([0, 1, 2, 3, 5])])
def test_label_smoothing_is_the_mean_over_all_words(candidates):
    model, examples = make("gru"), batch(pieces=False)
    predicted = run(model, examples)
    target, mask = choices(model, examples, predicted.log_l, to_attention=False)
    found = smoothing(model.output, predicted.readout, target, mask, candidates)
    competing = torch.arange(V) if candidates is None else torch.cat([candidates, target[mask & (target < V)]]).unique()
    log_w = model.output.shortlist(predicted.readout)[..., competing].log_softmax(-1)
    for b, t in product(range(3), range(5)):
        if not mask[b, t] or target[b, t] >= V:
            assert found[b, t] == 0
        else:
            of_target = log_w[b, t, (competing == target[b, t]).nonzero().item()]
            torch.testing.assert_close(found[b, t].double(), log_w[b, t].mean() - of_target, atol=1e-5, rtol=0)


def test_an_unknown_word_is_fed_back_after_a_copy_without_feed_source():
    model, examples = make("transformer", feed="word"), batch(pieces=True)
    assert model.read_words(examples.x, examples.x_mask, examples.place) is None
    torch.testing.assert_close(model.feed(examples.y, None)[0, 1], model.embedding.weight[UNK])


@each_kind
def test_the_encoder_is_told_how_familiar_words_are(kind):
    model, examples = make(kind, forms=True, familiarity=True), batch(pieces=True)
    form = torch.full_like(examples.x, 5)
    read = [model.encoder(examples.x, examples.x_mask, form + 16 * n, examples.place) for n in (0, 1, 9)]
    assert not torch.allclose(read[0], read[1])
    assert not torch.allclose(read[1], read[2])
    with torch.no_grad():  # the familiarity is added to the word and its form, and tells nothing else
        model.encoder.familiarity.weight[1] = model.encoder.familiarity.weight[0]
    torch.testing.assert_close(read[0], model.encoder(examples.x, examples.x_mask, form + 16, examples.place))
