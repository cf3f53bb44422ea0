import math

import numpy as np
import pytest
import tiny
import torch

from pointing import cli
from pointing.corpus.preparation import prepare
from pointing.errors import Failure, Misuse
from pointing.model.run import METRICS, MODEL, STATE, load_run
from pointing.settings_file import read_config
from pointing.system.world import Processes, processes
from pointing.training import learner
from pointing.training import loop as training
from pointing.training.journal import read_journal
from pointing.training.loop import Trainer, sentence, train


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("corpus")


@pytest.fixture
def trainer():
    """Makes runs that have not begun."""
    made = []

    def make(place, out, *changes):
        config = read_config(tiny.write(place, *changes))
        with processes("cpu") as alone:
            made.append(Trainer(config, prepare(config, place / "prepared", 1)[0], out, alone, resume=False))
        return made[-1]

    yield make
    for run in made:
        run.journal.close()


def settings(**values):
    return {"training": values}


def command(monkeypatch, *arguments):
    """The command in this process; its exit code."""
    monkeypatch.setattr("sys.argv", ["pointing", *map(str, arguments)])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    return stop.value.code


def test_a_run_learns_and_leaves_what_is_needed(place, tmp_path, capsys):
    out = tmp_path / "run"
    summary = tiny.train_in(place, out)
    assert (summary["update"], summary["epoch"], summary["done"]) == (60, 2, 10)
    validations = [line for line in read_journal(out) if line["event"] == "validation"]
    assert [line["update"] for line in validations] == [25, 50, 60]  # the last update is looked at too
    assert validations[-1]["nll"] < validations[0]["nll"]
    assert [line["update"] for line in read_journal(out) if line["event"] == "training"] == [50]
    best = min(validations, key=lambda line: line["nll"])
    assert (summary["best_update"], summary["best"]) == (best["update"], best["nll"])
    run = load_run(out)
    assert run.about["update"] == best["update"]
    assert run.about["dev"]["nll"] == best["nll"]
    assert sorted(path.name for path in out.iterdir()) == [
        *(
            "config.yaml",
            "manifest.json",
            "metrics.jsonl",
            "model.safetensors",
            "source.vocabulary",
            "target.vocabulary",
        ),
        *("tensorboard", "training-words.tsv", "training.safetensors"),
    ]
    said = capsys.readouterr().err
    assert "update 25: dev NLL" in said
    assert sentence(summary).startswith(f"{out}: 60 updates in 0.")


def test_the_same_settings_give_the_same_bits_and_another_seed_others(place, tmp_path):
    changes = settings(updates=4, large_vocabulary=9)
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        tiny.train_in(place, tmp_path / name, changes, settings(seed=seed))
    assert tiny.same(tmp_path / "a", tmp_path / "b")
    assert not tiny.same(tmp_path / "a", tmp_path / "c")


def test_patience_ends_a_run_that_does_not_get_better(place, tmp_path):
    # so small a rate changes no float32: every validation is the first one again
    summary = tiny.train_in(place, tmp_path, settings(learning_rate=1e-30, validate_every=2, patience=3, updates=None))
    assert (summary["update"], summary["best_update"], summary["waited"]) == (8, 2, 3)
    assert load_run(tmp_path).about["update"] == 2


@pytest.mark.parametrize(("accumulate", "updates"), [(1, 25), (2, 13)])
def test_epochs_end_a_run(place, tmp_path, accumulate, updates):
    summary = tiny.train_in(place, tmp_path, settings(epochs=1, updates=None, accumulate=accumulate))
    assert summary["update"] == updates  # 200 pairs, 8 at a time


def test_a_diverging_run_fails_with_one_line(place, tmp_path, monkeypatch, capsys):
    path, out = tiny.write(place, settings(learning_rate=1e30)), tmp_path / "run"
    assert command(monkeypatch, "train", path, "--out", out, "--corpus", place / "prepared") == 1
    said = capsys.readouterr().err.splitlines()
    assert said[-1].startswith("pointing: update 2: the loss is not a number. ")
    assert "There was no checkpoint yet" in said[-1]
    assert "lower training.learning_rate" in said[-1]


@pytest.mark.parametrize("validate_every", [10, 1])
def test_a_diverging_run_leaves_the_last_good_checkpoint(place, tmp_path, monkeypatch, validate_every):
    good, bad = tmp_path / "good", tmp_path / "bad"
    often = settings(validate_every=validate_every, updates=20)
    tiny.train_in(place, good, often, settings(updates=10))
    monkeypatch.setattr(learner, "learning_rate", lambda settings, update: 0.01 if update <= 10 else 1e30)
    with pytest.raises(Failure, match=f"is not a number. The last good checkpoint is in {bad}") as failure:
        tiny.train_in(place, bad, often)
    assert not isinstance(failure.value, Misuse)
    assert tiny.same(good, bad)
    assert load_run(bad).about == load_run(good).about


