"""Reads gettext's compiled catalogs (.mo), also out of a Debian package that is not installed.

A catalog holds messages: a key, which is the English text, and its translation. `\\x04` ends a message's context,
`\\0` separates the forms of a plural.
"""

from __future__ import annotations

import gettext
import re
import struct
import subprocess
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, NamedTuple

MAGIC = 0x950412DE
LARGEST = 64 << 20  # bytes; the largest catalog of Debian has 6 million
IN_PACKAGE = re.compile(r"/([A-Za-z]{2,3}(?:_[A-Za-z]+)?(?:@\w+)?)(?:\.[\w-]+)?/LC_MESSAGES/([^/]+)\.mo$")
CHARSET = re.compile(r"charset\s*=\s*([\w.:-]+)", re.IGNORECASE)
PLURAL = re.compile(r"plural\s*=\s*([^;\n]+)")
ONE, MANY = 1, 10  # numbers whose plural forms are paired with the English singular and plural


class Damaged(Exception):
    """This is no catalog that can be read."""


class Catalog(NamedTuple):
    """A language's messages of one program: (context, English text) → translation; plurals are two messages."""

    language: str
    domain: str  # the file's name: the program
    messages: dict[tuple[str, str], str]
    unreadable: int  # messages that are not text in the catalog's encoding


def read_catalog(data: bytes, language: str, domain: str) -> Catalog:
    """A catalog from a file's bytes, in either byte order; raises Damaged if it is not one."""
    entries = list(_entries(data))
    header = next((value for key, value in entries if key == b""), b"").decode("ascii", "replace")
    charset = CHARSET.search(header)
    encoding = charset[1] if charset else "utf-8"
    try:
        b"text".decode(encoding, "replace")
    except (LookupError, ValueError):
        raise Damaged(f"its encoding {encoding!r} is unknown") from None
    form = _plural_forms(header)
    messages: dict[tuple[str, str], str] = {}
    unreadable = 0
    for key, value in entries:
        try:
            text, translation = key.decode(encoding), value.decode(encoding)
        except (UnicodeError, ValueError):
            unreadable += 1
            continue
        context, _, text = text.rpartition("\x04")
        if not text:
            continue  # the header
        singular, *plural = text.split("\0")
        forms = translation.split("\0")
        if not plural:
            messages[context, singular] = forms[0]
            continue
        try:
            numbered = {singular: form(ONE), plural[0]: form(MANY)}
        except (ValueError, ArithmeticError, RecursionError):
            unreadable += 1
            continue
        for english, number in numbered.items():
            if 0 <= number < len(forms):
                messages.setdefault((context, english), forms[number])
    return Catalog(language, domain, messages, unreadable)


def _entries(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    for order in "<>":
        if len(data) >= 20 and struct.unpack_from(f"{order}I", data)[0] == MAGIC:
            break
    else:
        raise Damaged("it does not begin as a catalog does")
    _, revision, count, keys, values = struct.unpack_from(f"{order}5I", data)
    if revision >> 16 not in (0, 1):
        raise Damaged(f"its format has the unknown number {revision >> 16}")
    if max(keys, values) + 8 * count > len(data):
        raise Damaged("it is cut off")
    for number in range(count):
        texts = []
        for table in (keys, values):
            length, start = struct.unpack_from(f"{order}2I", data, table + 8 * number)
            if start + length > len(data):
                raise Damaged("it is cut off")
            texts.append(data[start : start + length])
        yield texts[0], texts[1]


def _plural_forms(header: str) -> Callable[[int], int]:
    """Which of the translation's forms is for a number, by the catalog's own rule or, without one, as in English."""
    rule = PLURAL.search(header)
    try:
        return gettext.c2py(rule[1]) if rule else _as_in_english
    except (ValueError, RecursionError):
        return _as_in_english


def _as_in_english(number: int) -> int:
    return int(number != 1)


def catalogs_in(package: Path, wanted: Callable[[str], bool]) -> Iterator[Catalog | Damaged]:
    """The catalogs of a .deb whose language is wanted. A damaged one is given as the error that says what is wrong."""
    with subprocess.Popen(
        ["dpkg-deb", "--fsys-tarfile", str(package)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as unpacking:
        assert unpacking.stdout is not None
        try:
            yield from _catalogs_in_archive(unpacking.stdout, wanted)
            while unpacking.stdout.read(1 << 16):  # what tar writes behind its end
                pass
        except (tarfile.TarError, EOFError, OSError) as error:
            yield Damaged(f"{package.name}: {error}")
        except BaseException:
            unpacking.terminate()
            raise


def _catalogs_in_archive(stream: IO[bytes], wanted: Callable[[str], bool]) -> Iterator[Catalog | Damaged]:
    with tarfile.open(fileobj=stream, mode="r|") as archive:
        for member in archive:
            place = IN_PACKAGE.search(member.name)
            if not place or not member.isfile() or not wanted(place[1]):
                continue
            if member.size > LARGEST:
                yield Damaged(f"{member.name}: it has {member.size:,} bytes")
                continue
            content = archive.extractfile(member)
            assert content is not None
            try:
                yield read_catalog(content.read(), place[1], place[2])
            except Damaged as error:
                yield Damaged(f"{member.name}: {error}")
