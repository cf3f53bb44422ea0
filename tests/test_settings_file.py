"""Settings files: paths that lead from the working folder or from the file's own, and changes to their values."""

from pathlib import Path

import pytest

from pointing.errors import Misuse
from pointing.settings_file import parse_changes, read_config


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """A working folder `here`, and a folder `my settings` beside it with settings for x.csv."""
    for name in ("here", "my settings"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / "here")
    (tmp_path / "my settings" / "s.yaml").write_text("data: {train: x.csv}\n")
    return tmp_path


SETTINGS = Path("../my settings/s.yaml")


def trained_from(settings=SETTINGS, *changes):
    return read_config(settings, changes).data.train.files


def test_a_file_in_the_working_folder_is_found(folders):
    (folders / "here" / "x.csv").touch()
    assert trained_from() == (Path("x.csv"),)


def test_a_file_beside_the_settings_is_found(folders):
    (folders / "my settings" / "x.csv").touch()
    assert trained_from() == (Path("../my settings/x.csv"),)
    assert trained_from(folders / "my settings" / "s.yaml") == (folders / "my settings" / "x.csv",)


def test_each_file_is_looked_for_by_itself(folders):
    (folders / "here" / "a.en").touch()
    (folders / "my settings" / "a.fr").touch()
    (folders / "my settings" / "words.tsv").touch()
    (folders / "my settings" / "s.yaml").write_text(
        "data: {train: {source: a.en, target: a.fr}}\npointers: {policy: dictionary, dictionary: words.tsv}\n"
    )
    config = read_config(SETTINGS)
    assert config.data.train.source == Path("a.en")
    assert config.data.train.target == Path("../my settings/a.fr")
    assert config.pointers.dictionary == Path("../my settings/words.tsv")


def test_a_file_that_is_nowhere_stays_as_it_was_written(folders):
    assert trained_from() == (Path("x.csv"),)


def test_one_file_reached_in_two_ways_is_no_doubt(folders):
    (folders / "here" / "x.csv").touch()
    (folders / "my settings" / "x.csv").symlink_to(folders / "here" / "x.csv")
    assert trained_from() == (Path("x.csv"),)
    assert trained_from(SETTINGS, f"data.train={folders / 'here' / 'x.csv'}") == (folders / "here" / "x.csv",)


@pytest.mark.parametrize("train", ["x.csv", "[x.csv]", "{files: x.csv}", "{source: x.csv, target: y}"])
def test_two_files_that_may_be_meant_are_refused(folders, train):
    for name in ("here", "my settings"):
        (folders / name / "x.csv").touch()
    here, beside = folders / "here" / "x.csv", folders / "my settings" / "x.csv"
    with pytest.raises(Misuse) as error:
        trained_from(SETTINGS, f"data.train={train}")
    both = f"{here} or {folders / 'here' / SETTINGS.parent / 'x.csv'}"
    assert str(error.value) == f"{SETTINGS}: x.csv may be {both}: write the whole path"
    assert beside.samefile(folders / "here" / SETTINGS.parent / "x.csv")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("hidden=3", "hidden: there is no such setting; did you mean model.hidden?"),
        ("data.train.source_column=en", "--set data.train.source_column: train is not a section"),
        ("data.held_out.dev=0", "data.held_out.dev: .* greater than 0"),
        ("data.held_out.train=5", "data.held_out.train: there is no such setting"),
    ],
)
def test_wrong_changes_are_explained(folders, change, message):
    with pytest.raises(Misuse, match=message):
        read_config(SETTINGS, [change])


IDLE = [
    (["data.dev=d.csv", "data.held_out.seed=2"], "data.held_out.seed does nothing: data.dev is given, so"),
    (["data.dev=d.csv", "data.held_out.dev=20"], "data.held_out.dev does nothing"),
    (["data.test=t.csv", "data.held_out.test=20"], "data.held_out.test does nothing: data.test is given, so it is not"),
    (["data.dev=d.csv", "data.train={files: x.csv, key_column: k}"], "data.train.key_column does nothing: it is for a"),
    (["data.dev={files: x.csv, key_column: k}"], "data.dev.key_column does nothing"),
    (["data.test={files: x.csv, key_column: k}"], "data.test.key_column does nothing"),
]


@pytest.mark.parametrize(("changes", "message"), IDLE)
def test_settings_that_split_nothing_are_refused(folders, changes, message):
    with pytest.raises(Misuse, match=message):
        read_config(SETTINGS, changes)


def test_settings_that_split_something_are_taken(folders):
    key = "data.train={files: x.csv, key_column: k}"
    config = read_config(SETTINGS, [key, "data.test=t.csv", "data.held_out.dev=20", "data.held_out.seed=2"])
    assert config.data.split_off() == ["dev"]
    assert config.data.train.key_column == "k"
    assert read_config(SETTINGS, [key]).data.split_off() == ["dev", "test"]


def test_changes_are_read_as_yaml():
    changes = parse_changes(["a.b=1e-3", "c=[x, 2]", "d=", "e=x=y", "f=null", "g='5'"])
    assert changes == {"a.b": "1e-3", "c": ["x", 2], "d": None, "e": "x=y", "f": None, "g": "5"}