def test_a_run_takes_the_place_of_nothing_that_is_not_its_own(place, tmp_path):
    tiny.train_in(place, tmp_path / "run", settings(updates=1))
    with pytest.raises(Misuse, match="this is a prepared corpus: give another folder for the run"):
        train(read_config(tiny.write(place)), place / "prepared", place / "prepared")
    assert (place / "prepared/source.vocabulary").exists()
    (tmp_path / "run" / STATE).unlink()  # the large part of a run that has ended
    before = (tmp_path / "run" / MODEL).read_bytes()
    with pytest.raises(Misuse, match="there is a run in this folder"):
        tiny.train_in(place, tmp_path / "run", settings(updates=1))
    assert (tmp_path / "run" / MODEL).read_bytes() == before
    for name in ("config.yaml", "dictionary.tsv", "metrics.jsonl"):
        own = tmp_path / name.partition(".")[0]
        own.mkdir()
        (own / name).write_text("mine")
        with pytest.raises(Misuse, match=f"there is a {name} in this folder, and no run"):
            tiny.train_in(place, own, settings(updates=1))
        assert (own / name).read_text() == "mine"
    for name in (MODEL, METRICS):  # as if killed before the first checkpoint
        (tmp_path / "run" / name).unlink()
    tiny.train_in(place, tmp_path / "run", settings(updates=1))
    assert (tmp_path / "run" / MODEL).exists()


def test_too_little_memory_is_one_line(place, tmp_path, monkeypatch, capsys):
    path = tiny.write(place, {"model": {"hidden": 9_999_999}})
    asked = ("train", path, "--corpus", place / "prepared", "--out", tmp_path / "run")
    assert command(monkeypatch, *asked) == 1
    said = capsys.readouterr().err.splitlines()[-1]
    assert said.startswith("pointing: there is not enough memory for this: take a smaller model, batch or beam (")


def test_a_loss_far_worse_than_guessing_fails(trainer, place, tmp_path):
    run = trainer(place, tmp_path)
    run.state.update = training.NOTE_EVERY + 1
    with pytest.raises(Failure, match=r"update 51: the loss is 13\.5 nats a word, far worse than guessing"):
        run._check(13.5, 1.0)
    run._check(13.1, 1.0)  # 4 log (19 + 8) is 13.2: the words, and the places of the longest source
    run.state.update = 1
    run._check(100.0, 1.0)  # at first anything goes
    for loss, norm in [(math.inf, 1.0), (math.nan, 1.0), (1.0, math.inf)]:
        with pytest.raises(Failure, match="is not a number"):
            run._check(loss, norm)


def gradient_of(run, batches):
    """The gradient that the optimiser gets in one update, and what the update measured."""
    gradients, parameters = {}, run.learner.parameters
    run.learner.optimizer.step = lambda: gradients.update(
        {name: p.grad.to_dense() for name, p in parameters.items() if p.grad is not None}
    )
    update = run.learner.learn(batches, 1)
    return gradients, update


@pytest.mark.parametrize("large_vocabulary", [None, 21])
def test_batches_accumulated_are_one_large_batch(trainer, place, tmp_path, large_vocabulary):
    changes = tiny.STILL, settings(clip=None, large_vocabulary=large_vocabulary)
    one, two = (trainer(place, tmp_path / name, *changes) for name in ("one", "two"))
    split, rows = one.corpus.split("train"), np.arange(13)
    whole, of_one = gradient_of(one, [split.batch(rows)])
    in_parts, of_two = gradient_of(two, [split.batch(rows[:8]), split.batch(rows[8:])])
    assert whole.keys() == in_parts.keys() == one.learner.parameters.keys()
    for name, grad in whole.items():
        torch.testing.assert_close(in_parts[name], grad, msg=lambda text, name=name: f"{name}: {text}")
    assert of_one.loss == pytest.approx(of_two.loss)
    assert of_one.words == of_two.words


def test_the_gradient_is_that_of_the_mean_over_sequences(trainer, place, tmp_path):
    run = trainer(place, tmp_path, tiny.STILL, settings(clip=None))
    batch = run.corpus.split("train").batch(np.arange(5))
    model, parameters = run.learner.model, run.learner.parameters
    predicted = model(batch.x, batch.x_mask, batch.y)
    loss = -model.output.log_likelihood(*predicted, batch.target, batch.mask).sum() / 5
    expected = dict(zip(parameters, torch.autograd.grad(loss, list(parameters.values())), strict=True))
    gradients, update = gradient_of(run, [batch])
    for name, grad in gradients.items():
        torch.testing.assert_close(grad, expected[name])
    assert update.loss == pytest.approx(5 * loss.item(), rel=1e-5)


