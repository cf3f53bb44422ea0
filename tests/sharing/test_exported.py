"""A run as one file: it does what the run does, holds nothing private, and no damaged one gets in."""

import json
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import tiny
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import pointing
from pointing import export, save_pretrained
from pointing.errors import Failure, Misuse
from pointing.model.exported import folder_of, is_exported, pack
from pointing.model.run import load_run, own_files, run_settings

FROZEN = Path(__file__).parents[1] / "frozen"
LINES = ["a b name77 c", "foo bar", ""]
VOCABULARY = {"source": 60, "target": 60, "min_count": 1}


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    """A run with a confidence, a dictionary and scores, exported."""
    folder = tmp_path_factory.mktemp("shop")
    run = folder / "my run"
    shutil.copytree(FROZEN / "dictionary", run)
    scores = {"BLEU": {"score": 31.25, "low": 30.0, "high": 32.5, "signature": "BLEU|nrefs:1"}}
    (run / "evaluation").mkdir()
    (run / "evaluation/results.json").write_text(json.dumps({"systems": [{"name": "x", "scores": scores}]}))
    (run / "dev.source").write_text("a private line\n")
    return run, export(run, folder / "shop.pointing")


def texts(run):
    return [output.text for output in pointing.load(run).generate(LINES)]


@pytest.mark.parametrize("kind", ["pointer-softmax", "softmax", "bpe", "dictionary", "entities", "pointer-network"])
def test_it_generates_what_the_run_does(kind, tmp_path):
    file = export(FROZEN / kind, tmp_path / "it.pointing")
    ours, theirs = load_run(file), load_run(FROZEN / kind)
    assert ours.model.state_dict().keys() == theirs.model.state_dict().keys()
    assert all((weight == theirs.model.state_dict()[name]).all() for name, weight in ours.model.state_dict().items())
    if kind != "entities":  # which needs tags
        assert texts(file) == texts(FROZEN / kind)


def test_no_line_and_no_place_of_the_data_is_in_it(shop):
    with zipfile.ZipFile(shop[1]) as archive:
        names = set(archive.namelist())
        told = b"".join(archive.read(name) for name in names - {"model.safetensors"}).decode()
    assert names == {
        *("README.md", "config.yaml", "manifest.json", "model.safetensors", "results.json"),
        *("source.vocabulary", "target.vocabulary", "dictionary.tsv"),
    }
    assert "private line" not in told
    assert {path.parent for path in pointing_files(shop[1])} == {Path()}


def pointing_files(run):
    from pointing.settings_file import named_files

    return named_files(run_settings(run))


def test_the_same_run_gives_the_same_bytes(shop, tmp_path):
    again = export(shop[0], tmp_path / "shop.pointing")
    assert again.read_bytes() == shop[1].read_bytes()


def test_an_export_of_an_export_is_the_same(shop, tmp_path):
    again = export(shop[1], tmp_path / "shop.pointing")
    assert again.read_bytes() == shop[1].read_bytes()


def test_unpacked_by_hand_it_is_a_run(shop, tmp_path):
    with zipfile.ZipFile(shop[1]) as archive:
        archive.extractall(tmp_path / "by hand")
    assert texts(tmp_path / "by hand") == texts(shop[1])


def test_the_card_tells_what_it_is_and_how_good(shop):
    card = (folder_of(shop[1]) / "README.md").read_text()
    assert card.startswith("---\nlanguage:\n- en\n- fr\nlibrary_name: pointing\n")
    assert "# shop\n\nTranslates English into French. It copies words that it does not know" in card
    assert 'pointing.load("shop.pointing")' in card
    assert "| BLEU | 31.2 | 30.0 to 32.5 | `BLEU|nrefs:1` |" in card.replace("\\|", "|")
    assert "| data | train.en, train.fr, dev.en, dev.fr |" in card
    assert "Where a mistake could harm somebody" in card


def test_a_card_without_scores_says_how_to_get_them(tmp_path):
    file = export(FROZEN / "pointer-softmax", tmp_path / "it.pointing", "my model")
    card = (folder_of(file) / "README.md").read_text()
    assert "# my model\n" in card
    assert "Not tested. `pointing evaluate RUN --out RUN/evaluation`" in card


