"""The border through which files come in: whatever is wrong with one becomes a line that names it.

Only regular files are read, and none that is larger than what it can be. A file that the manifest beside it describes
(`system/manifest.py`) has to be as it was written. JSON and YAML are bounded in depth, size and the length of numbers.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pointing.errors import Failure, Misuse

if TYPE_CHECKING:
    from yaml import Node

LARGEST = 1 << 28  # bytes of a file that is read whole
LARGEST_YAML = 1 << 20
MOST_NODES, DEEPEST, LONGEST_NUMBER = 100_000, 50, 100  # of YAML: values with aliases written out; levels; digits
MANIFEST, MANIFEST_KIND = "manifest.json", "pointing-manifest-1"
SMALL = 1 << 25  # bytes of a file that is hashed whenever it is opened
BYTES_AT_A_TIME = 1 << 20


@contextmanager
def entering(path: str | Path, kind: str) -> Iterator[None]:
    """Whatever goes wrong in the block, which reads `path`, is misuse: it is not what it should be, `kind`.

    What may follow in `kind` after a semicolon is what to do.
    """
    try:
        yield
    except (Failure, BrokenPipeError):
        raise
    except Exception as error:
        what, semicolon, advice = kind.partition(";")
        raise Misuse(f"not {what} ({_reason(error)}){semicolon}{advice}", path) from error


def _reason(error: Exception) -> str:
    """What an error says, in one line."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    if isinstance(error, MemoryError):
        return "it takes more memory than there is"
    if isinstance(error, UnicodeDecodeError):
        return f"it is not UTF-8 (byte {error.start + 1:,} of the file)"
    text = " ".join(str(error).split())[:200]
    return f"there is no {text}" if isinstance(error, KeyError) else text or type(error).__name__


def check_regular(path: Path) -> int:
    """The size of a regular file. A folder, a pipe, a device, or what cannot be found is misuse."""
    with _explained(path):
        found = path.stat()
        if stat.S_ISDIR(found.st_mode):
            raise Misuse("this is a folder: give a file", path)
        if not stat.S_ISREG(found.st_mode):
            raise Misuse("this is a pipe or a device: give a regular file", path)
        return found.st_size


def check_readable(path: Path) -> None:
    """The same for text that is read once, line by line: it may come out of a pipe of the shell, as in `<(zcat x)`.

    A pipe that has a name is refused: without a writer it would be waited for without end.
    """
    with _explained(path):
        mode = path.stat().st_mode
        if stat.S_ISFIFO(mode) and not os.path.exists(os.path.realpath(path)):  # noqa: PTH110 - pipe:[1234] is no file
            return
    if os.path.realpath(path) != os.devnull:
        check_regular(path)


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Says why a file cannot be read."""
    try:
        yield
    except FileNotFoundError:
        raise Misuse("there is no such file", path) from None
    except PermissionError:
        raise Misuse("this file may not be read: check its permissions", path) from None
    except (OSError, ValueError) as error:  # a name that is too long, a loop of links, a NUL in the name, …
        raise Misuse(f"this file cannot be read ({getattr(error, 'strerror', None) or error})", path) from None


def read_bytes(path: Path, most: int = LARGEST) -> bytes:
    """The content of a regular file, as it was written."""
    size = check_regular(path)
    if size > most:
        raise Misuse(f"this file has {size:,} bytes; at most {most:,} are read: cut it into parts", path)
    with _explained(path):
        data = path.read_bytes()
    _compare(path, len(data), lambda: sha256(data).hexdigest())
    return data


def read_text_file(path: Path, kind: str) -> str:
    """The same as text, with its line ends as they are. `kind` says what it should be, for the message."""
    data = read_bytes(path)
    with entering(path, kind):
        return data.decode("utf-8")


def read_object(path: Path, kind: str, data: bytes | None = None) -> dict[str, Any]:
    """The JSON object that a file holds, or `data` of it."""
    data = read_bytes(path) if data is None else data
    with entering(path, kind):
        found = json.loads(data)
        if not isinstance(found, dict):
            raise ValueError("it should be an object of JSON: {…}")
        return found


def check_file(path: Path, wholly: bool = False) -> None:
    """Refuses a file that is not regular, or not as it was written: its size always counts, its hash if it is small."""
    size = check_regular(path)
    _compare(path, size, (lambda: digest(path)) if wholly or size <= SMALL else None)


def digest(path: str | Path) -> str:
    """SHA-256 of a regular file's content: a copy of the file has the same."""
    check_regular(Path(path))
    checksum = sha256()
    try:
        with Path(path).open("rb") as file:
            while piece := file.read(BYTES_AT_A_TIME):
                checksum.update(piece)
    except OSError as error:
        raise Misuse(f"cannot be read: {error.strerror}", path) from None
    return checksum.hexdigest()


