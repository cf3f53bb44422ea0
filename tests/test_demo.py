import random

import pytest
import tiny

from pointing.data import names
from pointing.demo import demo_settings, run_demo
from pointing.errors import Misuse
from pointing.model.run import METRICS, SETTINGS
from pointing.training.journal import learning_curve


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("names")
    names.bring(folder / "data", train=400, dev=60, test=60, seed=3)
    return folder / "data"


def words(path):
    return [line.split() for line in path.read_text().splitlines()]


def test_the_same_seed_gives_the_same_text(tmp_path, corpus):
    names.bring(tmp_path / "again", train=400, dev=60, test=60, seed=3)
    for part in ("train.en", "train.fr", "test.fr"):
        assert (tmp_path / "again" / part).read_text() == (corpus / part).read_text()


def test_no_name_of_the_test_part_was_in_the_training_part(corpus):
    seen = {word for line in words(corpus / "train.en") + words(corpus / "train.fr") for word in line}
    unseen = [[word for word in line if word not in seen] for line in words(corpus / "test.fr")]
    assert sum(map(len, unseen)) > 60  # one or more a sentence
    for new, source in zip(unseen, words(corpus / "test.en"), strict=True):
        assert set(new) <= set(source)  # so each can be copied


def test_every_slot_of_the_grammar_is_filled(corpus):
    text = "".join((corpus / f"train.{side}").read_text() for side in ("en", "fr"))
    assert not set("{}[]") & set(text)


def test_names_do_not_come_twice():
    made = names.Names(1)
    some = [made(random.Random(n).choice("pqhnvf")) for n in range(500)]
    assert len(set(some)) == 500


def test_the_demos_settings_are_valid(tmp_path):
    for output in ("softmax", "pointer-softmax"):
        config = demo_settings(tmp_path, output, 30)
        assert (config.model.output, config.training.updates) == (output, 30)


def test_a_curve_is_a_runs_validations(tmp_path):
    lines = ['{"event": "training", "update": 1}', '{"event": "validation", "update": 2, "nll": 3.5, "best": true}']
    (tmp_path / METRICS).write_text("".join(line + "\n" for line in lines))
    (tmp_path / SETTINGS).write_text("data:\n")
    assert learning_curve(tmp_path, "nll") == [(2, 3.5)]
    with pytest.raises(Misuse, match=r"no validation has bleu; there are nll"):
        learning_curve(tmp_path, "bleu")
    (tmp_path / METRICS).unlink()
    with pytest.raises(Misuse, match="there is no validation in this run yet: nothing to draw"):
        learning_curve(tmp_path, "nll")


def test_every_command_that_takes_a_run_says_that_there_is_none(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.csv").write_text("source,target\na,\n")
    for arguments in (
        ["plot", "nowhere"],
        ["plot", "nowhere", "--attention", "a"],
        ["generate", "nowhere", "a.csv"],
        ["translate", "nowhere", "a.csv"],
        ["evaluate", "nowhere"],
        ["evaluate", "nowhere", "--source", "a.csv", "--reference", "a.csv"],
    ):
        code, text = tiny.said(*arguments)
        assert (code, text.count("\n")) == (2, 1)
        assert "there is no run in nowhere" in text


def test_plot_draws_attention_of_a_run(tmp_path):
    run = tiny.untrained(tmp_path)
    done = tiny.pointing("plot", run, "--attention", "a b c", "--out", tmp_path / "a.svg", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "a.svg").read_text().startswith("<?xml")
    done = tiny.pointing("plot", run, "--attention", "a b c", "--out", tmp_path / "a.doc", folder=tmp_path)
    assert (done.returncode, "ends with .png" in done.stderr) == (2, True)


@pytest.mark.slow
def test_unseen_names_come_out_right_with_pointers_and_never_without(tmp_path):
    table, outputs = run_demo(tmp_path / "demo")
    (row,) = [row for row in table.rows if row[0] == "recall of words seen 0 times"]
    softmax, pointer = (float(cell.split()[0]) for cell in row[1:])
    assert softmax == 0
    assert pointer >= 99
    assert "hal9000" in outputs[0].text