def test_a_card_says_that_all_words_of_the_text_are_in_it_if_they_are(shop, tmp_path):
    familiar = {
        "pointers": {"places": "words", "familiarity": True},
        "text": {"tokenizer": "regex", "subwords": "bpe", "forms": True},
    }
    tiny.train_in(tmp_path, tmp_path / "run", familiar, {"training": {"updates": 2}}, {"vocabulary": VOCABULARY})
    folder = folder_of(export(tmp_path / "run", tmp_path / "it.pointing"))
    words = {line.split("\t")[0] for line in (folder / "familiar.tsv").read_text().splitlines()}
    assert set((tmp_path / "train.source").read_text().split()) <= words
    warning = "**`familiar.tsv` holds every word of the source side of that text**"
    assert warning in (folder / "README.md").read_text()
    assert "familiar.tsv" not in (folder_of(shop[1]) / "README.md").read_text()


def test_confidence_is_given_away_only_with_the_weights_that_it_is_of(tmp_path):
    run = tmp_path / "run"
    tiny.train_in(tmp_path, run, {"training": {"updates": 20, "validate_every": 10}}, dev=60)
    assert pointing.load(export(run, tmp_path / "with.pointing")).confidence is not None
    learned = json.loads((run / "confidence.json").read_text())
    learned["weights"]["update"] += 1
    (run / "manifest.json").unlink()
    (run / "confidence.json").write_text(json.dumps(learned))
    with zipfile.ZipFile(export(run, tmp_path / "without.pointing")) as archive:
        assert "confidence.json" not in archive.namelist()


def test_commands_take_it_in_a_runs_place(shop, tmp_path):
    (tmp_path / "in.txt").write_text("a b name77 c\n")
    (tmp_path / "out.txt").write_text("a b name77 c\n")
    expected = pointing.load(shop[0]).generate("a b name77 c").text
    code, out, _ = tiny.ran("generate", shop[1], tmp_path / "in.txt")
    assert (code, out) == (0, f"{expected}\n")
    code, out, _ = tiny.ran("check", shop[1])
    assert (code, out.partition(":")[0]) == (0, str(shop[1]))
    code, out, error = tiny.ran(
        *("evaluate", shop[1], "--source", tmp_path / "in.txt", "--reference", tmp_path / "out.txt", "--json")
    )
    assert code == 0, error
    assert json.loads(out)["systems"][0]["name"] == "shop.pointing"


def test_a_new_run_begins_with_it(tmp_path):
    tiny.train_in(tmp_path, tmp_path / "old", {"training": {"updates": 10}})
    file = export(tmp_path / "old", tmp_path / "old.pointing")
    code, _, error = tiny.ran(
        *("train", tmp_path / "tiny.yaml", "--from", file, "--out", tmp_path / "new", "--corpus", tmp_path / "corpus"),
        *("--set", "training.updates=12", "--set", "training.validate_every=6"),
    )
    assert code == 0, error
    assert f"begins with the weights of {file} at update 10" in error


def test_nothing_of_its_own_is_left_behind(shop, tmp_path):
    program = "import sys, pointing; print(pointing.load(sys.argv[1]).generate('a b').text)"
    environment = {**tiny.environment(), "TMPDIR": str(tmp_path)}
    subprocess.run([sys.executable, "-c", program, shop[1]], env=environment, check=True, stdout=subprocess.DEVNULL)
    assert list(tmp_path.iterdir()) == []


def test_it_is_not_written_over_by_what_reads_it(shop):
    assert own_files(shop[1]) == [shop[1]]
    with pytest.raises(Misuse, match="would be written over"):
        export(shop[1], shop[1])


def test_a_file_that_changed_is_read_anew(tmp_path):
    file = export(FROZEN / "softmax", tmp_path / "it.pointing")
    assert run_settings(file).model.output == "softmax"
    export(FROZEN / "pointer-softmax", file)
    assert run_settings(file).model.output == "pointer-softmax"


