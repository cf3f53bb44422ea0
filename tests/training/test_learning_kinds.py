"""Every kind of model is trained, resumed, searched and loaded by the same code, and copies names it has never seen."""

import random
from itertools import permutations

import pytest
import tiny
import torch
from model_kinds import KINDS, NAMES, settings_of

import pointing
from pointing.corpus.preparation import prepare
from pointing.model.run import MODEL, STATE, load_run, read_tensors
from pointing.settings_file import read_config
from pointing.system.world import Processes
from pointing.training import learner as learning
from pointing.training import loop as training

WORDS = {"text": {"subwords": "bpe"}, "pointers": {"places": "words", "guidance": 0.1}}
BOTH = {"training": {"average": 0.9, "smoothing": 0.1}}
each_kind = pytest.mark.parametrize("kind", KINDS, ids=NAMES)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("corpus")


@each_kind
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "large-vocabulary"])
def test_a_run_is_taken_up_to_the_same_bit(place, tmp_path, kind, sparse):
    changes = [
        WORDS,
        BOTH,
        {"model": settings_of(kind)},
        {"training": {"updates": 12, "validate_every": 6, "batch": 16}},
    ]
    changes += [{"training": {"large_vocabulary": 9}}] if sparse else []
    tiny.train_in(place, tmp_path / "whole", *changes)
    tiny.train_in(place, tmp_path / "run", *changes, {"training": {"updates": 7}})
    tiny.train_in(place, tmp_path / "run", *changes, resume=True)
    assert tiny.same(tmp_path / "run", tmp_path / "whole")
    assert load_run(tmp_path / "run").model.output.words == 21


@pytest.mark.slow
@each_kind
def test_two_processes_train_every_kind(place, tmp_path, kind):
    settings = tiny.write(
        place, WORDS, BOTH, {"model": settings_of(kind)}, {"training": {"updates": 12, "validate_every": 6}}
    )
    done = tiny.pointing("train", settings, "--out", tmp_path / "run", folder=place, processes=2)
    assert done.returncode == 0, done.stderr
    assert load_run(tmp_path / "run").about["update"] in (6, 12)


def test_the_weights_that_are_kept_are_the_average(place, tmp_path, monkeypatch):
    seen = []
    real = learning.Learner._average
    monkeypatch.setattr(
        learning.Learner,
        "_average",
        lambda self: (real(self), seen.append({name: p.clone() for name, p in self.parameters.items()})),
    )
    tiny.train_in(place, tmp_path / "run", {"training": {"average": 0.5, "updates": 3, "validate_every": 3}})
    name = "output.shortlist.weight"
    expected = read_first(place)[name]
    for update, weights in enumerate(seen, 1):
        kept = min(0.5, (1 + update) / (10 + update))
        expected = kept * expected + (1 - kept) * weights[name]
    torch.testing.assert_close(read_tensors(tmp_path / "run" / MODEL)[0][name], expected.detach())
    last = read_tensors(tmp_path / "run" / STATE)[0]
    torch.testing.assert_close(last[f"model.{name}"], seen[-1][name].detach())
    torch.testing.assert_close(last[f"average.{name}"], expected.detach())


def read_first(place):
    """The weights before the first update."""
    config = read_config(tiny.write(place))
    corpus, _ = prepare(config, place / "prepared", 1)
    return learning.Learner(config, corpus, Processes(0, 1, torch.device("cpu"))).parameters


def test_without_an_average_nothing_is_copied(place):
    config = read_config(tiny.write(place))
    learner = learning.Learner(config, prepare(config, place / "prepared", 1)[0], Processes(0, 1, torch.device("cpu")))
    before = dict(learner.parameters)
    with learner.averaged():
        assert all(p is before[name] for name, p in learner.parameters.items())
    assert not [name for name in learner.tensors() if name.startswith("average")]


def test_guidance_pulls_the_location_to_the_links(place, tmp_path):
    """Of shortlist words only: their translations stand at the same place, and nothing else teaches l_t that."""
    shares = {}
    for weight in (0.0, 1.0):
        out = tmp_path / str(weight)
        still = {"training": {"updates": 250, "validate_every": 250, "learning_rate": 0.02}, "model": {"dropout": 0.0}}
        tiny.train_in(place, out, {"pointers": {"guidance": weight}}, still)
        lines = [" ".join(line) for line in permutations("abcd")]
        right = [
            token.location.argmax() == place
            for output in pointing.load(out).generate(lines, locations=True, beam=1)
            for place, token in enumerate(output.tokens[:4])
        ]
        shares[weight] = sum(right) / len(right)
    print(shares)
    assert shares[1.0] > 0.9 > 2 * shares[0.0]


def pair(rng):
    """take ZORB12 from the file → NIMM ZORB12 …: words in two languages, and a name."""
    words = [rng.choice(["take", "file", "house", "near", "see", "from"]) for _ in range(rng.randint(1, 5))]
    place = rng.randint(0, len(words))
    name = "".join(rng.choice("bcdfgklmnprstvz") + rng.choice("aeiou") for _ in range(3)) + str(rng.randint(0, 99))
    other = [word[::-1] for word in words]
    return " ".join([*words[:place], name, *words[place:]]), " ".join([*other[:place], name, *other[place:]])


@pytest.mark.parametrize("kind", [pytest.param(KINDS[1], id=NAMES[1])])
def test_names_never_seen_are_copied_whole(tmp_path, kind):
    learns_names(tmp_path, kind, updates=260, least=0.8)


@pytest.mark.slow
@each_kind
def test_every_kind_copies_names_never_seen(tmp_path, kind):
    learns_names(tmp_path, kind, updates=900, least=0.95)


def learns_names(folder, kind, updates, least):
    rng = random.Random(1)
    data = {}
    for name, size in (("train", 1200), ("dev", 40)):
        pairs = [pair(rng) for _ in range(size)]
        for side, column in (("source", 0), ("target", 1)):
            (folder / f"{name}.{side}").write_text("".join(f"{lines[column]}\n" for lines in pairs))
        data[name] = {side: str(folder / f"{name}.{side}") for side in ("source", "target")}
    settings = {
        "data": data,
        "text": {"tokenizer": "whitespace", "subwords": "bpe"},
        "vocabulary": {"source": 60, "target": 60},
        "pointers": {"places": "words", "guidance": 0.1},
        "model": settings_of(kind, embedding=32, hidden=64),
        "training": {"optimizer": "adam", "learning_rate": 0.005, "batch": 32, "warmup": 50, "samples": 0}
        | {"updates": updates, "validate_every": updates, "threads": 1, "device": "cpu", "decay": "linear"},
    }
    path = folder / "names.yaml"
    path.write_text(tiny.yaml.safe_dump(settings))
    training.train(read_config(path), folder / "prepared", folder / "run")
    pairs = [pair(rng) for _ in range(100)]
    outputs = pointing.load(folder / "run").generate([source for source, _ in pairs], beam=2)
    right = 0
    for output, (source, target) in zip(outputs, pairs, strict=True):
        copied = [token for token in output.tokens if token.origin == "copied"]
        right += output.text == target and len(copied) == 1
        for token in copied:
            assert token.text == source[slice(*token.span)]
    assert right / 100 >= least, [(output.text, target) for output, (_, target) in zip(outputs, pairs, strict=True)][:5]
