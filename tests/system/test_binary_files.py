"""What is not text is told from text with odd bytes in it."""

import gzip
import random
import struct

import pytest

from pointing.errors import Misuse
from pointing.system.binary_files import check_is_text

NOISE = random.Random(1).randbytes(5000)
HEADER = b'{"weight":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]}}' + b" " * 9000


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\n",
        b"the cat\n",
        "le chat a été vu à Zürich, 猫が見た\n".encode() * 500,
        b"\xef\xbb\xbfthe cat\n",
        b"the\x00cat\x07 saw\x1b[31m a house\n",  # a stray NUL, a bell, a colour
        b"\x00\n",
        b"\xe9t\xe9\n",  # a short line of Latin-1
        "un café très fréquenté à côté de l'hôtel\n".encode("latin-1") * 200,
        b"the cat\n" * 1000 + b"\xff\xfe\x00" * 10,
        b"a" * 8190 + "猫".encode() * 10,  # cut inside of a character
    ],
)
def test_text_with_odd_bytes_is_text(tmp_path, content):
    (tmp_path / "x").write_bytes(content)
    check_is_text(tmp_path / "x")
    with gzip.open(tmp_path / "x.gz", "wb") as file:
        file.write(content)
    check_is_text(tmp_path / "x.gz")


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (NOISE, ""),
        (struct.pack("<Q", len(HEADER)) + HEADER + bytes(16), ""),  # safetensors: hardly anything but the NULs is odd
        (b"the cat\n" * 100 + bytes(4), ""),
        (b"\x7fELF\x02\x01\x01" + bytes(9), "; it looks like a program"),
        (gzip.compress(NOISE), "; it looks like a gzip file: its name must end in .gz"),
        ("the cat\n".encode("utf-16"), "; it looks like UTF-16: convert it with iconv -f UTF-16 -t UTF-8"),
        ("кошка увидела дом\n".encode("koi8-r") * 20, ""),
    ],
)
def test_what_is_not_text_is_refused(tmp_path, content, kind):
    for path in (tmp_path / "x", tmp_path / "x.gz"):
        path.write_bytes(content if path.suffix != ".gz" else gzip.compress(content))
        with pytest.raises(Misuse) as refused:
            check_is_text(path)
        assert str(refused.value) == f"{path}: this is not text in UTF-8{kind}"


def test_what_cannot_be_read_is_left_to_those_who_read_it(tmp_path):
    (tmp_path / "cut.gz").write_bytes(gzip.compress(NOISE)[:100])
    for path in (tmp_path, tmp_path / "nothing", tmp_path / "cut.gz"):
        check_is_text(path)