def test_a_gradient_longer_than_the_limit_is_scaled_down_to_it(trainer, place, tmp_path):
    free, clipped = (
        trainer(place, tmp_path / name, tiny.STILL, settings(clip=clip, accumulate=2))
        for name, clip in (("free", None), ("clipped", 0.01))
    )
    batches = [free.corpus.split("train").batch(np.arange(n, n + 4)) for n in (0, 4)]
    (whole, of_free), (short, of_clipped) = gradient_of(free, batches), gradient_of(clipped, batches)
    assert of_free.norm == of_clipped.norm > 0.1
    length = torch.cat([grad.flatten() for grad in short.values()]).norm()
    assert length.item() == pytest.approx(0.01, rel=1e-4)
    for name, grad in short.items():
        torch.testing.assert_close(grad, whole[name] * (0.01 / of_free.norm))


@pytest.mark.parametrize("output", ["softmax", "pointer-softmax", "pointer-network"])
@pytest.mark.parametrize("more", [{}, {"large_vocabulary": 9, "loss": "marginal"}])
def test_every_kind_of_output_is_trained(place, tmp_path, output, more):
    changes = {"model": {"output": output, "encoder_layers": 2}}
    if output != "softmax":
        changes["model"]["feed"] = "source"
    if output != "pointer-network":
        changes["model"]["tied"] = True
    if output != "pointer-softmax":
        more.pop("loss", None)
    summary = tiny.train_in(place, tmp_path, changes, settings(updates=3, batch=30, batch_by="tokens", **more))
    assert math.isfinite(summary["best"])
    assert load_run(tmp_path).config.model.output == output


@pytest.mark.parametrize("precision", ["bfloat16", "float16"])
@pytest.mark.parametrize("large_vocabulary", [None, 9])
def test_lower_precision_learns_what_float32_learns(place, tmp_path, precision, large_vocabulary):
    changes = tiny.STILL, settings(updates=20, large_vocabulary=large_vocabulary)
    losses = [
        tiny.train_in(place, tmp_path / each, *changes, settings(precision=each))["best"]
        for each in ("float32", precision)
    ]
    assert losses[1] == pytest.approx(losses[0], rel=0.02)


@pytest.mark.parametrize("large_vocabulary", [None, 9])
def test_a_float16_loss_that_overflows_is_scaled_down_and_costs_no_weights(trainer, place, tmp_path, large_vocabulary):
    run = trainer(place, tmp_path, settings(precision="float16", large_vocabulary=large_vocabulary))
    before = {name: p.clone() for name, p in run.learner.parameters.items()}
    batch = run.corpus.split("train").batch(np.arange(4))
    run.learner.set_counters(0, {"scale": 2.0**60, "_growth_tracker": 5})
    update = run.learner.learn([batch], 1)
    assert update.norm is None
    assert counters(run) == (0, 2.0**59, 0)
    assert all(torch.equal(p, before[name]) and p.grad is None for name, p in run.learner.parameters.items())
    run._count(update)  # an overflow is no reason to stop
    run.learner.set_counters(0, {"scale": 2.0**10, "_growth_tracker": 0})
    assert run.learner.learn([batch], 2).norm > 0
    assert counters(run) == (1, 2.0**10, 1)
    assert not torch.equal(run.learner.parameters["embedding.weight"], before["embedding.weight"])


def counters(run):
    """Steps of the optimiser, the scale of float16 gradients, and updates since it last changed."""
    now = run.learner.counters()
    return now["steps"], now["scaler"]["scale"], now["scaler"]["_growth_tracker"]


def test_a_float16_loss_that_overflows_without_a_scale_ends_the_run(trainer, place, tmp_path):
    run = trainer(place, tmp_path, settings(precision="float16"))
    run.learner.set_counters(0, {"scale": 1.0})
    with torch.no_grad():
        run.learner.parameters["embedding.weight"].fill_(torch.inf)
    update = run.learner.learn([run.corpus.split("train").batch(np.arange(4))], 1)
    with pytest.raises(Failure, match="update 1: the loss is not a number"):
        run._count(update)


def vectors(place, width):
    place.mkdir(exist_ok=True)
    path = place / "vectors.txt"
    path.write_text("".join(f"{word} {' '.join([str(ord(word))] * width)}\n" for word in "abc"))
    return {"embeddings": {"source": str(path)}}


