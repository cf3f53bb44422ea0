"""Which weights of another run a new model gets: rows by word, the rest by name."""

import pytest
import torch

from pointing.config import Config, checked
from pointing.corpus.lexicon import Lexicon
from pointing.model.run import Run, make_model
from pointing.text.vocabulary import EOS, UNK, Vocabulary
from pointing.training.taken import same_words, take_weights

WIDTHS = {"embedding": 4, "hidden": 6, "encoder": 5, "init": 0.1}
DATA = {"train": "x.csv"}
OLD, NEW = ["a", "b", "c"], ["b", "x", "a", "y", "c"]  # the same words in another order, and two new ones
WORDS = ("encoder.embedding.weight", "embedding.weight", "output.shortlist.weight", "output.shortlist.bias")


def lexicon(source, target=("p", "q"), placeholders=0, text=None, **model):
    config = checked(Config, {"data": DATA, "model": WIDTHS | model, "text": text or {}})
    sides = (Vocabulary(words, [1] * len(words), placeholders) for words in (source, target))
    return Lexicon(config, *sides)


def run_of(words, seed=1):
    """A run with weights that no first values are equal to."""
    torch.manual_seed(seed)
    model = make_model(words)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, 3, 1)
    return Run(words, model.eval(), {"update": 7})


def model_of(words, seed=2):
    torch.manual_seed(seed)
    return make_model(words)


def weights(model):
    return {name: p.detach().clone() for name, p in model.named_parameters()}


def test_a_word_keeps_its_row_and_a_new_word_has_its_first_values():
    run = run_of(lexicon(OLD, ["p", "q", "r"]))
    words = lexicon(NEW, ["q", "z", "r", "p"])
    first, model = weights(model_of(words)), model_of(words)
    taken = take_weights(model, words, run)
    old, new = weights(run.model), weights(model)
    rows = {"encoder.embedding.weight": [0, 1, 3, None, 2, None, 4]}  # of EOS, UNK, b, x, a, y, c in the old model
    rows |= {name: [0, 1, 3, None, 4, 2] for name in WORDS[1:]}  # of EOS, UNK, q, z, r, p
    for name, places in rows.items():
        for row, place in enumerate(places):
            assert torch.equal(new[name][row], first[name][row] if place is None else old[name][place]), (name, row)
    for name in new.keys() - rows.keys():
        assert torch.equal(new[name], old[name]), name
    assert taken == (len(new), [], [], (5, 2), (4, 1))


def test_placeholders_are_words_too():
    old, new = lexicon(["a"], placeholders=3).source, lexicon(["a", "b"], placeholders=2).source
    assert same_words(old, new) == ([EOS, UNK, 2, 3, 4], [EOS, UNK, 2, 3, 5])  # then a; b is new, number 3 is gone
    assert same_words(new, old) == ([EOS, UNK, 2, 3, 5], [EOS, UNK, 2, 3, 4])


@pytest.mark.parametrize(
    ("before", "now", "fresh", "unused"),
    [
        ({"output": "softmax"}, {}, ["output.switch"], []),
        ({}, {"output": "softmax"}, [], ["output.switch"]),
        ({}, {"output": "pointer-network"}, [], ["output"]),
        ({"output": "pointer-network"}, {}, ["output"], []),
        ({}, {"feed": "source"}, ["copied"], []),
        ({}, {"tied": True}, [], ["output.shortlist.weight"]),
        ({"tied": True}, {}, [], []),
        ({}, {"text": {"forms": True}}, ["encoder.form", "form_head"], []),
        ({"text": {"forms": True}}, {}, [], ["encoder.form", "form_head"]),
    ],
)
def test_what_only_one_of_them_has_is_named_and_the_rest_is_taken(before, now, fresh, unused):
    run, words = run_of(lexicon(OLD, **before)), lexicon(OLD, **now)
    first, model = weights(model_of(words)), model_of(words)
    taken = take_weights(model, words, run)
    assert (taken.fresh, taken.unused) == (fresh, unused)
    old = {name: p.detach() for name, p in run.model.named_parameters(remove_duplicate=False)}
    for name, p in weights(model).items():
        is_fresh = any(name.startswith(f"{module}.") for module in fresh)
        assert torch.equal(p, first[name] if is_fresh else old[name]), name
    assert taken.taken == sum(name in old for name in weights(model))


def test_a_second_layer_is_new():
    words = lexicon(OLD, encoder_layers=2)
    taken = take_weights(model_of(words), words, run_of(lexicon(OLD)))
    assert len(taken.fresh) == 8
    assert all(name.startswith("encoder.gru.") and "_l1" in name for name in taken.fresh)


def test_the_model_with_the_same_words_computes_the_same():
    words = lexicon(OLD)
    run, model = run_of(words), model_of(words).eval()
    x, y = torch.tensor([[2, 1, 4, EOS]]), torch.tensor([[3, len(words.target) + 1, EOS]])
    mask = torch.ones_like(x, dtype=torch.bool)
    assert not torch.equal(model(x, mask, y).readout, run.model(x, mask, y).readout)
    take_weights(model, words, run)
    for part, expected in zip(model(x, mask, y), run.model(x, mask, y), strict=True):
        assert torch.equal(part, expected)


def test_the_run_keeps_its_own_weights():
    run, words = run_of(lexicon(OLD)), lexicon(NEW)
    before, model = weights(run.model), model_of(words)
    take_weights(model, words, run)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
    assert all(torch.equal(p, before[name]) for name, p in weights(run.model).items())
