"""Plain text, line by line."""

from pathlib import Path

import pytest

from pointing.documents.document import Fill
from pointing.documents.plain import PlainText
from pointing.errors import Misuse


def test_lines_are_replaced_and_all_else_stays():
    data = b"\xef\xbb\xbfa\r\n\r\n  b \n \nc"
    document = PlainText(Path("a.txt"), data)
    assert [(unit.line, unit.sources[0]) for unit in document.units] == [(1, "a"), (3, "  b "), (5, "c")]
    assert document.written({0: Fill(("A",)), 2: Fill(("CC",))}, True) == b"\xef\xbb\xbfA\r\n\r\n  b \n \nCC"


def test_other_encodings_are_told():
    with pytest.raises(Misuse, match=r"a.txt:2: not utf-8, as text files are read \(see --encoding\)"):
        PlainText(Path("a.txt"), b"a\n\xe9\n")
    document = PlainText(Path("a.txt"), b"\xe9\n", "latin-1")
    assert document.units[0].sources == ("é",)
    with pytest.raises(Misuse, match="no encoding 'hex'"):
        PlainText(Path("a.txt"), b"a", "hex")
