"""Where translations are written."""

from pathlib import Path

import pytest

from pointing.errors import Misuse
from pointing.translation.names import default_name, output_paths

LANGUAGES = "en", "fr"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("app.pot", "fr.po"),
        ("messages.po", "messages.fr.po"),
        ("strings.csv", "strings.fr.csv"),
        ("readme.en.txt", "readme.fr.txt"),
        ("readme_en.txt", "readme.fr.txt"),
        ("en.txt", "en.fr.txt"),
        ("chef.xlf", "chef.fr.xlf"),
        ("fr.po", None),
        ("app.fr.po", None),
        ("app_fr.po", None),
    ],
)
def test_names_that_translators_expect(name, expected):
    assert default_name(Path(name), LANGUAGES) == expected


def test_a_file_that_is_there_is_not_overwritten_unasked(tmp_path):
    template = tmp_path / "app.pot"
    template.touch()
    assert output_paths([template], None, False, LANGUAGES) == {template: tmp_path / "fr.po"}
    (tmp_path / "fr.po").touch()
    with pytest.raises(Misuse, match=r"there is a .*fr.po already"):
        output_paths([template], None, False, LANGUAGES)
    for out in (tmp_path, tmp_path / "fr.po"):
        with pytest.raises(Misuse, match=r"whose translations would be lost: .*msgmerge --update"):
            output_paths([template], out, False, LANGUAGES)
    assert output_paths([tmp_path / "a.csv"], tmp_path / "fr.po", False, LANGUAGES)  # -o overwrites other files
    with pytest.raises(Misuse, match="a template stays as it is"):
        output_paths([template], None, True, LANGUAGES)
    with pytest.raises(Misuse, match="its name says fr already: fill it with --in-place"):
        output_paths([tmp_path / "fr.po"], None, False, LANGUAGES)


def test_several_files_go_to_a_folder(tmp_path):
    files = [tmp_path / "a.csv", tmp_path / "fr.po"]
    for file in files:
        file.touch()
    out = tmp_path / "out"
    assert output_paths(files, out, False, LANGUAGES) == {files[0]: out / "a.fr.csv", files[1]: out / "fr.po"}
    (tmp_path / "file").touch()
    with pytest.raises(Misuse, match="several files need a folder"):
        output_paths(files, tmp_path / "file", False, LANGUAGES)


def test_outputs_that_meet_are_refused(tmp_path):
    (tmp_path / "b").mkdir()
    files = [tmp_path / "a.pot", tmp_path / "b.pot"]
    with pytest.raises(Misuse, match="would both be written to"):
        output_paths(files, None, False, LANGUAGES)
    with pytest.raises(Misuse, match="given twice"):
        output_paths([tmp_path / "a.pot", tmp_path / "b" / ".." / "a.pot"], None, False, LANGUAGES)
    with pytest.raises(Misuse, match="which is translated too"):
        output_paths([tmp_path / "x.po", tmp_path / "x.fr.po"], tmp_path, False, LANGUAGES)
    with pytest.raises(Misuse, match="leave out -o"):
        output_paths(files, tmp_path, True, LANGUAGES)


def test_what_cannot_be_written_is_refused_before_any_work(tmp_path):
    file, locked = tmp_path / "a.csv", tmp_path / "locked.csv"
    file.touch()
    locked.touch(0o444)
    with pytest.raises(Misuse, match="read-only"):
        output_paths([file], locked, False, LANGUAGES)
    with pytest.raises(Misuse, match="is no folder that may be written to"):
        output_paths([file], file / "x.csv", False, LANGUAGES)
    with pytest.raises(Misuse, match=r"there is no folder .*nope: make it first"):
        output_paths([file], tmp_path / "nope" / "x.csv", False, LANGUAGES)
    with pytest.raises(Misuse, match=r"there is no folder .*nope: make it first"):  # only the last folder is made
        output_paths([file, tmp_path / "b.csv"], tmp_path / "nope" / "out", False, LANGUAGES)
    assert sorted(tmp_path.iterdir()) == [file, locked]
    with pytest.raises(Misuse, match="pipe or a device"):
        output_paths([file], Path("/dev/null"), False, LANGUAGES)
    with pytest.raises(Misuse, match="standard output"):
        output_paths([file], Path("-"), False, LANGUAGES)
