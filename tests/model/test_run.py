import ast
import pickle
import re
import subprocess
import sys
from pathlib import Path

import pytest
import tiny
import torch
from safetensors.torch import load_file, save_file

from pointing.config import Model
from pointing.corpus.preparation import prepare
from pointing.errors import Failure, Misuse
from pointing.model import run as checkpoint
from pointing.model.run import MODEL, load_run, put_tensors, read_tensors, run_settings, start_run, write_tensors
from pointing.model.seq2seq import Seq2Seq
from pointing.settings_file import read_config
from pointing.system.border import MANIFEST

X, V = 9, 11
ABOUT = {"update": 7, "placeholders": 0, "dev": {"nll": 1.25, "best": None, "ünï": "cödé"}}


def make(seed=0, **settings):
    torch.manual_seed(seed)
    return Seq2Seq(Model(embedding=5, hidden=6, encoder=4, **settings), X, V)


def weights(model):
    return dict(model.named_parameters())


def parts(folder):
    return [path.name for path in folder.iterdir() if path.name.endswith(".part")]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpus")
    config = read_config(tiny.write(folder))
    return config, prepare(config, folder / "prepared", workers=1)[0]


@pytest.mark.parametrize("tied", [False, True])
def test_what_was_written_is_read(tmp_path, tied):
    path, first, other = tmp_path / "a.safetensors", make(0, tied=tied), make(1, tied=tied)
    write_tensors(path, weights(first), ABOUT)
    tensors, about = read_tensors(path)
    assert about == ABOUT
    put_tensors(tensors, weights(other), path)
    for name, p in weights(first).items():
        assert torch.equal(weights(other)[name], p)
    assert (other.output.shortlist.weight is other.embedding.weight) is tied
    assert parts(tmp_path) == []


def test_checkpoints_can_be_read_by_whom_other_files_can(tmp_path):
    write_tensors(tmp_path / "model.safetensors", {"a": torch.ones(3)}, ABOUT)
    (tmp_path / "other").touch()
    assert (tmp_path / "model.safetensors").stat().st_mode == (tmp_path / "other").stat().st_mode


def test_tensors_of_every_kind_come_back_to_the_bit(tmp_path):
    tensors = {
        "turned": torch.randn(3, 4).t(),
        "number": torch.tensor(1e-45),
        "nothing": torch.empty(0, 3),
        "random": torch.get_rng_state(),
        "edges": torch.tensor([torch.inf, -torch.inf, -0.0, 3.4e38]),
    }
    write_tensors(tmp_path / "a", tensors, {})
    back, _ = read_tensors(tmp_path / "a")
    assert back.keys() == tensors.keys()
    assert all(torch.equal(back[name], tensor) for name, tensor in tensors.items())


def test_a_file_cut_off_anywhere_is_refused(tmp_path):
    path, cut = tmp_path / "whole", tmp_path / "cut"
    write_tensors(path, {"a": torch.randn(3, 5), "b": torch.randn(7)}, ABOUT)
    whole = path.read_bytes()
    for length in range(len(whole)):
        cut.write_bytes(whole[:length])
        with pytest.raises(Misuse, match=r"cut: not a whole checkpoint .*it was cut off, or is another program's"):
            read_tensors(cut)


def test_a_file_with_more_at_its_end_is_refused(tmp_path):
    path = tmp_path / "long"
    write_tensors(path, {"a": torch.randn(3, 5)}, ABOUT)
    path.write_bytes(path.read_bytes() + b"more")
    with pytest.raises(Misuse, match="not a whole checkpoint"):
        read_tensors(path)


@pytest.mark.parametrize(
    "content",
    [b"", b"\0", b"\0" * 100, b"\xff" * 100, pickle.dumps({"a": [1.0] * 50}), b"PK\x03\x04" * 30, b"{}\n" * 9],
)
def test_a_file_of_another_kind_is_refused(tmp_path, content):
    path = tmp_path / "model.safetensors"
    path.write_bytes(content)
    with pytest.raises(Misuse, match="not a whole checkpoint"):
        read_tensors(path)