def read_manifest(folder: Path) -> dict[str, list[tuple[int, str]]]:
    """The sizes and hashes that each listed file of a folder may have; empty if nothing is listed there."""
    path = folder / MANIFEST
    if not path.exists():
        return {}
    check_regular(path)
    with entering(path, "a whole manifest; if the files beside it are in order, remove it"):
        found = json.loads(path.read_bytes())
        if not isinstance(found, dict) or found.get("kind") != MANIFEST_KIND:
            return {}  # another program's
        return {
            str(name): [(int(version["bytes"]), str(version["sha256"])) for version in versions]
            for name, versions in found["files"].items()
        }


def _compare(path: Path, size: int, hashed: Any) -> None:
    versions = read_manifest(path.parent).get(path.name)
    if versions is None:
        return
    sizes = [f"{listed:,}" for listed, _ in versions]
    advice = f"take it from a copy; if you have changed it yourself, remove {MANIFEST} beside it"
    if not any(size == listed for listed, _ in versions):
        raise Misuse(f"damaged: it has {size:,} bytes, and was written with {' or '.join(sizes)}; {advice}", path)
    if hashed is not None and (size, hashed()) not in versions:
        raise Misuse(f"damaged: some of its {size:,} bytes are not those that were written; {advice}", path)


def parse_yaml(data: bytes | str, path: str | Path | None) -> Any:
    """The value that YAML describes. What would be too much once its aliases are written out is refused."""
    import yaml

    if len(data) > LARGEST_YAML:
        raise Misuse(f"settings have at most {LARGEST_YAML:,} bytes, and this has {len(data):,}", path)
    try:
        loader = yaml.SafeLoader(data)
        try:
            node = loader.get_single_node()
            if node is None:
                return None
            _count(node, {}, 0, path)
            return loader.construct_document(node)
        finally:
            loader.dispose()
    except RecursionError:
        raise Misuse(f"not YAML: it is nested more than {DEEPEST} levels deep", path) from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = " ".join(str(getattr(error, "problem", None) or error).split())[:200]
        raise Misuse(f"not YAML: {problem}", path, None if mark is None else mark.line + 1) from None
    except (ValueError, TypeError, LookupError, AttributeError, OverflowError) as error:
        raise Misuse(f"not YAML: {_reason(error)}", path) from None


def _count(node: Node, counted: dict[int, int | None], level: int, path: str | Path | None) -> int:
    """How many values a node of YAML stands for, with all aliases written out."""
    import yaml

    line = node.start_mark.line + 1
    if level > DEEPEST:
        raise Misuse(f"not YAML: it is nested more than {DEEPEST} levels deep", path, line)
    if id(node) in counted:
        known = counted[id(node)]
        if known is None:
            raise Misuse("not YAML: an alias stands inside of what it stands for", path, line)
        return known
    counted[id(node)] = None
    total = 1
    if isinstance(node, yaml.ScalarNode):
        is_number = node.tag in ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")
        if is_number and len(node.value) > LONGEST_NUMBER:
            raise Misuse(f"a number of more than {LONGEST_NUMBER} digits", path, line)
    else:
        inside = node.value if isinstance(node, yaml.SequenceNode) else [each for pair in node.value for each in pair]
        total += sum(_count(each, counted, level + 1, path) for each in inside)
    if total > MOST_NODES:
        raise Misuse(f"more than {MOST_NODES:,} values, with the aliases (*name) written out", path, line)
    counted[id(node)] = total
    return total
