"""`pointing init`, and `prepare` and `train` on tables, as users meet them."""

import json
from pathlib import Path

import pytest
import user_table
import yaml

from pointing.model.run import run_settings
from pointing.settings_file import read_config

SMALL = ("model.hidden=8", "model.embedding=8", "training.updates=4", "training.validate_every=2", "training.samples=0")
QUICK = [word for change in (*SMALL, "training.warmup=0") for word in ("--set", change)]


@pytest.fixture
def pointing(tmp_path, monkeypatch, capsys):
    """The command in an empty folder: its exit code, standard output and standard error."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("pointing.system.workers.cores", lambda: 1)
    monkeypatch.setattr("pointing.init.timing.TIMED", 2)
    return lambda *arguments: user_table.run(monkeypatch, capsys, *arguments)


def settings(data, **sections):
    Path("s.yaml").write_text(yaml.safe_dump({"data": data, **sections}))
    return "s.yaml"


def test_init_writes_settings_and_says_what_is_next(pointing):
    user_table.write_table(Path("my strings.csv"))
    code, out, err = pointing("init", "my strings.csv", "--minutes", 0.1)
    assert code == 0
    note = "my strings.csv: source column 'English', target column 'French' (by data.languages, en and fr)\n"
    assert err.startswith(note)  # on a slow machine, lines of progress follow
    assert out.startswith(
        "pairs: 160 train, 20 dev, 20 test\nlanguages: en → fr (the other way round: --languages fr en)\n"
    )
    assert out.endswith("\n\nNext:\n  pointing train 'my strings.yaml'\n")
    assert read_config("my strings.yaml").data.train.files == (Path("my strings.csv"),)
    code, out, err = pointing("init", "my strings.csv")
    assert (code, out) == (2, "")
    assert err == (
        "pointing: my strings.yaml: there is such a file already: train with it, remove it, or give another name with "
        "--out\n"
    )


def test_init_prints_json_alone(pointing):
    table = user_table.write_table(Path("x.csv"))
    table.write_text(table.read_text() + "Open,\n")
    code, out, _ = pointing("init", "x.csv", "--minutes", 0.1, "--out", "y.yaml", "--json", "--languages", "en", "fr")
    assert code == 0
    found = json.loads(out)
    assert found["settings"] == "y.yaml"
    assert found["pairs"] == {"train": 160, "dev": 20, "test": 20}
    assert found["languages"] == ["en", "fr"]
    assert found["left_out"] == {"no translation": 1}
    assert found["warnings"] == []
    assert found["copied_share"] == 0.2
    assert found["statistics"]["train"]["pointers_per_100"] == 100
    assert found["minutes"] > 0
    assert read_config("y.yaml").data.languages == ("en", "fr")


def test_init_takes_columns_and_a_key(pointing):
    rows = [f"{n // 2};{source};{target};x y" for n, (source, target) in enumerate(user_table.pairs(80))]
    Path("x.csv").write_text("\n".join(["product;a;b;c", *rows]))
    code, _, err = pointing("init", "x.csv", "--minutes", 0.1)
    assert code == 2
    assert "x.csv: which columns hold source and translation is not clear: give source_column and target_column" in err
    told = ["--source-column", "a", "--target-column", "b", "--key-column", "product", "--out", "new.yaml"]
    code, _, err = pointing("init", "x.csv", "--minutes", 0.1, *told)
    assert (code, err) == (0, "")
    train = read_config("new.yaml").data.train
    assert (train.source_column, train.target_column, train.key_column) == ("a", "b", "product")


def test_data_alone_are_enough_to_train(pointing):
    user_table.write_table(Path("strings.csv"))
    code, out, err = pointing("train", "strings.csv", "--minutes", 0.1, *QUICK)
    assert code == 0
    assert "pairs: 160 train, 20 dev, 20 test" in err
    (line,) = out.splitlines()
    assert line.startswith("runs/strings: 4 updates in 0.0 minutes, the best at update ")
    # the last line says what its numbers are
    assert "; its dev scores: NLL " in line
    assert " a sentence, BLEU " in line
    written = Path("strings.yaml").read_text()
    assert run_settings(Path("runs/strings")).training.updates == 4

    code, out, err = pointing("train", "strings.csv", "--minutes", 0.1, "--resume", *QUICK)
    assert code == 2
    assert "strings.yaml: the settings for these data are there already" in err
    code, out, err = pointing("train", "strings.csv", "--resume", "--json", *QUICK)
    assert code == 0
    assert err.startswith("settings: strings.yaml, which was there already\n")
    summary = json.loads(out)
    assert (summary["update"], summary["best_by"], summary["folder"]) == (4, "nll", "runs/strings")
    assert summary["dev"].keys() == {"nll", "bleu"}
    assert Path("strings.yaml").read_text() == written


def test_a_small_table_with_default_settings_is_warned_about(pointing):
    table = user_table.write_table(Path("x.csv"), 100)
    warning = "warning: nothing can be pointed at: the shortlist of"
    path = settings({"train": str(table)})
    code, out, err = pointing("prepare", path)
    assert code == 0
    assert warning in err
    code, out, err = pointing("prepare", path, "--json")
    assert warning in err
    assert json.loads(out)["train"]["pointers"] == 0
    code, out, err = pointing("train", path, *QUICK)
    assert code == 0
    assert warning in err


def test_parts_that_differ_are_warned_about(pointing):
    user_table.write_table(Path("x.csv"), 100)
    user_table.write_table(Path("d.csv"), 30, seed=2)
    # all words but one name of the training part are in the shortlist: 5 verbs, 4 things, le, la, de, 99 names, 2
    path = settings({"train": "x.csv", "dev": "d.csv"}, vocabulary={"target": 113})
    warning = "warning: the training text has 1.0 pointers in 100 pairs, the dev text 100.0: "
    for command in (["prepare", path], ["train", path, *QUICK]):
        code, _, err = pointing(*command)
        assert code == 0
        assert warning in err


def test_rows_that_are_left_out_are_in_the_table(pointing):
    table = user_table.write_table(Path("x.csv"), 60)
    table.write_text(table.read_text() + "Open,\nClose,too,many\n")
    code, out, _ = pointing("prepare", settings({"train": str(table)}))
    assert code == 0
    assert "Left out" in out
    assert "no translation" in out
    assert "more cells than there are columns" in out


def test_a_setting_without_its_section_is_suggested_whole(pointing):
    user_table.write_table(Path("x.csv"), 60)
    code, out, err = pointing("train", settings({"train": "x.csv"}), "--set", "hidden=3")
    assert (code, out) == (2, "")
    assert err == "pointing: s.yaml: hidden: there is no such setting; did you mean model.hidden?\n"


BROKEN = {
    "empty.csv": b"",
    "header.csv": b"en,fr\n",
    "five.csv": b"en,fr\na,b\nc,d\ne,f\ng,h\ni,j\n",
    "same.csv": b"en,fr\n" + b"a b,c d\n" * 50,
    "one.csv": b"source\na\nb\n",
    "latin.csv": "en,fr\né,è\n".encode("latin-1"),
    "nul.csv": b"en,fr\na\0,b\n",
    "quote.csv": b'en,fr\n"a,b\n',
    "json.jsonl": b"{\n",
    "list.jsonl": b"[]\n",
    "cut.csv.gz": b"\x1f\x8b\x08\x00",
    "lines.txt": b"a\nb\n",
    "excel.xlsx": b"PK\x03\x04",
    "po.po": b'msgid "a"\n',
    "xml.xlf": b"<a>",
}


@pytest.mark.parametrize("name", BROKEN)
@pytest.mark.parametrize("verb", ["init", "train", "prepare"])
def test_whatever_is_wrong_is_one_line_and_nothing_is_written(pointing, tmp_path, name, verb):
    Path(name).write_bytes(BROKEN[name])
    before = sorted(tmp_path.iterdir())
    if verb == "prepare":
        before = [*before, tmp_path / settings({"train": name})]
    code, out, err = pointing(verb, "s.yaml" if verb == "prepare" else name)
    assert (code, out) == (2, "")
    assert err.startswith(f"pointing: {name}:")
    assert len(err.splitlines()) == 1
    assert sorted(tmp_path.iterdir()) == sorted(before)


def test_init_of_a_loop_of_links_is_one_line(pointing):
    Path("x.csv").symlink_to("x.csv")
    code, out, err = pointing("init", "x.csv")
    assert (code, out) == (2, "")
    assert err.startswith("pointing: x.csv: ")
    assert err.count("\n") == 1
