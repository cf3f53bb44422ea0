"""Every wrong key is named, with the nearest right one."""

from pathlib import Path
from typing import Annotated

import pytest
from pydantic import Field

from pointing.checking import Settings, checked
from pointing.config import Config
from pointing.errors import Misuse


class Inner(Settings):
    width: int = 1
    depth: Annotated[int, Field(gt=0)] = 2


class Other(Settings):
    height: int


class Outer(Settings):
    inner: Inner = Inner()
    either: Inner | Other = Inner()
    name: str


def problem(values, kind=Outer, file=None):
    with pytest.raises(Misuse) as error:
        checked(kind, values, file)
    return str(error.value)


def test_what_is_right_is_returned():
    assert checked(Outer, {"name": "x", "inner": {"depth": 3}}) == Outer(name="x", inner=Inner(width=1, depth=3))


def test_the_nearest_key_of_the_same_section_is_suggested():
    assert problem({"name": "x", "inner": {"widht": 1}}) == "inner.widht: there is no such setting; did you mean width?"
    assert problem({"nam": "x", "name": "y"}) == "nam: there is no such setting; did you mean name?"


def test_a_key_of_another_section_is_suggested_whole():
    assert problem({"name": "x", "depth": 1}) == "depth: there is no such setting; did you mean inner.depth?"
    assert problem({"name": "x", "heigth": 1}) == "heigth: there is no such setting; did you mean either.height?"
    assert problem({"name": "x", "inner": {"inner": 1}}).endswith("did you mean inner?")


def test_a_key_like_no_other_has_no_suggestion():
    assert problem({"name": "x", "zzz": 1}) == "zzz: there is no such setting"


def test_all_problems_are_named_in_one_line():
    text = problem({"inner": {"depth": 0, "width": "x"}, "zzz": 1}, file="a.yaml")
    assert text.startswith("a.yaml: ")
    for part in ("inner.depth: ", ", not 0", "inner.width: ", ", not 'x'", "name: Field required", "zzz: there is"):
        assert part in text
    assert len(text.splitlines()) == 1


def test_settings_cannot_be_changed_after_the_check():
    with pytest.raises(ValueError, match="frozen"):
        checked(Outer, {"name": "x"}).name = "y"


@pytest.mark.parametrize(
    ("key", "value", "suggestion"),
    [
        ("hidden", 3, "model.hidden"),
        ("updates", 3, "training.updates"),
        ("pointer", {}, "pointers"),
        ("data.max_tokens", 3, "text.max_tokens"),
        ("data.train.source", "b.en", "source_column"),  # beside `files`, which make it a table
        ("data.train.key", "b.en", "key_column"),
        ("data.dev.sorce", "b.en", "source"),
        ("data.dev.source_tag", "b.en", "source_tags"),
    ],
)
def test_keys_of_an_experiment_are_suggested(key, value, suggestion):
    values = {"data": {"train": {"files": "a.csv"}, "dev": {"source": "a.en", "target": "a.fr"}}}
    section = values
    for name in key.split(".")[:-1]:
        section = section[name]
    section[key.rpartition(".")[2]] = value
    assert problem(values, Config) == f"{key}: there is no such setting; did you mean {suggestion}?"


@pytest.mark.parametrize(
    ("train", "message"),
    [
        ({"source": "a"}, "data.train.target: Field required"),
        (5, "data.train: should be a file, a list of files, or two files as source and target, not 5"),
        (None, "data.train: should be a file, a list of files, or two files as source and target, not None"),
        ([], "data.train.files: Tuple should have at least 1 item after validation, not 0, not []"),
        ({"files": "a", "source_column": True}, "data.train.source_column: Input should be a valid string, not True"),
    ],
)
def test_what_is_no_file_is_explained(train, message):
    assert problem({"data": {"train": train}}, Config) == message


def test_the_short_forms_of_files_mean_the_same():
    short, one, several = ({"train": files} for files in ("a.csv", {"files": "a.csv"}, ["a.csv"]))
    configs = [checked(Config, {"data": data}) for data in (short, one, several)]
    assert configs[0] == configs[1] == configs[2]
    assert configs[0].data.train.files == (Path("a.csv"),)


def test_columns_may_be_numbers():
    table = {"files": "a.csv", "source_column": 2, "target_column": "1", "key_column": 3}
    train = checked(Config, {"data": {"train": table}}).data.train
    assert (train.source_column, train.target_column, train.key_column) == ("2", "1", "3")
