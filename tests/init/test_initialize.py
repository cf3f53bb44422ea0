"""From the user's files to settings, a prepared corpus and a file; and settings that are found again."""

import os
from pathlib import Path

import pytest
import torch
import user_table

from pointing.config import Table
from pointing.corpus.preparation import prepare
from pointing.errors import Misuse
from pointing.init.initialize import initialize, settings_for, settings_name, time_in_words
from pointing.settings_file import read_config


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Settings for a table of 200 strings, made in a folder of their own."""
    folder = tmp_path_factory.mktemp("initialized")
    user_table.write_table(folder / "my strings.csv")
    before = Path.cwd()
    os.chdir(folder)
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("pointing.system.workers.cores", lambda: 1)
            return folder, initialize([Path("my strings.csv")], Path("my strings.yaml"), Path("corpora"), minutes=0.1)
    finally:
        os.chdir(before)


@pytest.fixture
def here(made, monkeypatch):
    monkeypatch.chdir(made[0])
    monkeypatch.setattr("pointing.system.workers.cores", lambda: 1)
    return made[1]


def test_the_file_says_what_was_proposed(here):
    assert read_config("my strings.yaml") == here.config
    assert here.config.training.updates == 500
    first = Path("my strings.yaml").read_text().splitlines()[:2]
    assert first[0].startswith("# Settings for my strings.csv, written by `pointing init`: about ")
    assert first[1].startswith("# Next: pointing train 'my strings.yaml'. ")


def test_the_corpus_is_the_one_that_training_looks_for(here):
    corpus, is_new = prepare(read_config("my strings.yaml"), Path("corpora/my strings"))
    assert not is_new
    assert corpus.folder == here.corpus.folder == Path("corpora/my strings")


def test_names_are_pointed_at(here):
    train = here.corpus.split("train")
    target = here.corpus.lexicon.target
    assert len(train) == 160
    for row in range(len(train)):
        example = train[row]
        # `Open the file of Name` → `Ouvrez le fichier de Name`: the last word before the end is the fifth of the source
        assert example["target"][-2] == len(target) + 4
        assert all(choice < len(target) for choice in example["target"][:-2])
    assert {"ouvrez", "le", "fichier", "de"} <= set(target.words)


def test_what_is_said_by_hand(here):
    lines = here.text().splitlines()
    assert lines[:3] == [
        "pairs: 160 train, 20 dev, 20 test",
        "languages: en → fr (the other way round: --languages fr en)",
        "lengths: 5.0 → 5.0 tokens on average, 99 of 100 pairs within 5",
    ]
    assert "words that the target copies from the source: 20.0%" in lines
    assert "sources with placeholders, tags, paths and the like: 0.0%" in lines
    assert "pointers: 100 in 100 training pairs, 100 in 100 dev pairs" in lines
    assert lines[-1] == f"my strings.yaml: {time_in_words(here.minutes)}, 500 updates"
    assert not any(line.startswith(("warning", "left out")) for line in lines)


def test_what_was_left_out_is_said_whenever_it_was_left_out(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("pointing.init.timing.TIMED", 1)
    table = user_table.write_table(Path("x.csv"), 30)
    long = "word " * 300
    table.write_text(table.read_text() + f"Nothing,\n{long},mot\n")
    made = initialize([table], Path("x.yaml"), Path("corpora"), minutes=0.1)
    # one when the table was read, one when it was cut into tokens
    assert made.left_out == {"no translation": 1, "more than 200 tokens": 1}
    assert "left out: 1 with no translation" in made.text().splitlines()
    assert "left out: 1 with more than 200 tokens" in made.text().splitlines()


def test_times_in_words(monkeypatch):
    monkeypatch.setattr(torch, "get_num_threads", lambda: 1)
    assert time_in_words(0.1) == "about a minute of training on 1 core"
    assert time_in_words(1.6) == "about 2 minutes of training on 1 core"
    monkeypatch.setattr(torch, "get_num_threads", lambda: 4)
    assert time_in_words(29.7) == "about 30 minutes of training on 4 cores"


def test_nothing_is_overwritten_and_what_is_missing_is_said(here, tmp_path):
    table = Path("my strings.csv")
    before = Path("my strings.yaml").read_text()
    with pytest.raises(Misuse, match=r"my strings\.yaml: there is such a file already: train with it, remove it"):
        initialize([table], Path("my strings.yaml"), tmp_path)
    assert Path("my strings.yaml").read_text() == before
    with pytest.raises(Misuse, match="nowhere: there is no such folder to write into"):
        initialize([table], Path("nowhere/x.yaml"), tmp_path)
    with pytest.raises(Misuse, match=r"gone\.csv: there is no such file$"):
        initialize([table, Path("gone.csv")], tmp_path / "x.yaml", tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_settings_beside_other_data_lead_to_these(here, tmp_path, monkeypatch):
    monkeypatch.setattr("pointing.init.timing.TIMED", 1)
    data = here.settings.absolute().parent
    (tmp_path / "settings").mkdir()
    monkeypatch.chdir(tmp_path)
    columns = Table(files=(data / "my strings.csv",), source_column="French", target_column="English")
    relative = Path(os.path.relpath(data / "my strings.csv"))
    made = initialize([relative], Path("settings/x.yaml"), tmp_path / "corpora", minutes=0.1, columns=columns)
    assert made.findings.languages == ("fr", "en")
    for folder in (tmp_path, tmp_path / "settings", data):
        monkeypatch.chdir(folder)
        train = read_config(tmp_path / "settings" / "x.yaml").data.train
        assert train.files[0].samefile(data / "my strings.csv")
        assert (train.source_column, train.target_column) == ("French", "English")


@pytest.mark.parametrize(
    ("files", "name"),
    [
        (["strings.csv"], "strings.yaml"),
        (["data/my strings.csv.gz"], "my strings.yaml"),
        (["fr.po", "de.po"], "fr.yaml"),
        (["/shop/train.en", "/shop/train.fr"], "shop.yaml"),
        (["/shop/train-clean.csv"], "shop.yaml"),
        (["/shop/training_data.csv"], "shop.yaml"),
        (["/shop/trains.csv"], "trains.yaml"),
        (["/train.csv"], "train.yaml"),
    ],
)
def test_settings_are_named_after_the_data(files, name):
    assert settings_name([Path(file) for file in files]) == name


def test_settings_stand_for_themselves(tmp_path):
    assert settings_for(tmp_path / "x.yaml", None) == tmp_path / "x.yaml"
    with pytest.raises(Misuse, match=r"x\.yaml: --minutes is for data, not for settings: set training.updates there"):
        settings_for(tmp_path / "x.yaml", 5.0)


def test_settings_of_data_are_found_again(here, capsys):
    for path in (Path("my strings.csv"), Path("my strings.csv").absolute()):
        assert settings_for(path, None) == Path("my strings.yaml")
        assert capsys.readouterr().err == "settings: my strings.yaml, which was there already\n"
    with pytest.raises(Misuse, match=r"my strings\.yaml: the settings for these data are there already: change"):
        settings_for(Path("my strings.csv"), 5.0)


def test_settings_of_other_data_are_not_taken_for_these(here, tmp_path):
    other = user_table.write_table(tmp_path / "my strings.csv", seed=2)
    with pytest.raises(Misuse, match=rf"^my strings\.yaml: these settings are not for {other}: write others with"):
        settings_for(other, None)
    Path("lines.yaml").write_text("data: {train: {source: a, target: b}}\n")
    Path("lines.csv").touch()
    with pytest.raises(Misuse, match=r"lines\.yaml: these settings are not for lines\.csv"):
        settings_for(Path("lines.csv"), None)


def test_data_that_are_not_there_have_no_settings(here):
    with pytest.raises(Misuse, match=r"^gone\.csv: there is no such file$"):
        settings_for(Path("gone.csv"), None)


def test_processes_of_torchrun_do_not_all_write_settings(here, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert settings_for(Path("my strings.csv"), None) == Path("my strings.yaml")
    Path("new.csv").write_text("en,fr\na,b\n")
    with pytest.raises(Misuse, match=r"new\.csv: on several processes, write settings first: `pointing init`"):
        settings_for(Path("new.csv"), None)
