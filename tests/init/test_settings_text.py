"""A proposal as a file: what is read back is what was proposed, with the reasons beside it."""

from pathlib import Path

import pytest
import yaml

from pointing.init.proposal import SIZES, Proposal
from pointing.init.settings_text import settings_text


def text(data, folder=Path(), reasons=None, **sections):
    return settings_text(Proposal({"data": data, **sections}, reasons or {}, SIZES[0]), "two\nlines", folder)


def test_a_file_by_hand():
    data = {"train": {"files": ["x.csv"]}, "languages": ["en", "fr"]}
    reasons = {"model.hidden": "a reason", "data.languages": "another"}
    assert text(data, reasons=reasons, model={"hidden": 3, "init": 0.1}).splitlines() == [
        "# two",
        "# lines",
        "data:",
        "  train: x.csv",
        f"{'  languages: [en, fr]':<44}  # another",
        "model:",
        f"{'  hidden: 3':<44}  # a reason",
        "  init: 0.1",
    ]


FILES = [
    {"files": ["x.csv"]},
    {"files": ["a.po", "b.po"]},
    {"files": ["x.csv"], "source_column": "1", "target_column": "no: #1", "key_column": "yes"},
    {"source": "a.en", "target": "a.fr"},
]
ODD = ["my strings.csv", "a: b.csv", "#1.csv", "yes", "1.csv", "é ü.csv", "'\".csv", "- x, [y].csv", "a\nb.csv"]


@pytest.mark.parametrize("files", [*FILES, *({"files": [name]} for name in ODD), {"files": ODD}])
def test_what_is_written_is_read_back(files):
    read = yaml.safe_load(text({"train": files, "languages": ["no", "en"]}, model={"x": None, "y": True, "z": 1e-05}))
    short = files["files"][0] if files.keys() == {"files"} and len(files["files"]) == 1 else files
    assert read == {"data": {"train": short, "languages": ["no", "en"]}, "model": {"x": None, "y": True, "z": 1e-05}}


def test_paths_lead_from_the_folder_of_the_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data = {"train": {"source": "data/a.en", "target": "/b.fr"}, "dev": {"files": ["x.csv", "data/y.csv"]}}
    read = yaml.safe_load(text(data, Path("settings")))["data"]
    assert read["train"] == {"source": "../data/a.en", "target": "/b.fr"}
    assert read["dev"] == {"files": ["../x.csv", "../data/y.csv"]}
    assert yaml.safe_load(text(data, Path()))["data"]["dev"]["files"] == ["x.csv", "data/y.csv"]
    assert yaml.safe_load(text(data, tmp_path / "data"))["data"]["dev"]["files"] == ["../x.csv", "y.csv"]
