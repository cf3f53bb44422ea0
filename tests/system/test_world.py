import json
import socket
import subprocess
import sys

import pytest
import tiny
import torch

from pointing.errors import Misuse
from pointing.system.world import processes

SCRIPT = """
import json, torch
from pointing.system.world import processes

V, E = 6, 2
MINE = [
    ([2, 4, 2], [[1.0, 2.0], [3.0, 4.0], [10.0, 20.0]]),  # row 2 twice
    ([4], [[100.0, 200.0]]),
]
with processes("cpu") as others:
    found = {"rank": others.rank, "world": others.world_size, "first": others.first}
    found["sum"] = others.sum(torch.tensor([1.0 + others.rank, 10.0])).tolist()
    found["gathered"] = others.gather({"from": others.rank, "tensor": [1] * others.rank})
    p = {name: torch.nn.Parameter(torch.zeros(shape)) for name, shape in
         {"a": (2, 3), "table": (V, E), "unused": (2,), "b": (4,), "empty": (V, E)}.items()}
    p["a"].grad, p["b"].grad = torch.full((2, 3), 1.0 + others.rank), torch.arange(4.0) * (1 + others.rank)
    rows, values = MINE[others.rank]
    p["table"].grad = torch.sparse_coo_tensor([rows], values, (V, E), check_invariants=False)
    some = [[], [5]][others.rank]
    p["empty"].grad = torch.sparse_coo_tensor(
        torch.tensor([some], dtype=torch.long).view(1, -1), torch.ones(len(some), E), (V, E), check_invariants=False
    )
    others.sum_gradients(p)
    found["a"], found["b"], found["unused"] = p["a"].grad.tolist(), p["b"].grad.tolist(), p["unused"].grad
    for name in ("table", "empty"):
        grad = p[name].grad.coalesce()
        found[name] = dict(zip(grad.indices()[0].tolist(), grad.values().tolist(), strict=True))
    print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def found():
    """What two processes say that torchrun might have started."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    start = tiny.environment() | {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    started = [
        subprocess.Popen(
            [sys.executable, "-W", "error", "-c", SCRIPT],
            env=start | {"RANK": str(rank), "LOCAL_RANK": str(rank)},
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    try:
        return [json.loads(process.communicate(timeout=60)[0]) for process in started]
    finally:
        for process in started:
            process.kill()
            process.wait()


def test_each_process_knows_its_place(found):
    assert [(one["rank"], one["world"], one["first"]) for one in found] == [(0, 2, True), (1, 2, False)]


def test_sums_and_gathered_things_are_the_same_everywhere(found):
    for one in found:
        assert one["sum"] == [3, 20]
        assert one["gathered"] == [{"from": 0, "tensor": []}, {"from": 1, "tensor": [1]}]


def test_dense_gradients_are_summed(found):
    for one in found:
        assert one["a"] == [[3] * 3] * 2
        assert one["b"] == [0, 3, 6, 9]
        assert one["unused"] is None


def test_sparse_gradients_are_summed_and_no_other_row_is_touched(found):
    for one in found:
        assert one["table"] == {"2": [11, 22], "4": [103, 204]}
        assert one["empty"] == {"5": [1, 1]}


def test_one_process_is_the_same_without_the_talk():
    with processes("cpu") as alone:
        assert (alone.rank, alone.world_size, alone.first) == (0, 1, True)
        numbers = torch.tensor([1.0, 2.0])
        assert alone.sum(numbers) is numbers
        assert alone.gather("mine") == ["mine"]
        p = {"p": torch.nn.Parameter(torch.zeros(2))}
        p["p"].grad = grad = torch.ones(2)
        alone.sum_gradients(p)
        assert p["p"].grad is grad


@pytest.mark.parametrize("device", ["nonsense", "cuda:x", "cuda", "meta", "mps"])
def test_a_device_that_is_not_there_is_misuse(device, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(Misuse, match=f"device '{device}'"), processes(device):
        pass


@pytest.mark.parametrize(
    "changes",
    [
        {"large_vocabulary": 9},
        pytest.param({"samples": 1}, marks=pytest.mark.slow),
        pytest.param({"accumulate": 2, "loss": "marginal", "large_vocabulary": 9}, marks=pytest.mark.slow),
    ],
)
def test_two_processes_learn_what_one_learns(tmp_path, changes):
    # 17 pairs, 8 at a time: every epoch has a batch of one, of which the second process gets nothing
    settings = {
        "optimizer": "adadelta",
        "learning_rate": 1.0,
        "updates": 21,
        "validate_every": 7,
        "samples": 1,
        **changes,
    }
    one, two = tmp_path / "one", tmp_path / "two"
    tiny.train_in(tmp_path, one, tiny.STILL, {"training": settings}, train=17, dev=5)
    path = tiny.write(tmp_path, tiny.STILL, {"training": settings})
    arguments = ["train", path, "--out", two, "--corpus", tmp_path / "prepared", "--json"]
    result = tiny.pointing(*arguments, folder=tmp_path, processes=2)
    assert result.returncode == 0, result.stderr
    assert len(result.stdout.splitlines()) == 1  # the first process speaks, and nobody else
    assert result.stderr.count("update 7: dev NLL") == 1
    alone, together = tiny.tensors(one), tiny.tensors(two)
    assert together.keys() == alone.keys() | {"random.1"}
    for name, tensor in alone.items():
        if not name.startswith("random"):
            torch.testing.assert_close(together[name], tensor, rtol=1e-3, atol=1e-5, msg=f"{name} differs")
    assert not torch.equal(together["random.0"], together["random.1"])  # each process draws its own noise
    losses = [[line["nll"] for line in tiny.events(out) if line["event"] == "validation"] for out in (one, two)]
    assert losses[1] == pytest.approx(losses[0], rel=1e-5)
    assert sorted(path.name for path in two.iterdir()) == sorted(path.name for path in one.iterdir())
    assert len(list((two / "tensorboard").iterdir())) == 1
