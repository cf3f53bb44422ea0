"""Resume equals never having stopped, to the bit: killed for real, stopped by signals, cut off at the worst moments."""

import os
import random
import signal
import subprocess
import time
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path

import pytest
import tiny
import torch

from pointing import cli
from pointing.errors import Misuse, Stopped
from pointing.model.run import METRICS, MODEL, STATE, read_header, read_tensors, run_settings, write_tensors
from pointing.training import loop as training
from pointing.training.optimizers import Adadelta, Adam
from pointing.training.state import State, finished_state, read_state, read_whole_state

OFTEN = {"training": {"checkpoint_minutes": 0.002, "validate_every": 20, "updates": 70}}  # a checkpoint every 0.12 s
SPARSE = {"training": {"large_vocabulary": 9, "optimizer": "adadelta", "learning_rate": 1.0, "accumulate": 2}}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A corpus, and in `whole` a run on it that was never stopped."""
    folder = tmp_path_factory.mktemp("corpus")
    tiny.train_in(folder, folder / "whole", OFTEN)
    return folder


def start(place, out, *changes, resume=False, processes=1):
    """The real command, left running in a group of its own."""
    arguments = ["train", tiny.write(place, OFTEN, *changes), "--out", out, "--corpus", place / "prepared"]
    return subprocess.Popen(
        tiny.command(*arguments, *(["--resume"] if resume else []), processes=processes),
        **{"env": tiny.environment(), "cwd": place, "stderr": subprocess.PIPE, "text": True, "start_new_session": True},
    )


@contextmanager
def ending(process):
    """A process that ends with the block, whatever happens in it."""
    try:
        yield process
    finally:
        if process.poll() is None:
            kill_all(process)
        process.wait()
        process.stderr.close()


def wait_for_a_checkpoint(out, process, before):
    """Until there is a newer one than `before`; False if the run ends first."""
    state = out / STATE
    while process.poll() is None:
        if state.exists() and state.stat().st_mtime_ns != before:
            return True
        time.sleep(0.01)
    return False


def kill_again_and_again(place, out, times, *changes, processes=1):
    """Kills a run after a checkpoint, at a random moment, and takes it up again; then lets it end. The kills made."""
    rng, kills = random.Random(), 0
    for part in range(times + 1):
        before = (out / STATE).stat().st_mtime_ns if (out / STATE).exists() else 0
        process = start(place, out, *changes, resume=part > 0, processes=processes)
        with ending(process):
            if part < times and wait_for_a_checkpoint(out, process, before):
                time.sleep(rng.uniform(0, 0.4))
                kill_all(process)
                kills += process.wait() == -signal.SIGKILL
            else:
                _, said = process.communicate(timeout=300)
                assert process.returncode == 0, said
    return kills


def kill_all(process):
    """A run with all its processes; torchrun gives each of its own a group, so they are looked up."""
    process.send_signal(signal.SIGSTOP)  # it must not see them die first
    for one in [*map(int, Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()), process.pid]:
        os.kill(one, signal.SIGKILL)


def test_a_run_that_is_killed_ends_as_if_it_had_not_been(place, tmp_path):
    out = tmp_path / "run"
    kills = kill_again_and_again(place, out, 1)
    assert kills == 1
    assert tiny.same(out, place / "whole")
    assert tiny.events(out) == tiny.events(place / "whole")
    assert not list(out.glob(".*"))  # nothing half-written is left


@pytest.mark.slow
@pytest.mark.parametrize("changes", [{}, SPARSE], ids=["dense", "large vocabulary"])
def test_a_run_that_is_killed_many_times_ends_as_if_it_had_not_been(place, tmp_path, changes):
    long = {"training": {"updates": 250, "samples": 2}}
    tiny.train_in(place, tmp_path / "whole", OFTEN, changes, long)
    kills = kill_again_and_again(place, tmp_path / "run", 5, changes, long)
    assert kills >= 3
    assert tiny.same(tmp_path / "run", tmp_path / "whole")
    assert tiny.events(tmp_path / "run") == tiny.events(tmp_path / "whole")


@pytest.mark.slow
def test_two_processes_that_are_killed_end_as_if_they_had_not_been(place, tmp_path):
    with ending(start(place, tmp_path / "whole", processes=2)) as process:
        _, said = process.communicate(timeout=300)
        assert process.returncode == 0, said
    assert kill_again_and_again(place, tmp_path / "run", 2, processes=2) >= 1
    assert tiny.same(tmp_path / "run", tmp_path / "whole")
    with pytest.raises(Misuse, match="this run has 2 processes, not 1: resume it with as many"):
        tiny.train_in(place, tmp_path / "run", OFTEN, resume=True)


@pytest.mark.parametrize("kind", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.slow)])
def test_a_signal_stops_a_run_in_good_order(place, tmp_path, kind):
    out = tmp_path / "run"
    with ending(start(place, out, {"training": {"updates": 100_000, "patience": None}})) as process:
        assert wait_for_a_checkpoint(out, process, 0)
        process.send_signal(kind)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    update = read_tensors(out / STATE)[1]["state"]["update"]
    last = said.splitlines()[-1]
    assert last == f"pointing: stopped at update {update:,}; to go on, run the same with --resume"
    assert "Traceback" not in said


@pytest.mark.parametrize("kind", [signal.SIGTERM, signal.SIGINT])
def test_a_run_that_a_signal_stopped_is_taken_up_to_the_same_bit(place, tmp_path, monkeypatch, kind):
    before, validate = signal.getsignal(kind), training.validate

    def interrupted(*arguments):
        signal.raise_signal(kind)
        return validate(*arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(training, "validate", interrupted)
        with pytest.raises(Stopped, match="stopped at update 21; to go on, run the same with --resume"):
            tiny.train_in(place, tmp_path, OFTEN)
    assert signal.getsignal(kind) is before
    tiny.train_in(place, tmp_path, OFTEN, resume=True)
    assert tiny.same(tmp_path, place / "whole")
    assert tiny.events(tmp_path) == tiny.events(place / "whole")


def test_the_second_ctrl_c_does_not_wait(place, tmp_path, monkeypatch):
    def impatient(*_):
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(training, "validate", impatient)
    with pytest.raises(KeyboardInterrupt):
        tiny.train_in(place, tmp_path, OFTEN)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


class Crash(Exception):
    pass


def crash_at(monkeypatch, where, nth):
    """Makes the nth call of a function the last thing that a run does."""
    holder, name, after = where
    real, calls = getattr(holder, name), []

    def crashing(*arguments, **named):
        calls.append(0)
        if len(calls) == nth and not after:
            raise Crash
        result = real(*arguments, **named)
        if len(calls) == nth:
            raise Crash
        return result

    monkeypatch.setattr(holder, name, crashing)


@pytest.mark.parametrize(
    ("where", "nth", "changes"),
    [
        ((Adam, "step", False), 3, {}),  # before the first checkpoint
        ((Adadelta, "step", True), 17, SPARSE),  # half an update
        ((training, "write_tensors", True), 2, SPARSE),  # the best model is written, the state is not
        ((training, "validate", True), 2, {}),
        ((training, "save_checkpoint", True), 1, {}),  # after a checkpoint
    ],
)
def test_a_run_cut_off_anywhere_is_taken_up_to_the_same_bit(place, tmp_path, where, nth, changes):
    few = {"training": {"checkpoint_minutes": 1e6, "validate_every": 7, "updates": 25}}
    whole = place / ("sparse" if changes else "dense")
    if not whole.exists():
        tiny.train_in(place, whole, few, changes)
    with pytest.MonkeyPatch.context() as patch:
        crash_at(patch, where, nth)
        with pytest.raises(Crash):
            tiny.train_in(place, tmp_path, few, changes)
    with (tmp_path / METRICS).open("a") as metrics:
        metrics.write('{"event": "train')  # killed while it was writing a line
    torch.manual_seed(12345)  # nothing may depend on what the process did before
    tiny.train_in(place, tmp_path, few, changes, resume=True)
    assert tiny.same(tmp_path, whole)
    assert tiny.events(tmp_path) == tiny.events(whole)


def test_two_threads_give_the_same_bits_again_and_when_taken_up(place, tmp_path):
    wide = {"model": {"embedding": 60, "hidden": 90, "encoder": 70}}  # so that operations are shared out
    two = {"training": {"threads": 2, "batch": 100, "validate_every": 5, "updates": 8}}
    for name in ("whole", "again"):
        tiny.train_in(place, tmp_path / name, wide, two)
    with pytest.MonkeyPatch.context() as patch, pytest.raises(Crash):
        crash_at(patch, (Adam, "step", True), 7)
        tiny.train_in(place, tmp_path / "cut", wide, two)
    tiny.train_in(place, tmp_path / "cut", wide, two, resume=True)
    assert torch.get_num_threads() == 2
    assert tiny.same(tmp_path / "again", tmp_path / "whole")
    assert tiny.same(tmp_path / "cut", tmp_path / "whole")


@pytest.fixture
def done(place, tmp_path):
    """A short run that has ended."""
    few = {"training": {"updates": 2}}
    tiny.train_in(place, tmp_path / "run", few)
    return tmp_path / "run", few


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"model": {"hidden": 12}}, "model.hidden was 10, is 12"),
        ({"model": {"switch": {"activation": "relu"}}}, "model.switch.activation was 'noisy-tanh', is 'relu'"),
        ({"training": {"batch": 9}}, "training.batch was 8, is 9"),
        ({"training": {"clip": None}}, "training.clip was 1.0, is None"),
        ({"training": {"decay": "linear", "updates": 9}}, "training.decay was 'none', is 'linear'"),
        (
            {"training": {"seed": 2, "learning_rate": 0.02}},
            "learning_rate was 0.01, is 0.02, training.seed was 1, is 2",
        ),
        (  # three are enough to see why
            {"model": {"hidden": 12}, "training": {"batch": 9, "clip": None, "learning_rate": 0.02}},
            "training.clip was 1.0, is None; start a new run",
        ),
    ],
)
def test_changed_settings_are_misuse(place, done, change, said, monkeypatch, capsys):
    out, few = done
    path, before = tiny.write(place, few, change), tiny.tensors(out)
    arguments = ["train", path, "--out", out, "--corpus", place / "prepared", "--resume"]
    monkeypatch.setattr("sys.argv", ["pointing", *map(str, arguments)])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    assert stop.value.code == 2
    assert said in capsys.readouterr().err
    assert tiny.tensors(out).keys() == before.keys()


def test_a_line_cannot_be_made_longer_while_it_falls(place, tmp_path):
    linear = {"training": {"updates": 2, "decay": "linear"}}
    tiny.train_in(place, tmp_path, linear)
    with pytest.raises(Misuse, match=r"training\.updates was 2, is 4"):
        tiny.train_in(place, tmp_path, linear, {"training": {"updates": 4}}, resume=True)


def test_when_it_ends_may_change(place, done):
    out, few = done
    more = {"training": {"updates": 4, "patience": None, "validate_every": 3, "checkpoint_minutes": 5.0}}
    assert tiny.train_in(place, out, few, more, resume=True)["update"] == 4
    assert [line["update"] for line in tiny.events(out)] == [2, 3, 4]


def test_settings_that_are_turned_off_are_the_same_after_it(place, tmp_path):
    off = {"training": {"updates": 2, "clip": None}}
    tiny.train_in(place, tmp_path, off)
    assert tiny.train_in(place, tmp_path, off, {"training": {"updates": 3}}, resume=True)["update"] == 3


def test_a_finished_run_resumed_is_as_it_was(place, done):
    out, few = done
    before = {path: path.read_bytes() for path in (out / MODEL, out / STATE)}
    assert tiny.train_in(place, out, few, resume=True)["update"] == 2
    assert all(path.read_bytes() == content for path, content in before.items())


def test_what_a_kill_left_is_removed_when_a_run_is_taken_up(place, done):
    out, few = done
    part = out / f".{MODEL}.x1.part"
    part.write_bytes(b"half of")
    tiny.train_in(place, out, few, resume=True)
    assert not part.exists()


def test_a_folder_in_the_models_place_is_said_before_any_work(place, done):
    out, few = done
    (out / MODEL).unlink()
    (out / MODEL).mkdir()
    with pytest.raises(Misuse, match="this is a folder, where the model is to be written"):
        tiny.train_in(place, out, few, {"training": {"updates": 9}}, resume=True)


def test_a_run_is_finished_once_it_has_made_all_its_updates(place, done, tmp_path):
    out, _ = done
    config, made_from = run_settings(out), read_header(out / STATE)["made_from"]
    assert finished_state(out, config, made_from).update == 2
    more = config.model_copy(update={"training": config.training.model_copy(update={"updates": 3})})
    assert finished_state(out, more, made_from) is None
    assert finished_state(tmp_path / "nothing", config, made_from) is None


def test_a_checkpoint_is_whole_only_with_its_counters(done):
    out, _ = done
    tensors, header = read_tensors(out / STATE)
    assert read_whole_state(out).update == 2
    write_tensors(out / STATE, tensors, header | {"steps": "many"})
    with pytest.raises(Misuse, match="steps"):
        read_whole_state(out)


def test_a_run_begins_with_nothing_counted():
    counted = asdict(State())
    assert counted.pop("best") == float("inf")
    assert not any(counted.values())


def test_a_run_is_unmeasured_until_it_has_changed_or_measured_its_weights():
    assert State().is_unmeasured
    assert not State(update=1).is_unmeasured
    assert not State(best=2.0).is_unmeasured


def test_a_run_is_not_started_over_by_mistake(place, done):
    out, few = done
    before = tiny.tensors(out)
    with pytest.raises(
        Misuse, match="there is a run in this folder: go on with --resume, or choose another with --out"
    ):
        tiny.train_in(place, out, few)
    assert all(torch.equal(tensor, before[name]) for name, tensor in tiny.tensors(out).items())


def test_there_must_be_a_run_to_resume(place, tmp_path):
    with pytest.raises(Misuse, match="there is no run to resume in this folder"):
        tiny.train_in(place, tmp_path / "nothing", resume=True)
    assert not (tmp_path / "nothing").exists()


def test_a_run_made_from_another_corpus_is_not_resumed(place, done, tmp_path):
    out, few = done
    tensors, about = read_tensors(out / STATE)
    write_tensors(out / STATE, tensors, about | {"made_from": "another"})
    with pytest.raises(Misuse, match="this run was made from another prepared corpus"):
        tiny.train_in(place, out, few, resume=True)


@pytest.mark.parametrize("length", [0, 1, 8, 200, 3000, -1])
def test_a_cut_training_state_is_misuse(place, done, length):
    out, few = done
    whole = (out / STATE).read_bytes()
    (out / STATE).write_bytes(whole[:length])
    with pytest.raises(Misuse, match="not a whole checkpoint"):
        tiny.train_in(place, out, few, resume=True)


def test_patience_goes_on_where_it_was(place, tmp_path):
    # so small a rate changes no float32: no validation is better than the first one
    still = {"training": {"learning_rate": 1e-30, "validate_every": 2, "patience": 4, "updates": 6}}
    assert tiny.train_in(place, tmp_path, still)["waited"] == 2
    summary = tiny.train_in(place, tmp_path, still, {"training": {"updates": None}}, resume=True)
    assert (summary["update"], summary["waited"]) == (10, 4)


HALF = {"training": {"precision": "float16", "updates": 30, "validate_every": 10, "checkpoint_minutes": 1e6}}


@pytest.fixture
def overflowing(monkeypatch):
    """Starts float16 runs with so large a scale that their first gradients overflow."""
    monkeypatch.setattr(torch.amp, "GradScaler", partial(torch.amp.GradScaler, init_scale=2.0**30))


def stopped_at_20(place, out):
    with pytest.MonkeyPatch.context() as patch, pytest.raises(Crash):
        crash_at(patch, (training, "save_checkpoint", True), 2)
        tiny.train_in(place, out, HALF)


def test_a_float16_run_is_taken_up_to_the_same_bit(place, tmp_path, overflowing):
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    tiny.train_in(place, whole, HALF)
    stopped_at_20(place, cut)
    tiny.train_in(place, cut, HALF, resume=True)
    assert tiny.same(cut, whole)
    headers = [read_header(out / STATE) for out in (cut, whole)]
    assert headers[0]["steps"] == headers[1]["steps"] < 30
    assert headers[0]["scaler"] == headers[1]["scaler"]
    assert headers[0]["scaler"]["scale"] < 2.0**30


def test_a_checkpoint_with_the_scale_in_its_state_is_taken_up(place, tmp_path):
    # as they were written before torch's GradScaler took over; Adam then counted updates, the skipped ones too
    stopped_at_20(place, tmp_path)
    tensors, header = read_tensors(tmp_path / STATE)
    old = {"state": {**header["state"], "scale": 2.0**9, "steady": 1_995}, "made_from": header["made_from"]}
    write_tensors(tmp_path / STATE, tensors, old)
    assert read_state(tmp_path).update == 20
    tiny.train_in(place, tmp_path, HALF, resume=True)
    after = read_header(tmp_path / STATE)
    assert after["steps"] == 30
    assert (after["scaler"]["scale"], after["scaler"]["_growth_tracker"]) == (2.0**10, 5)  # grown at the 2,000th


def test_a_setting_that_does_nothing_may_leave_the_file_of_an_older_run(place, tmp_path):
    few = {"training": {"updates": 2}, "model": {"output": "softmax"}}
    tiny.train_in(place, tmp_path, few)
    path = tmp_path / "config.yaml"
    text = path.read_text()
    assert "loss: joint" in text
    path.write_text(text.replace("loss: joint", "loss: marginal"))
    assert tiny.train_in(place, tmp_path, few, {"training": {"updates": 3}}, resume=True)["update"] == 3
