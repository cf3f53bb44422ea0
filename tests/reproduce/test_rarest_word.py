import json

import forked
import pytest
import tiny
import torch

from pointing.reproduce.rarest_word import RarestWord, RarestWordModel, RarestWordTask, error_rates, train_and_test


def small(**changes):
    return RarestWord(**{"hidden": 16, "updates": 4, "validate_every": 2, "validation": 50, "test": 60} | changes)


@pytest.mark.parametrize(
    ("p", "share"), [(0.0004, 0.48), (0.001, 0.422), (0.002, 0.327), (0.005, 0.121), (0.01, 0.014)]
)
def test_the_share_of_rare_answers_is_the_exact_one(p, share):
    # P(the largest of 7 ranks >= 540) = 1 - P(rank < 540)^7
    task = RarestWordTask(small(p=p))
    exact = 1 - task.unigram()[:540].sum() ** 7
    assert abs(exact.item() - share) < 0.005
    drawn = task.draw(40_000, torch.Generator().manual_seed(0)).max(1).values
    assert abs((drawn >= 540).float().mean() - exact) < 0.01


def test_targets_by_hand():
    x = torch.tensor([[3, 599, 599], [539, 4, 4], [0, 0, 540]])
    pointing = RarestWordTask(small(head="summary"))
    assert pointing.target(x).tolist() == [[540 + 1], [539], [540 + 2]]  # the first of two places
    assert RarestWordTask(small(head="softmax")).target(x).tolist() == [[599], [539], [540]]
    assert pointing.answer(x, torch.tensor([540, 539, 542])).tolist() == [3, 539, 540]


def test_words_too_rare_in_a_fixed_training_set_are_read_as_unknown():
    task = RarestWordTask(small(training=100, p=0.01, min_count=5))
    counts = task.training.flatten().bincount(minlength=600)
    x = torch.arange(600).view(1, -1)
    assert torch.equal(task.as_read(x)[0] == 600, counts < 5)
    assert not (RarestWordTask(small()).as_read(x) == 600).any()


def test_fixed_sequences_come_once_an_epoch():
    task = RarestWordTask(small(training=10, batch=4))
    batches = task.batches(torch.Generator().manual_seed(3))
    epoch = torch.cat([next(batches) for _ in range(3)])
    assert sorted(map(tuple, epoch.tolist())) == sorted(map(tuple, task.training.tolist()))


def test_validation_and_test_sets_are_fixed_and_different():
    first, second = RarestWordTask(small(seed=1)).held_out(), RarestWordTask(small(seed=2, head="softmax")).held_out()
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))
    assert not torch.equal(first[0], first[1][:50])


@pytest.mark.parametrize("head", ["softmax", "summary"])
def test_the_target_names_the_answer_also_where_training_never_held_the_word(head):
    task = RarestWordTask(small(training=50, p=0.01, test=2000, head=head))
    _, test = task.held_out()
    answer = test.max(1).values
    assert (task.count[answer] == 0).sum() > 50
    assert torch.equal(task.answer(test, task.target(test).squeeze(1)), answer)


def test_errors_are_counted_by_group():
    task = RarestWordTask(small(training=50, p=0.01))
    _, test = task.held_out()
    model = RarestWordModel(task.settings, task.shortlist)
    errors = error_rates(model, task, test)
    rates = {"rare": errors.rare, "unseen": errors.unseen, "other": errors.other}
    wrong = sum(rates[group] * count for group, count in errors.counts.items() if count)
    assert sum(errors.counts.values()) == len(test)
    assert wrong / len(test) == pytest.approx(errors.all, abs=1e-3)


@pytest.mark.parametrize("head", ["softmax", "summary", "annotations"])
def test_a_run_repeats_exactly(head):
    first, second = train_and_test(small(head=head)), train_and_test(small(head=head))
    assert first.test == second.test
    assert first.curve == second.curve
    assert [point["update"] for point in first.curve] == [2, 4]


def test_the_command_writes_its_report_and_goes_on_where_it_was(tmp_path):
    arguments = ["reproduce", "rarest-word", "--updates", "3", "--hidden", "8", "--seeds", "2", "--training", "40"]
    command = [*arguments, "--out", tmp_path]
    first = forked.run(*command)
    assert "| the paper | softmax over all words | – | 48.2 |" in first.stdout
    results = json.loads((tmp_path / "results.json").read_text())
    assert len(results["runs"]) == 6
    assert results["runs"][0]["settings"]["training"] == 40
    assert {path.name for path in tmp_path.iterdir()} == {
        "runs",
        "results.json",
        "report.md",
        "report.html",
        "curves.png",
        "curves.svg",
    }
    made = {path: path.stat().st_mtime_ns for path in (tmp_path / "runs").iterdir()}
    next(iter(made)).unlink()  # as if it had been cut off
    again = forked.run(*command, "--json")
    remade = json.loads(again.stdout)["runs"]
    assert [run["test"] for run in remade] == [run["test"] for run in results["runs"]]
    assert sum(path.stat().st_mtime_ns != before for path, before in made.items()) == 1


@pytest.mark.parametrize(
    "arguments", [["--p", "2"], ["--hidden", "0"], ["--quick", "--sweep"], ["--quick", "--p", "0.1"]]
)
def test_impossible_settings_are_misuse_in_one_line(arguments, tmp_path):
    code, error = tiny.said("reproduce", "rarest-word", *arguments, "--out", tmp_path / "x")
    assert (code, error.count("\n")) == (2, 1)
    assert not (tmp_path / "x").exists()


@pytest.mark.slow
def test_pointing_over_annotations_beats_the_softmax_on_words_that_are_truly_rare():
    settings = {"hidden": 64, "updates": 800, "training": 5_000, "p": 0.005, "test": 10_000, "validation": 2_000}
    softmax = train_and_test(RarestWord(head="softmax", **settings)).test
    pointer = train_and_test(RarestWord(head="annotations", **settings)).test
    assert pointer.rare < 0.6 * softmax.rare


@pytest.mark.slow
def test_every_head_learns_the_task_when_sequences_are_drawn_afresh():
    for head in ("softmax", "summary", "annotations"):
        assert train_and_test(RarestWord(head=head, hidden=128, updates=1500, test=10_000)).test.all < 6
