"""Files that were damaged at random are refused, or only what is filled changes: nothing else is lost."""

import random
from pathlib import Path

import polib
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pointing.documents.columns import Wanted
from pointing.documents.document import Fill
from pointing.documents.kinds import Reading, open_document
from pointing.documents.po_lines import escape, string_lines, unescape
from pointing.errors import Misuse

HOW = Reading("fr", Wanted())
XLIFF = """<?xml version="1.0"?>
<xliff version="VERSION" xmlns="urn:x" trgLang="fr"><file target-language="fr">
<!-- c --><UNIT id="1"><source>a <g id="1">b<x id="2"/></g> é</source></UNIT>
<UNIT id="2"><source>c &amp; d</source> <target state="new">e</target></UNIT></file></xliff>
"""
FILES = {
    "a.po": 'msgid ""\nmsgstr ""\n"Language: fr\\n"\n"Content-Type: text/plain; charset=UTF-8\\n"\n'
    '"Plural-Forms: nplurals=2; plural=(n > 1);\\n"\n\n# x\n#: a.c:1\n#, c-format\nmsgid "%d file"\n'
    'msgid_plural "%d files"\nmsgstr[0] ""\nmsgstr[1] ""\n\n#, fuzzy\n#| msgid "z"\nmsgctxt "m"\nmsgid "q\\n"\n'
    'msgstr ""\n"x\\n"\n\n#~ msgid "o"\n#~ msgstr "p"\n',
    "a.xlf": XLIFF.replace("VERSION", "1.2").replace("UNIT", "trans-unit"),
    "b.xlf": XLIFF.replace("VERSION", "2.1").replace("UNIT", "segment"),
    "a.csv": 'id,source,target\n1,"a ""q"", b",\n2,c,d\n3,e\n',
    "a.tsv": "source\ttarget\na\t\nb\tc\n",
    "a.jsonl": '{"source":"a","target":""}\n{"source": "b\\u00e9", "x":[1,{"a":null}]}\n',
}
PIECES = [
    '"',
    "\\",
    "\n",
    "\r",
    "msgid",
    "msgstr",
    "#~ ",
    "#,",
    "<",
    ">",
    "</g>",
    "&",
    "{",
    "}",
    ",",
    "\t",
    "é",
    "\u2028",
]
PIECES += [
    "\x0b",
    "<!--",
    "-->",
    "<![CDATA[",
    "]]>",
    "source",
    '""',
    '"a"',
    "</target>",
    "<source>",
    "</source>",
    "\ufeff",
]


def damaged(text, rng):
    for _ in range(rng.randint(1, 4)):
        at, other, length = rng.randrange(len(text) + 1), rng.randrange(len(text) + 1), rng.randint(1, 30)
        kind = rng.choice(["insert", "insert", "remove", "repeat"])
        piece = rng.choice(PIECES) if kind == "insert" else text[other : other + length] if kind == "repeat" else ""
        text = text[:at] + piece + text[at + (length % 8 if kind == "remove" else 0) :]
    return text.encode()


@pytest.mark.parametrize("name", FILES)
def test_damaged_files_lose_nothing_more(name, tmp_path):
    rng, path, readable = random.Random(name), tmp_path / name, 0
    for _ in range(300):
        path.write_bytes(damaged(FILES[name], rng))
        try:
            before = open_document(path, HOW)
        except Misuse:
            continue
        readable += 1
        assert before.written({}, True) == path.read_bytes()
        usable = [unit for unit in before.units if unit.state != "locked" and not unit.trouble and rng.random() < 0.6]
        fills = {unit.number: Fill(('N "x" <é> \\',) * len(unit.sources), "c") for unit in usable}
        path.write_bytes(before.written(fills, True))
        after = open_document(path, HOW)
        assert len(after.units) == len(before.units)
        for old, new in zip(before.units, after.units, strict=True):
            assert (new.sources, new.context) == (old.sources, old.context)
            expected = fills[old.number].texts if old.number in fills else old.targets
            assert new.targets == expected
    assert readable >= 10


TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=200)


@given(TEXT, st.booleans())
def test_a_string_is_read_as_it_was_written(text, wrap):
    assert unescape(escape(text)) == text
    lines = string_lines("msgstr", text, wrap)
    assert unescape("".join(line.removeprefix("msgstr ")[1:-1] for line in lines)) == text


@given(st.text('ab \n\t"\\é世', min_size=1, max_size=120))
def test_polib_reads_what_we_write(text):
    lines = ['msgid "a"', *string_lines("msgstr", text, True), ""]
    assert polib.pofile("\n".join(lines))[0].msgstr == text


def test_a_folder_and_a_device_are_refused(tmp_path):
    (tmp_path / "a.po").mkdir()
    (tmp_path / "b.po").symlink_to("/dev/zero")
    (tmp_path / "c.po").symlink_to("c.po")
    for name, message in [("a.po", "a folder"), ("b.po", "a pipe or a device"), ("c.po", "cannot be read")]:
        with pytest.raises(Misuse, match=message):
            open_document(tmp_path / name, HOW)
    with pytest.raises(Misuse, match="cannot be read"):
        open_document(Path("a\0.po"), HOW)
