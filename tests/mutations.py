"""A seeded mutator of files: what a bad disk, another version, another program or an enemy may make of one."""

import json
import os
import re
from pathlib import Path

ODD_VALUES = [
    None,
    True,
    -1,
    0,
    1e9,
    10**12,
    -(10**12),
    1e308,
    float("nan"),
    "x",
    "",
    "\x1b[2J",
    [],
    {},
    [[]],
    {"a": 1},
]
ODD_NUMBERS = [b"-1", b"1e9", b"1000000000000", b"9" * 5000, b"nan", b"0x10", b"", b"\xd9\xa3", b"true"]
PLACES = ("folder", "pipe", "zeros", "link to itself", "missing")


def flip(data, rng):
    place = rng.randrange(len(data))
    return data[:place] + bytes([data[place] ^ 1 << rng.randrange(8)]) + data[place + 1 :]


def cut(data, rng):
    return data[: rng.randrange(len(data))]


def without_a_piece(data, rng):
    start = rng.randrange(len(data))
    return data[:start] + data[start + rng.randint(1, 50) :]


def zeroed(data, rng):
    start, size = rng.randrange(len(data)), rng.choice([1, 8, 64, 512])
    return data[:start] + bytes(len(data[start : start + size])) + data[start + size :]


def with_noise(data, rng):
    start = rng.randrange(len(data) + 1)
    return data[:start] + rng.choice([rng.randbytes(9), b"\0" * 40, b"\xff\xfe", b"\n", b"\t", b"["]) + data[start:]


def with_another_number(data, rng):
    numbers = list(re.finditer(rb"\d+(\.\d+)?", data[: 1 << 16]))
    if not numbers:
        return flip(data, rng)
    number = rng.choice(numbers)
    return data[: number.start()] + rng.choice(ODD_NUMBERS) + data[number.end() :]


def lines_swapped(data, rng):
    lines = data.split(b"\n")
    one, other = rng.randrange(len(lines)), rng.randrange(len(lines))
    lines[one], lines[other] = lines[other], lines[one]
    return b"\n".join(lines)


def without_a_line(data, rng):
    lines = data.split(b"\n")
    del lines[rng.randrange(len(lines))]
    return b"\n".join(lines)


def with_a_line_twice(data, rng):
    lines = data.split(b"\n")
    lines.insert(rng.randrange(len(lines)), rng.choice(lines))
    return b"\n".join(lines)


def another_file(data, rng):
    return rng.choice([b"", b"\0" * 100, b"{}", b"[]", b"null", b"[" * 100_000, b"PK\x03\x04" * 30, rng.randbytes(300)])


OF_LINES = {".vocabulary", ".merges", ".tsv", ".yaml", ".source", ".target", ".conll", ".txt", ".csv", ".po", ".xlf"}
BYTES = [flip, cut, without_a_piece, zeroed, with_noise, with_another_number]
LINES = [lines_swapped, without_a_line, with_a_line_twice]


def changed_json(value, rng):
    """A JSON value in which one member is missing, named otherwise, or has another value."""
    places = list(_members(value))
    if not places:
        return rng.choice(ODD_VALUES)
    inside, key = rng.choice(places)
    kind = rng.randrange(4)
    if kind == 0:
        del inside[key]
    elif kind == 1 and isinstance(inside, dict):
        inside[f"{key}_new"] = inside.pop(key)
    else:
        inside[key] = rng.choice(ODD_VALUES)
    return value


def _members(value):
    keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else []
    for key in keys:
        yield value, key
        yield from _members(value[key])


def mutant(path, data, rng):
    """Another content for a file of this name."""
    kind = rng.randrange(10)
    if kind == 0:
        return another_file(data, rng)
    if path.suffix == ".json" and kind < 7:
        return json.dumps(changed_json(json.loads(data), rng)).encode()
    if path.suffix == ".jsonl" and kind < 5:
        lines = data.splitlines()
        place = rng.randrange(len(lines))
        lines[place] = json.dumps(changed_json(json.loads(lines[place]), rng)).encode()
        return b"\n".join([*lines, b""])
    if path.suffix == ".safetensors" and kind < 7:
        return changed_header(data, rng)
    if path.suffix in OF_LINES and kind < 4:
        return rng.choice(LINES)(data, rng)
    return rng.choice(BYTES)(data, rng)


def changed_header(data, rng):
    """A safetensors file with another header, of which its own length is right."""
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    if rng.random() < 0.8:
        about = changed_json(json.loads(header["__metadata__"]["about"]), rng)
        header["__metadata__"]["about"] = json.dumps(about)
    else:
        header = changed_json(header, rng)
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data[8 + size :]


def put_in_place(path, kind):
    """Something that is no file where a file was."""
    path.unlink()
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "zeros":
        path.symlink_to("/dev/zero")
    elif kind == "link to itself":
        path.symlink_to(path.name)


def put_back(path, data):
    if path.is_dir() and not path.is_symlink():
        path.rmdir()
    else:
        Path(path).unlink(missing_ok=True)
    path.write_bytes(data)
