import os
import resource
import time

import pytest
import tiny

from pointing.checking import checked
from pointing.config import Training
from pointing.errors import Misuse, shown
from pointing.settings_file import parse_changes, read_config
from pointing.system import border
from pointing.system.border import digest, entering, parse_yaml, read_bytes, read_object
from pointing.system.files import count_lines, read_as_they_come, read_lines

BOMB = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{name}: &{name} [{','.join([f'*{before}'] * 9)}]\n" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)
MERGES = "a: &a {x: 1}\n" + "".join(
    f"{name}: &{name} {{<<: [{','.join([f'*{before}'] * 9)}]}}\n"
    for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (BOMB, r"x\.yaml:\d: more than 100,000 values, with the aliases \(\*name\) written out"),
        (MERGES, "more than 100,000 values"),
        ("[" * 100_000, "nested more than 50 levels deep"),
        ("a: " + "[" * 60 + "]" * 60, "nested more than 50 levels deep"),
        ("a: &a [*a]", "an alias stands inside of what it stands for"),
        ("a: 1" + "0" * 5000, "a number of more than 100 digits"),
        ("a: 1." + "0" * 5000, "a number of more than 100 digits"),
        ("a: " + "x" * (1 << 20), "settings have at most 1,048,576 bytes"),
        ("a: [", "x.yaml:1: not YAML: "),
        ("a: !!timestamp 2020-13-45", "not YAML: month must be in 1..12"),
        ("a: !!int x", "not YAML: invalid literal"),
        ("? [a]\n: b", "not YAML"),
        (b"\xff\xfe\xff", "not YAML"),
    ],
)
def test_a_bomb_of_yaml_is_refused_at_once(text, message):
    start, before = time.monotonic(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(Misuse, match=message) as refusal:
        parse_yaml(text, "x.yaml")
    assert len(str(refusal.value)) < 500
    assert time.monotonic() - start < 10
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000  # kilobytes


def test_aliases_that_people_write_are_read():
    assert parse_yaml("a: &a {x: 1}\nb: *a\nc: {<<: *a, y: 2}\n", None) == {
        **{"a": {"x": 1}, "b": {"x": 1}},
        "c": {"x": 1, "y": 2},
    }
    assert parse_yaml("", None) is None
    assert parse_yaml("1_000", None) == 1000


def test_a_bomb_in_an_option_is_refused():
    assert parse_changes(["a.b=[1, 2]"]) == {"a.b": [1, 2]}
    for value in ("[" * 10_000, "9" * 5000):
        with pytest.raises(Misuse, match="is not a YAML value") as refusal:
            parse_changes([f"model.hidden={value}"])
        assert len(str(refusal.value)) < 500


def test_a_message_is_short_whatever_it_tells():
    for value in ("x" * 10**6, list(range(10**6)), 10**5000, {"a": {"b": {"c": ["x" * 1000] * 1000}}}, b"x" * 10**6):
        assert len(shown(value)) < 400
    with pytest.raises(Misuse) as refusal:
        checked(Training, {"seed": ["x" * 1000] * 1000, "y" * 10_000: 1, **{f"k{n}": 1 for n in range(1000)}})
    assert len(str(refusal.value)) < 2000
    assert "and 992 more" in str(refusal.value)


def test_settings_with_a_bomb_are_refused_by_a_line(tmp_path):
    path = tiny.write(tmp_path)
    path.write_text(path.read_text() + BOMB.replace("a:", "model:", 1))
    with pytest.raises(Misuse, match=r"tiny\.yaml:\d+: more than 100,000 values"):
        read_config(path)


def test_what_is_wrong_in_a_file_becomes_one_line():
    for error, reason in [
        (KeyError("steps"), "there is no 'steps'"),
        (ValueError("a\nb"), "a b"),
        (RecursionError(), "nested too deeply"),
        (MemoryError(), "more memory than there is"),
        (OSError(5, "Input/output error"), "Input/output error"),
        (AssertionError(), "AssertionError"),
    ]:
        with pytest.raises(Misuse, match=rf"^x: not a list \(.*{reason}\); mend it$"), entering("x", "a list; mend it"):
            raise error
    with pytest.raises(KeyboardInterrupt), entering("x", "a list"):
        raise KeyboardInterrupt
    with pytest.raises(Misuse, match=r"^as it was$"), entering("x", "a list"):
        raise Misuse("as it was")


@pytest.mark.parametrize("content", [b"", b"[]", b"3", b"{", b'{"a": ' + b"9" * 5000 + b"}", b"[" * 100_000, b"\xff"])
def test_json_that_is_no_object_is_refused(tmp_path, content):
    (tmp_path / "x.json").write_bytes(content)
    with pytest.raises(Misuse, match=r"x\.json: not what it should be \("):
        read_object(tmp_path / "x.json", "what it should be")


def test_only_regular_files_are_read_whole(tmp_path, monkeypatch):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "zeros").symlink_to("/dev/zero")
    for name, message in [
        ("pipe", "a pipe or a device"),
        ("zeros", "a pipe or a device"),
        ("", "a folder"),
        ("x", "no"),
    ]:
        for read in (read_bytes, lambda path: next(read_lines(path)), count_lines, digest):
            with pytest.raises(Misuse, match=message):
                read(tmp_path / name)
    monkeypatch.setattr(border, "LARGEST", 3)
    (tmp_path / "large").write_bytes(b"1234")
    with pytest.raises(Misuse, match="this file has 4 bytes; at most 3 are read"):
        read_bytes(tmp_path / "large", border.LARGEST)


def test_lines_come_out_of_a_pipe_of_the_shell(tmp_path):
    inside, outside = os.pipe()
    os.write(outside, b"a\nb\n")
    os.close(outside)
    try:
        assert list(read_lines(f"/dev/fd/{inside}")) == [b"a", b"b"]
    finally:
        os.close(inside)


def test_a_line_that_would_fill_the_memory_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("pointing.system.files.LONGEST_LINE", 10)
    (tmp_path / "x").write_bytes(b"a\n12345678\n")
    assert list(read_lines(tmp_path / "x")) == [b"a", b"12345678"]
    (tmp_path / "x").write_bytes(b"a\nb\n" + b"0" * 100)
    with pytest.raises(Misuse, match=r"x:3: this line has 10 bytes or more"):
        list(read_lines(tmp_path / "x"))
    with (tmp_path / "x").open("rb") as file, pytest.raises(Misuse, match="a pipe:3: this line has 10 bytes or more"):
        list(read_as_they_come(file, "a pipe"))