def test_what_torch_saved_is_refused_unread(tmp_path):
    class Bomb:
        def __reduce__(self):
            return Path.touch, (tmp_path / "exploded",)

    torch.save({"a": torch.ones(2), "bomb": Bomb()}, tmp_path / "a.safetensors")
    with pytest.raises(Misuse, match="not a whole checkpoint"):
        read_tensors(tmp_path / "a.safetensors")
    assert not (tmp_path / "exploded").exists()


@pytest.mark.parametrize("metadata", [None, {"format": "pt"}, {"pointing": "pointing-0", "about": "{}"}])
def test_safetensors_that_are_not_ours_are_refused(tmp_path, metadata):
    path = tmp_path / "model.safetensors"
    save_file({"a": torch.ones(2)}, path, metadata)
    with pytest.raises(Misuse, match="this version of pointing reads pointing-1"):
        read_tensors(path)


@pytest.mark.parametrize("about", ["", "{"])
def test_a_header_without_its_facts_is_refused(tmp_path, about):
    path = tmp_path / "model.safetensors"
    save_file({"a": torch.ones(2)}, path, {"pointing": checkpoint.FORMAT, "about": about})
    with pytest.raises(Misuse, match="not a whole checkpoint"):
        read_tensors(path)


def test_a_file_that_is_not_there_and_a_folder_are_refused(tmp_path):
    with pytest.raises(Misuse, match="there is no such checkpoint"):
        read_tensors(tmp_path / "nothing")
    with pytest.raises(Misuse, match="not a whole checkpoint"):
        read_tensors(tmp_path)


def test_weights_of_another_model_are_refused():
    ours = weights(make())
    for other, message in [
        (weights(make(output="softmax")), "output.switch.* only on one side"),
        (weights(make(tied=True)), "output.shortlist.weight only on one side"),
        (ours | {"more": torch.ones(1)}, "more only on one side"),
        (ours | {"embedding.weight": torch.ones(V, 6)}, r"embedding.weight is \(11, 6\) in the file, \(11, 5\) in the"),
        (ours | {"embedding.weight": torch.ones(1, 5)}, r"embedding.weight is \(1, 5\) in the file"),  # no broadcasting
    ]:
        with pytest.raises(Misuse, match=f"file.safetensors: these weights are of another model: .*{message}"):
            put_tensors(dict(other), weights(make()), Path("file.safetensors"))


@pytest.mark.parametrize("odd", [float("nan"), float("inf")])
def test_weights_that_are_not_numbers_are_refused(tmp_path, corpus, odd):
    # a search with them would never end
    config, made = corpus
    start_run(tmp_path, config, made)
    tensors = weights(Seq2Seq(config.model, len(made.lexicon.source), len(made.lexicon.target)))
    tensors["embedding.weight"] = torch.full_like(tensors["embedding.weight"], odd)
    write_tensors(tmp_path / MODEL, tensors, ABOUT)
    with pytest.raises(Misuse, match=r"model.safetensors: embedding.weight has weights that are not numbers"):
        load_run(tmp_path)


def test_a_write_that_fails_half_way_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "model.safetensors"
    write_tensors(path, {"a": torch.ones(3)}, ABOUT)
    before = path.read_bytes()

    def full(tensors, file, metadata):
        save_file(tensors, file, metadata)
        file.write_bytes(file.read_bytes()[:50])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(checkpoint, "save_file", full)
    with pytest.raises(Failure, match=re.escape(f"{path}: cannot be written: No space left on device; nothing was")):
        write_tensors(path, {"a": torch.zeros(3)}, ABOUT)
    assert path.read_bytes() == before
    assert sorted(tmp_path.iterdir()) == [tmp_path / MANIFEST, path]


def test_a_real_disk_limit_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "model.safetensors"
    write_tensors(path, {"a": torch.ones(3)}, ABOUT)
    before = path.read_bytes()
    code = (
        "import resource, signal, sys, torch; from pathlib import Path; from pointing.model.run import write_tensors\n"
        "from pointing.errors import Failure, Misuse\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"  # the write fails instead
        "resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))\n"
        "try: write_tensors(Path(sys.argv[1]), {'a': torch.ones(10_000)}, {})\n"
        "except Misuse: raise\n"
        "except Failure as failure: print(failure)"
    )
    run = [sys.executable, "-c", code, str(path)]
    result = subprocess.run(run, capture_output=True, text=True, check=True, env=tiny.environment())
    assert result.stdout.startswith(f"{path}: cannot be written: ")
    assert "nothing was left half-written" in result.stdout
    assert path.read_bytes() == before
    assert sorted(tmp_path.iterdir()) == [tmp_path / MANIFEST, path]