def test_a_folder_holds_what_the_file_holds(shop, tmp_path):
    folder = save_pretrained(shop[0], tmp_path / "shop")
    with zipfile.ZipFile(shop[1]) as archive:
        assert {path.name: path.read_bytes() for path in folder.iterdir()} == {
            name: archive.read(name) for name in archive.namelist()
        }
    save_pretrained(shop[0], folder)  # again
    (folder / "mine.txt").write_text("mine")
    with pytest.raises(Misuse, match="there is something else in this place"):
        save_pretrained(shop[0], folder)
    assert (folder / "mine.txt").exists()


def test_damaged_weights_are_not_given_away(tmp_path):
    run = tmp_path / "run"
    tiny.train_in(tmp_path, run, {"training": {"updates": 4, "validate_every": 2}})
    weights = bytearray((run / "model.safetensors").read_bytes())
    weights[-1] ^= 1
    (run / "model.safetensors").write_bytes(weights)
    with pytest.raises(Misuse, match=r"model\.safetensors"):
        export(run, tmp_path / "it.pointing")
    assert not (tmp_path / "it.pointing").exists()


@pytest.mark.parametrize("name", ["../x", "/x", "a/b", ".x", "a\\b", "c:x", "", "é", "x" * 101])
def test_files_with_other_names_are_refused(name, tmp_path):
    with zipfile.ZipFile(tmp_path / "it.pointing", "w") as archive:
        archive.writestr("config.yaml", "")
        archive.writestr(zipfile.ZipInfo(name), "x")
    with pytest.raises(Misuse, match="not a whole exported run"):
        folder_of(tmp_path / "it.pointing")
    with pytest.raises((Misuse, OSError)):
        pack(tmp_path, [name], tmp_path / "packed")


def test_archives_that_grow_are_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "bomb.pointing", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("config.yaml", b"\0" * 10_000_000)
    with pytest.raises(Misuse, match="its files are larger than it is"):
        folder_of(tmp_path / "bomb.pointing")
    with zipfile.ZipFile(tmp_path / "many.pointing", "w") as archive:
        for number in range(51):
            archive.writestr(f"file{number}", "x")
    with pytest.raises(Misuse, match="too many files"):
        folder_of(tmp_path / "many.pointing")
    data = bytearray(file_with_two_entries_on_the_same_bytes())
    (tmp_path / "overlap.pointing").write_bytes(data)
    with pytest.raises(Misuse, match="not a whole exported run"):
        folder_of(tmp_path / "overlap.pointing")


def file_with_two_entries_on_the_same_bytes():
    from io import BytesIO

    file = BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("a", b"\0" * 10_000)
        first = archive.infolist()[0]
        other = zipfile.ZipInfo("b")
        for name in ("header_offset", "file_size", "compress_size", "CRC"):
            setattr(other, name, getattr(first, name))
        archive.filelist.append(other)
    return file.getvalue()


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_a_damaged_file_is_one_line_or_does_the_same(shop, tmp_path, data):
    """Cut anywhere or changed in any byte: refused with the file's name, or it was a byte that nothing depends on."""
    whole = shop[1].read_bytes()
    at = data.draw(st.integers(0, len(whole) - 1))
    damaged = whole[:at] if data.draw(st.booleans()) else whole[:at] + bytes([whole[at] ^ 0x40]) + whole[at + 1 :]
    file = tmp_path / "damaged.pointing"
    file.write_bytes(damaged)
    problem = about = None
    try:
        about = load_run(file).about
    except Failure as refused:
        problem = str(refused)
    assert about == load_run(shop[1]).about if problem is None else "\n" not in problem


def test_what_is_no_exported_run_is_told_so(tmp_path):
    (tmp_path / "text").write_text("PKs are not enough")
    assert not is_exported(tmp_path / "text")
    code, error = tiny.said("generate", tmp_path / "text")
    assert code == 2
    assert "it is a file, and a run is a folder, or a file that `pointing export` wrote" in error
    code, error = tiny.said("export", tmp_path / "none", tmp_path / "out")
    assert (code, "there is no run in" in error) == (2, True)
    code, error = tiny.said("export", FROZEN / "softmax", tmp_path / "no/folder")
    assert (code, "there is no folder" in error) == (2, True)
    for flags, message in ((["--hub", "--folder"], "exclude each other"), (["--private"], "--private is for --hub")):
        code, error = tiny.said("export", FROZEN / "softmax", "x/y", *flags)
        assert (code, message in error) == (2, True)