@pytest.mark.parametrize(("scores", "best"), [([3.0, 9.0, 5.0], 9.0), ([3.0, 2.0, 1.0], 3.0)])
def test_the_weights_with_the_highest_score_are_kept(place, tmp_path, monkeypatch, scores, best):
    left = iter(scores)
    monkeypatch.setattr(training.Samples, "scores", lambda self: {"bleu": next(left)})
    chosen = settings(updates=3, validate_every=1, score="bleu", select="score")
    summary = tiny.train_in(place, tmp_path, chosen)
    assert (summary["best"], summary["best_update"]) == (-best, 1 + scores.index(best))
    assert load_run(tmp_path).about["dev"]["bleu"] == best
    assert [line["best"] for line in read_journal(tmp_path)] == [True, *(scores.index(best) == n for n in (1, 2))]


def test_every_process_has_the_same_weights_and_its_own_noise(place):
    config = read_config(tiny.write(place))
    corpus, drawn, weights = prepare(config, place / "prepared", 1)[0], [], []
    for rank in range(2):
        part = learner.Learner(config, corpus, Processes(rank, 2, torch.device("cpu")))
        weights.append(part.parameters)
        drawn.append(torch.rand(5))
    assert all(torch.equal(p, weights[1][name]) for name, p in weights[0].items())
    assert not torch.equal(*drawn)


def test_samples_choose_from_the_words_that_training_chooses_from(trainer, place, tmp_path, monkeypatch):
    run = trainer(place, tmp_path, settings(large_vocabulary=9, samples=2, score="bleu"))
    searches, real = [], run.samples.generator.run
    monkeypatch.setattr(
        run.samples.generator,
        "run",
        lambda lines, search, **more: searches.append(search) or real(lines, search, **more),
    )
    run.samples.outputs()
    run.samples.scores()
    assert [(search.beam, search.large_vocabulary) for search in searches] == [(1, 9), (1, 9)]


def test_the_score_called_rouge_is_the_f1_of_the_longest_common_subsequence(trainer, place, tmp_path, monkeypatch):
    # the first word moved to the end: all n words are right (ROUGE-1 is 100), n - 1 of them in the right order
    run = trainer(place, tmp_path, settings(score="rouge"))
    references = [run.dev[row]["target_text"].split() for row in range(len(run.dev))]
    moved = [" ".join([*words[1:], words[0]]) for words in references]
    monkeypatch.setattr(run.samples, "_greedy", lambda rows: [moved[row] for row in rows])
    expected = np.mean([100 * (len(words) - 1) / len(words) for words in references])
    assert run.samples.scores() == {"rouge": pytest.approx(expected)}


def test_vectors_are_the_first_embeddings(trainer, tmp_path):
    plain = trainer(tmp_path / "plain", tmp_path / "one")
    started = trainer(tmp_path / "with", tmp_path / "two", vectors(tmp_path / "with", 8))
    table, random = (
        started.learner.parameters["encoder.embedding.weight"],
        plain.learner.parameters["encoder.embedding.weight"],
    )
    known = [started.corpus.lexicon.source[word] for word in "abc"]
    assert table[known, 3].tolist() == [97, 98, 99]
    others = [row for row in range(len(table)) if row not in known]
    assert torch.equal(table[others], random[others])
    assert torch.equal(started.learner.parameters["embedding.weight"], plain.learner.parameters["embedding.weight"])


def test_vectors_of_another_width_are_misuse(trainer, tmp_path):
    with pytest.raises(Misuse, match=r"source.vectors.npy: vectors of width 9, but model.embedding is 8"):
        trainer(tmp_path, tmp_path / "run", vectors(tmp_path, 9))
    assert not (tmp_path / "run").exists()


def test_a_dev_part_without_pairs_is_misuse(tmp_path):
    with pytest.raises(Misuse, match="dev"):
        tiny.train_in(tmp_path, tmp_path / "run", dev=0)
    assert not (tmp_path / "run").exists()


def test_one_pair_is_enough(tmp_path):
    summary = tiny.train_in(tmp_path, tmp_path / "run", settings(updates=2), train=1, dev=1)
    assert summary["update"] == summary["epoch"] == 2


def test_training_says_how_it_ended_in_json(place, tmp_path, monkeypatch, capsys):
    path = tiny.write(place, settings(updates=1))
    monkeypatch.setattr("sys.argv", [*("pointing", "train", str(path), "--json"), "--out", str(tmp_path / "run")])
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as stop:
        cli.main()
    assert stop.value.code in (0, None)
    assert '"update": 1' in capsys.readouterr().out
    assert (tmp_path / "corpora" / "tiny" / "prepared.json").exists()
