"""`train --from`: a new run that begins with another one's vocabularies and best weights."""

import json
import random
import shutil

import pytest
import tiny
import torch

from pointing.corpus.preparation import prepare
from pointing.errors import Misuse, Stopped
from pointing.generation.command import load_generator
from pointing.model.run import MODEL, SETTINGS, STARTED_FROM, STATE, load_lexicon, load_run, make_model
from pointing.settings_file import read_config
from pointing.system.world import Processes
from pointing.training import loop as training
from pointing.training.journal import learning_curve, read_journal
from pointing.training.learner import Learner
from pointing.training.loop import train
from pointing.training.optimizers import Adam
from pointing.training.start import places, read_start
from pointing.training.state import read_state
from pointing.training.taken import take_weights

FEW = {"training": {"updates": 12, "validate_every": 5}}
STILL = {"training": {"learning_rate": 1e-30, "updates": 2, "validate_every": 1}}  # changes no float32
ROOM = {"vocabulary": {"source": 30, "target": 31}}


@pytest.fixture(scope="module")
def old(tmp_path_factory):
    """A trained run, `run`, and its corpus."""
    folder = tmp_path_factory.mktemp("old")
    tiny.train_in(folder, folder / "run")
    return folder


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Other pairs: three more words, each in every third pair."""
    folder = tmp_path_factory.mktemp("new")
    tiny.write(folder)
    rng = random.Random(7)
    for name in ("train", "dev"):
        source, target = (folder / f"{name}.source", folder / f"{name}.target")
        words = [rng.choice("xyz ") for _ in source.read_text().splitlines()]
        for path in (source, target):
            pairs = zip(path.read_text().splitlines(), words, strict=True)
            lines = (f"{line} {word if path is source else word.upper()}".strip() for line, word in pairs)
            path.write_text("".join(f"{line}\n" for line in lines))
    return folder


def go_on(place, old, out, *changes, corpus=None, keep=False):
    """A new run on the pairs in `place` that begins with `old / "run"`."""
    config = read_config(tiny.write(place, *changes))
    return train(config, corpus or corpus_of(out), out, start=old / "run", keep_vocabulary=keep)


def resume(place, out, *changes):
    return train(read_config(tiny.write(place, *changes)), corpus_of(out), out, resume=True)


def corpus_of(out):
    return out.parent / f"{out.name}-corpus"


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_run_that_changes_nothing_writes_what_the_other_one_writes(old, tmp_path):
    # the same data and words, and so small a rate that no float32 changes
    summary = go_on(old, old, tmp_path / "run", STILL, keep=True)
    assert summary["best_update"] == 0
    before, now = load_run(old / "run"), load_run(tmp_path / "run")
    assert now.about["dev"] == before.about["dev"]
    assert all(torch.equal(p, q) for p, q in zip(before.model.parameters(), now.model.parameters(), strict=True))
    lines = (old / "dev.source").read_text().splitlines()
    before, now = (load_generator(folder).generate(lines) for folder in (old / "run", tmp_path / "run"))
    assert [(output.text, output.score) for output in now] == [(output.text, output.score) for output in before]


def test_the_start_is_measured_before_the_first_update_and_written_down(place, old, tmp_path, capsys):
    go_on(place, old, tmp_path / "run", FEW, ROOM)
    start, first, *_ = read_journal(tmp_path / "run")
    record = json.loads((tmp_path / "run" / STARTED_FROM).read_text())
    assert start == {"event": "start", "update": 0, **record}
    assert (record["run"], record["run_update"]) == (str(old / "run"), load_run(old / "run").about["update"])
    assert (record["source_words"], record["target_words"]) == ([20, 3], [20, 3])  # 17 letters and x, y, z
    assert record["changed"] == {}  # more room for words does not change what weights mean
    assert (first["event"], first["update"], first["best"]) == ("validation", 0, True)
    assert [update for update, _ in learning_curve(tmp_path / "run", "nll")] == [0, 5, 10, 12]
    said = capsys.readouterr().err
    assert f"begins with the weights of {old / 'run'} at update {record['run_update']}: 36 tensors\n" in said
    assert "  new words: 3 of 20 source words, 3 of 20 target words\n" in said
    assert "update 0: dev NLL" in said


def test_the_new_run_depends_on_nothing_of_the_other_and_leaves_it_alone(place, old, tmp_path):
    shutil.copytree(old / "run", tmp_path / "copy" / "run")
    before = contents(tmp_path / "copy")
    go_on(place, tmp_path / "copy", tmp_path / "run", FEW)
    assert contents(tmp_path / "copy") == before
    assert str(tmp_path / "copy") not in (tmp_path / "run" / SETTINGS).read_text()
    shutil.rmtree(tmp_path / "copy")
    load_generator(tmp_path / "run").generate(["a b"])


def test_it_learns_faster_than_from_nothing(place, old, tmp_path):
    go_on(place, old, tmp_path / "run", FEW, ROOM)
    config = read_config(tiny.write(place, FEW, ROOM))
    train(config, tmp_path / "corpus", tmp_path / "nothing")
    words = [sorted(load_lexicon(tmp_path / name).target.words) for name in ("run", "nothing")]
    assert words[0] == words[1]  # so that both predict the same
    nothing, run = (dict(learning_curve(tmp_path / name, "nll")) for name in ("nothing", "run"))
    assert run[12] < run[0] < nothing[12]


def test_a_softmax_becomes_a_pointer_softmax(old, tmp_path, capsys):
    tiny.train_in(old, tmp_path / "softmax" / "run", {"model": {"output": "softmax"}})
    go_on(old, tmp_path / "softmax", tmp_path / "run", {"training": {"updates": 60}})
    said = capsys.readouterr().err
    assert "  not in that run, so with first values: output.switch\n" in said
    assert "  settings that differ: model.output is pointer-softmax, was softmax\n" in said
    assert load_run(tmp_path / "run").model.output.has_switch
    begun, nothing = (learning_curve(folder / "run", "nll") for folder in (tmp_path, old))
    assert begun[0][1] > begun[-1][1] < nothing[-1][1]  # both after 60 updates


class Crash(Exception):
    pass


def crash(*_):
    raise Crash


@pytest.mark.parametrize(
    ("where", "nth"),
    [
        ((training, "validate"), 1),  # before anything was measured
        ((training, "write_tensors"), 1),  # the first weights are the best so far, and that is not in a checkpoint
        ((training, "save_checkpoint"), 2),
        ((Adam, "step"), 3),
        ((training, "validate"), 3),
    ],
)
@pytest.mark.parametrize("keep", [True, False])
def test_resumed_without_the_other_run_it_ends_as_if_it_had_not_stopped(place, old, tmp_path, where, nth, keep):
    shutil.copytree(old / "run", tmp_path / "copy" / "run")
    calls, (holder, name) = [], where
    real = getattr(holder, name)

    def crashing(*arguments, **named):
        result = real(*arguments, **named)
        calls.append(0)
        if len(calls) == nth:
            raise Crash
        return result

    with pytest.MonkeyPatch.context() as patch, pytest.raises(Crash):
        patch.setattr(holder, name, crashing)
        go_on(place, tmp_path / "copy", tmp_path / "run", FEW, ROOM, keep=keep)
    whole = tmp_path / "whole"
    go_on(place, tmp_path / "copy", whole, FEW, ROOM, keep=keep)
    shutil.rmtree(tmp_path / "copy")
    shutil.rmtree(tmp_path / "run-corpus")
    resume(place, tmp_path / "run", FEW, ROOM)
    assert tiny.same(tmp_path / "run", whole)
    assert tiny.events(tmp_path / "run") == tiny.events(whole)


def test_the_first_measurement_is_not_made_twice(place, old, tmp_path):
    with pytest.MonkeyPatch.context() as patch, pytest.raises(Crash):
        patch.setattr(Adam, "step", crash)
        go_on(place, old, tmp_path / "run", FEW)
    state = read_state(tmp_path / "run")
    assert (state.update, state.best) == (0, learning_curve(tmp_path / "run", "nll")[0][1])


def test_a_prepared_corpus_is_used_again(place, old, tmp_path):
    go_on(place, old, tmp_path / "run", FEW, ROOM)
    before = {path: path.stat().st_mtime_ns for path in corpus_of(tmp_path / "run").iterdir()}
    resume(place, tmp_path / "run", FEW, ROOM, {"training": {"updates": 13}})
    go_on(place, old, tmp_path / "again", FEW, ROOM, corpus=corpus_of(tmp_path / "run"))
    assert {path: path.stat().st_mtime_ns for path in before} == before


def test_killed_before_its_first_checkpoint_it_is_begun_again(place, old, tmp_path):
    with pytest.MonkeyPatch.context() as patch, pytest.raises(Crash):
        patch.setattr(training, "save_checkpoint", crash)
        go_on(place, old, tmp_path / "run", FEW)
    with pytest.raises(Misuse, match="this run was stopped before its first checkpoint: begin it again with --from"):
        resume(place, tmp_path / "run", FEW)
    assert go_on(place, old, tmp_path / "run", FEW)["update"] == 12


def test_a_plain_run_in_the_same_folder_is_no_longer_one_that_began_with_another(place, old, tmp_path):
    go_on(place, old, tmp_path / "run", FEW)
    for name in (STATE, MODEL):
        (tmp_path / "run" / name).unlink()
    train(read_config(tiny.write(place, FEW)), tmp_path / "corpus", tmp_path / "run")
    assert not (tmp_path / "run" / STARTED_FROM).exists()
    assert [event["event"] for event in read_journal(tmp_path / "run")][:1] == ["validation"]


def test_every_process_has_the_same_weights(place, old, tmp_path):
    config = read_config(tiny.write(place, ROOM))
    start = read_start(old / "run", False, tmp_path / "new", config)
    corpus, _ = prepare(config, tmp_path / "corpus", 1, start.base)
    weights = []
    for rank in range(2):
        learner = Learner(config, corpus, Processes(rank, 2, torch.device("cpu")))
        take_weights(learner.model, corpus.lexicon, start.run)
        weights.append(learner.parameters)
    assert all(torch.equal(p, weights[1][name]) for name, p in weights[0].items())


@pytest.mark.slow
def test_two_processes_begin_as_one_does(place, old, tmp_path):
    go_on(place, old, tmp_path / "one", FEW, ROOM)
    path = tiny.write(place, FEW, ROOM)
    arguments = ["train", path, "--from", old / "run", "--out", tmp_path / "two"]
    result = tiny.pointing(*arguments, folder=tmp_path, processes=2)
    assert result.returncode == 0, result.stderr
    one, two = (dict(learning_curve(tmp_path / name, "nll")) for name in ("one", "two"))
    assert two[0] == pytest.approx(one[0])
    result = tiny.pointing(
        "train", "--resume", "--out", tmp_path / "two", "--set", "training.updates=14", folder=tmp_path, processes=2
    )
    assert result.returncode == 0, result.stderr


def test_a_signal_says_how_to_go_on(place, old, tmp_path):
    validate = training.validate

    def interrupted(*arguments):
        training.signal.raise_signal(training.signal.SIGTERM)
        return validate(*arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(training, "validate", interrupted)
        with pytest.raises(Stopped, match="update 1; to go on, run the same with --resume instead of --from"):
            go_on(place, old, tmp_path / "run", FEW)
    assert resume(place, tmp_path / "run", FEW)["update"] == 12


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"embedding": 9}, r"same widths only: set model\.embedding=8 \(it is 9\)$"),
        ({"hidden": 12, "encoder": 9}, r"set model\.hidden=10 \(it is 12\), model\.encoder=7 \(it is 9\)$"),
        ({"encoder": None}, r"set model\.encoder=7 \(it is 10\)$"),
    ],
)
def test_other_widths_are_misuse(place, old, tmp_path, change, message):
    with pytest.raises(Misuse, match=message):
        go_on(place, old, tmp_path / "run", {"model": change})
    assert list(tmp_path.iterdir()) == []


def test_the_folder_of_the_other_run_is_refused(old):
    before = contents(old / "run")
    with pytest.raises(Misuse, match="a new run needs a folder of its own, not that of --from: choose one with --out"):
        go_on(old, old, old / "run", FEW)
    assert contents(old / "run") == before


def test_a_folder_that_is_no_run_is_refused(place, old, tmp_path):
    with pytest.raises(Misuse, match="there is no run in"):
        go_on(place, tmp_path, tmp_path / "new", FEW)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["x.yaml", "--from", "old", "--resume"], "--from begins a new run, --resume goes on with one: give one"),
        ([], "give a settings file; only with --from or --resume, and with --out, it may be left out"),
        (["--from", "old"], "give a settings file; only with --from or --resume, and with --out, it may be left out"),
        (["--resume"], "give a settings file; only with --from or --resume, and with --out, it may be left out"),
        (["--from", "nothing", "--out", "new"], "there is no run in nothing"),
        (["--resume", "--out", "nothing"], "there is no run in nothing"),
    ],
)
def test_options_that_do_not_go_together_are_misuse(tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    code, said = tiny.said("train", *arguments)
    assert code == 2
    assert said.startswith(f"pointing: {message}")
    assert list(tmp_path.iterdir()) == []


def test_a_run_does_not_begin_and_go_on_at_once(place, old, tmp_path):
    config = read_config(tiny.write(place))
    with pytest.raises(Misuse, match="--from begins a new run, --resume goes on with one: give one of them"):
        train(config, tmp_path / "corpus", tmp_path / "run", resume=True, start=old / "run")


def test_kept_vocabularies_are_those_of_another_run(place, tmp_path):
    config = read_config(tiny.write(place))
    with pytest.raises(Misuse, match="--keep-vocabulary is for --from"):
        train(config, tmp_path / "corpus", tmp_path / "run", keep_vocabulary=True)


def test_the_settings_of_a_run_serve_where_no_file_is_given(place, old, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data = [f"data.{name}.{side}={place / name}.{side}" for name in ("train", "dev") for side in ("source", "target")]
    changes = [*data, "training.updates=2", "vocabulary.source=30"]
    sets = [part for change in changes for part in ("--set", change)]
    assert tiny.said("train", "--from", old / "run", "--out", "runs/new", *sets)[0] in (0, None)
    run = load_run(tmp_path / "runs" / "new")
    assert (run.config.training.updates, run.config.model) == (2, load_run(old / "run").config.model)
    assert run.lexicon.source.words[-3:] != load_lexicon(old / "run").source.words[-3:]
    assert (tmp_path / "corpora" / "new" / "prepared.json").exists()
    assert tiny.said("train", "--resume", "--out", "runs/new", "--set", "training.updates=3")[0] in (0, None)
    assert read_journal(tmp_path / "runs" / "new")[-1]["update"] == 3
    assert [path.name for path in (tmp_path / "corpora").iterdir()] == ["new"]


def test_a_run_that_began_with_another_has_a_corpus_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    settings, out = tmp_path / "my.yaml", tmp_path / "runs" / "second"
    assert str(places(settings, None, out, None, False).corpus) == "corpora/my"
    assert str(places(settings, None, out, tmp_path / "runs" / "first", False).corpus) == "corpora/second"
    out.mkdir(parents=True)
    (out / STARTED_FROM).touch()
    assert str(places(settings, None, out, None, True).corpus) == "corpora/second"
    assert places(settings, tmp_path, out, None, True).corpus == tmp_path


def test_new_words_get_the_values_that_a_new_model_has(place, old, tmp_path):
    go_on(place, old, tmp_path / "run", STILL, ROOM)
    run = load_run(tmp_path / "run")
    torch.manual_seed(run.config.training.seed)
    first = make_model(run.lexicon)
    words = [run.lexicon.target[word] for word in "xyz"]
    for name in ("embedding.weight", "output.shortlist.weight", "output.shortlist.bias"):
        assert torch.equal(run.model.get_parameter(name)[words], first.get_parameter(name)[words])