@pytest.mark.parametrize("tied", [False, True])
def test_a_run_is_loaded_as_it_was(tmp_path, corpus, tied):
    config, made = corpus
    config = config.model_copy(update={"model": config.model.model_copy(update={"tied": tied})})
    model = Seq2Seq(config.model, len(made.lexicon.source), len(made.lexicon.target))
    start_run(tmp_path, config, made)
    write_tensors(tmp_path / MODEL, weights(model), ABOUT)
    run = load_run(tmp_path)
    assert run.config == config
    assert (run.lexicon.source.words, run.lexicon.target.words) == (
        made.lexicon.source.words,
        made.lexicon.target.words,
    )
    assert (run.about, run.lexicon.dictionary, run.model.training) == (ABOUT, None, False)
    for name, p in weights(model).items():
        assert torch.equal(weights(run.model)[name], p)


def test_settings_that_were_turned_off_stay_off(tmp_path, corpus):
    config, made = corpus
    off = {"clip": None, "patience": None}
    config = config.model_copy(update={"training": config.training.model_copy(update=off)})
    start_run(tmp_path, config, made)
    assert run_settings(tmp_path) == config


def test_a_new_run_removes_what_an_older_one_left(tmp_path, corpus):
    old = ["model.safetensors", "training.safetensors", "metrics.jsonl", "dictionary.tsv", ".model.safetensors.x1.part"]
    for name in [*old, ".tmpKzH4KD", "notes.txt"]:
        (tmp_path / name).write_text("old")
    (tmp_path / "tensorboard").mkdir()
    start_run(tmp_path, *corpus)
    left = sorted(path.name for path in tmp_path.iterdir())
    own = ["config.yaml", "manifest.json", "source.vocabulary", "target.vocabulary", "training-words.tsv"]
    assert left == sorted([*own, "notes.txt"])


def test_folders_that_are_no_runs_are_refused(tmp_path, corpus):
    for path, message in [
        (tmp_path / "nowhere", r"nowhere: there is no such folder; `pointing train` makes runs"),
        (tmp_path, r"\w+: it has no config\.yaml"),
        (corpus[1].folder, r"\w+: it is a prepared corpus"),
        (corpus[1].folder / "prepared.json", r"prepared\.json: it is a file, and a run is a folder"),
    ]:
        with pytest.raises(Misuse, match=rf"there is no run in /.*{message}"):
            load_run(path)
    for name in "ab":
        start_run(tmp_path / "runs" / name, *corpus)
    with pytest.raises(Misuse, match=r"there is no run in /.*/runs itself, but in /.*/runs/a and 1 more folders"):
        load_run(tmp_path / "runs")
    start_run(tmp_path, *corpus)
    with pytest.raises(Misuse, match="there is no such checkpoint; has the run reached its first one"):
        load_run(tmp_path)
    write_tensors(tmp_path / MODEL, weights(make()), {"state": {}})  # of another model, and kind
    with pytest.raises(Misuse, match="these weights are of another model"):
        load_run(tmp_path)
    for broken in (b"\xff", b"[", b"model: {hiden: 3}", b"", b"3"):
        (tmp_path / "config.yaml").write_bytes(broken)
        with pytest.raises(Misuse, match=r"config\.yaml"):
            load_run(tmp_path)


def test_weights_can_be_read_by_others(tmp_path):
    write_tensors(tmp_path / "a.safetensors", weights(make()), ABOUT)
    assert load_file(tmp_path / "a.safetensors").keys() == weights(make()).keys()


def test_nothing_in_the_package_unpickles():
    found = []
    for path in sorted((tiny.ROOT / "pointing").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)]
            elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                names = [f"{node.value.id}.{node.attr}"]
            else:
                names = []
            bad = {"pickle", "dill", "joblib", "cloudpickle", "torch.load", "torch.save", "torch.serialization"}
            found += [f"{path.name}: {name}" for name in names if name in bad]
        assert "allow_pickle=True" not in path.read_text()
    assert found == []
