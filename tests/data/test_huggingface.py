"""Hugging Face data sets, read by the real `datasets` from local files, with the hub out of reach."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pointing.data import huggingface
from pointing.errors import Failure, Misuse


@pytest.fixture(scope="module", autouse=True)
def offline(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HF_HOME", str(tmp_path_factory.mktemp("huggingface")))
        patch.setenv("HF_HUB_OFFLINE", "1")
        pytest.importorskip("datasets")
        patch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)  # if it was imported before us
        yield


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def translation(english: str | None, french: str | None) -> dict[str, Any]:
    return {"id": 7, "translation": {"en": english, "fr": french}}


@pytest.fixture
def pears(tmp_path: Path) -> Path:
    folder = tmp_path / "pears"
    write(
        folder / "train.jsonl",
        [
            translation("a pear", "une poire"),
            translation("two\npears\n", "deux poires"),
            translation("", "rien"),
            translation("something", None),
            translation("a\u2028tree", "un\r\narbre"),
        ],
    )
    write(folder / "validation.jsonl", [translation("a fig", "une figue")])
    return folder


def lines(path: Path) -> list[str]:
    return path.read_bytes().decode("utf-8").split("\n")[:-1]


def test_nested_columns_become_parallel_files(pears: Path, tmp_path: Path) -> None:
    summary = huggingface.bring(tmp_path / "out", str(pears), "translation.en", "translation.fr")
    assert summary.pairs == {"train": 3, "dev": 1}
    assert summary.left_out == {"pairs with an empty side": 2}
    assert summary.changed == {"texts in which line breaks became spaces": 3}
    assert lines(tmp_path / "out" / "train.en") == ["a pear", "two pears", "a tree"]
    assert lines(tmp_path / "out" / "train.fr") == ["une poire", "deux poires", "un arbre"]
    assert lines(tmp_path / "out" / "dev.fr") == ["une figue"]


def test_splits_can_be_chosen_and_limited(pears: Path, tmp_path: Path) -> None:
    summary = huggingface.bring(
        tmp_path / "out", str(pears), "translation.fr", "translation.en", splits={"train": "test"}, limit=1
    )
    assert summary.pairs == {"test": 1}
    assert summary.files == ("test.fr", "test.en")


def test_a_single_file_is_its_train_split(tmp_path: Path) -> None:
    (tmp_path / "news.tsv").write_text('article\tsummary\n"A pear\nfell."\tPear falls\n', encoding="utf-8")
    huggingface.bring(tmp_path / "out", str(tmp_path / "news.tsv"), "article", "summary")
    assert lines(tmp_path / "out" / "train.article") == ["A pear fell."]
    assert lines(tmp_path / "out" / "train.summary") == ["Pear falls"]


def test_a_set_that_was_saved_to_disk_is_read(tmp_path: Path) -> None:
    import datasets

    rows = datasets.Dataset.from_dict({"text": ["pear"], "titles": [["Pear!", "Pear?"]]})
    datasets.DatasetDict({"train": rows, "test": rows}).save_to_disk(str(tmp_path / "saved"))
    summary = huggingface.bring(tmp_path / "out", str(tmp_path / "saved"), "text", "titles.1")
    assert summary.pairs == {"train": 1, "test": 1}
    assert lines(tmp_path / "out" / "test.titles.1") == ["Pear?"]


def test_a_column_whose_own_name_has_a_dot_is_found(tmp_path: Path) -> None:
    file = write(tmp_path / "data.jsonl", [{"a.text": "one", "b": {"text": "two"}}])
    huggingface.bring(tmp_path / "out", str(file), "a.text", "b.text")
    assert lines(tmp_path / "out" / "train.a.text") == ["one"]
    assert lines(tmp_path / "out" / "train.b.text") == ["two"]


@pytest.mark.parametrize(
    ("source", "target", "options", "message"),
    [
        ("translation.en", "translation.de", {}, r"no column 'translation.de'.*id, translation.en, translation.fr"),
        ("id", "translation.fr", {}, "'id' of .* holds no text but int: 7"),
        ("translation", "translation.fr", {}, "holds no text but dict"),
        ("translation.en", "translation.en", {}, "same column"),
        (
            "translation.en",
            "translation.fr",
            {"splits": {"valid": "dev"}},
            "no split 'valid': it has train, validation",
        ),
        ("translation.en", "translation.fr", {"config": "fr-en"}, r"BuilderConfig 'fr-en' not found.*default"),
    ],
)
def test_misuse_is_answered_with_what_is_there(
    source: str, target: str, options: dict[str, Any], message: str, pears: Path, tmp_path: Path
) -> None:
    with pytest.raises(Misuse, match=message):
        huggingface.bring(tmp_path / "out", str(pears), source, target, **options)
    assert not (tmp_path / "out").exists()


def test_a_broken_file_is_a_failure_and_leaves_nothing(pears: Path, tmp_path: Path) -> None:
    with (pears / "validation.jsonl").open("a") as file:
        file.write('{"translation": {"en": ')
    with pytest.raises(Failure, match="reading stopped"):
        huggingface.bring(tmp_path / "out", str(pears), "translation.en", "translation.fr")
    assert not (tmp_path / "out").exists()


def test_a_hub_out_of_reach_is_a_failure_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(Failure, match="hub cannot be reached, nor is 'nobody/pears' a local path") as failure:
        huggingface.bring(tmp_path / "out", "nobody/pears", "a", "b")
    assert not isinstance(failure.value, Misuse)
    assert "\n" not in str(failure.value)


def test_files_of_unknown_kinds_and_absent_paths_are_misuse(tmp_path: Path) -> None:
    (tmp_path / "pears.docx").write_text("pear")
    with pytest.raises(Misuse, match=r"pears.docx: this is none of .json"):
        huggingface.bring(tmp_path / "out", str(tmp_path / "pears.docx"), "a", "b")
    with pytest.raises(Misuse, match="cannot be loaded"):
        huggingface.bring(tmp_path / "out", str(tmp_path / "no" / "such"), "a", "b")


def test_without_the_extra_it_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(Misuse, match=r"pointing\[huggingface\]"):
        huggingface.bring(tmp_path / "out", "pears", "a", "b")
