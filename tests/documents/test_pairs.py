"""Files with both sides as pairs to learn from: nothing is lost without being counted, whatever is in the file."""

import codecs
import gzip
import json
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pointing.documents import pairs
from pointing.documents.columns import Wanted
from pointing.documents.message import pieces
from pointing.documents.pairs import is_data, is_table, read_pairs
from pointing.errors import Misuse
from pointing.text.protected import PRESETS, Protector


def read(folder, content, name="t.csv", source=None, target=None, key=None, languages=("en", "fr")):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_pairs(path, Wanted(source, target, languages), key)


def texts(found):
    return [(pair.source, pair.target) for pair in found.pairs]


def test_a_table_by_hand(tmp_path):
    found = read(tmp_path, "key,en,fr,note\nk1,Open file,Ouvrir,\nk2,Close,,x\nk1,,Fermer,\nk3,Save as,Enregistrer,\n")
    assert found.pairs == [(2, "Open file", "Ouvrir", None), (5, "Save as", "Enregistrer", None)]
    assert found.left_out == {"no translation": 1, "no source": 1}
    assert found.first_left_out == {"no translation": 3, "no source": 4}
    assert found.languages == ("en", "fr")
    assert found.notes == [f"{tmp_path}/t.csv: source column 'en', target column 'fr' (by data.languages, en and fr)"]


def test_keys_come_along_and_an_empty_one_is_none(tmp_path):
    table = "key,en,fr\nk1,a,b\n,c,d\n"
    assert [pair.key for pair in read(tmp_path, table, key="key").pairs] == ["k1", None]
    objects = '{"id": 7, "en": "a", "fr": "b"}\n{"id": "", "en": "c", "fr": "d"}\n{"en": "e", "fr": "f"}\n'
    assert [pair.key for pair in read(tmp_path, objects, "t.jsonl", key="id").pairs] == ["7", None, None]


@pytest.mark.parametrize(
    "content",
    [
        b"en;fr\nHello, you;Salut\n",
        b"en\tfr\nHello, you\tSalut\n",
        b'"en","fr"\r\n"Hello, you","Salut"\r\n',
        b'en,fr\r"Hello, you",Salut\r',
        codecs.BOM_UTF8 + b'en,fr\n"Hello, you",Salut',
        codecs.BOM_UTF16_LE + "en;fr\r\nHello, you;Salut\r\n".encode("utf-16-le"),
        codecs.BOM_UTF16_BE + "en;fr\r\nHello, you;Salut\r\n".encode("utf-16-be"),
        b"\n\nen;fr\n;\n\nHello, you;Salut\n\n",
    ],
)
def test_tables_are_written_in_many_ways(tmp_path, content):
    found = read(tmp_path, content)
    assert texts(found) == [("Hello, you", "Salut")]
    assert not found.left_out


def test_delimiters_that_all_lines_agree_about(tmp_path):
    found = read(tmp_path, "Hello, dear, you;Salut\nWell, done;Bravo\nGo;Va\n")
    assert texts(found) == [("Hello, dear, you", "Salut"), ("Well, done", "Bravo"), ("Go", "Va")]


def test_cells_with_quotes_and_line_ends(tmp_path):
    table = 'en,fr\n"say ""hi"", you","dis « hi »"\n"one\ntwo","un\r\ndeux"\n"three\nfour",trois\nfive,"cinq\nsix"\n'
    found = read(tmp_path, table)
    assert texts(found) == [('say "hi", you', "dis « hi »"), ("one", "un"), ("two", "deux")]
    assert [pair.line for pair in found.pairs] == [2, 3, 3]
    assert found.left_out == {"lines that do not match": 2}
    assert found.first_left_out == {"lines that do not match": 6}  # the row before goes over three lines


def test_rows_of_other_lengths_are_counted_not_shifted(tmp_path):
    found = read(tmp_path, "en,fr\nhello, you,salut\nyes,oui,,\nno\n")
    assert texts(found) == [("yes", "oui")]
    assert found.left_out == {"more cells than there are columns": 1, "no translation": 1}


def test_no_break_spaces_are_part_of_the_text(tmp_path):
    found = read(tmp_path, "en,fr\nReally?,Vraiment\u202f?\nName:,Nom\u00a0:\nfar  away,très\u2003loin\n")
    assert texts(found) == [("Really?", "Vraiment\u202f?"), ("Name:", "Nom\u00a0:"), ("far away", "très loin")]


def test_lines_columns_and_accelerators_are_taken_apart(tmp_path):
    table = 'en,fr\n_Open,_Ouvrir\n"-h, --help  show help\n%s","-h, --help  montrer l\'aide\n%s"\nR&D,R&D\n%d%%,%d %%\n'
    found = read(tmp_path, table)
    assert texts(found) == [("Open", "Ouvrir"), ("show help", "montrer l'aide"), ("R&D", "R&D")]
    assert found.left_out == {"no word": 1}


PROTECTOR = Protector(PRESETS["software"])
SPANS = ["%s", "% of", "{name}", "{{ x }}", "<b>", "<a href='x y'>", "--help", "a@b.org", "$HOME", "C:\\Program"]
WORDS = ["file", "é", "_Open", "E&xit", "~x", "1.2.3", "Ctrl+Q", "\u00a0:", "...", "日本", "Files"]
TEXT = st.lists(st.sampled_from(SPANS + WORDS) | st.text(max_size=4))


@given(TEXT, st.sampled_from([" ", "  ", "\n", ""]))
def test_the_quick_way_to_parts_is_the_same(words, space):
    text = space.join(words).strip()
    slow = [piece.core for piece in pieces(text, PROTECTOR, accelerators=True) if piece.is_asked]
    assert pairs._parts(text, PROTECTOR) == slow


def test_text_with_tabs(tmp_path):
    found = read(tmp_path, "Good morning\tBonjour\nA cat\tUn chat\n\n", "t.txt")
    assert [(pair.line, pair.source) for pair in found.pairs] == [(1, "Good morning"), (2, "A cat")]
    assert "the first row is taken for data" in found.notes[0]
    with pytest.raises(Misuse, match=r"t\.txt:2: this text has no tab between source and translation: give two files"):
        read(tmp_path, "\nGood morning\n", "t.txt")
    assert texts(read(tmp_path, '"a\tb\n', "t.tsv")) == [('"a', "b")]


def test_our_special_tokens_are_text(tmp_path):
    tokens = ["<unk>", "</s>", "‹end›", "@ENTITY1", "￨", "▁a", "##b"]
    found = read(tmp_path, "source\ttarget\n" + "".join(f"a {token} b\tc {token} d\n" for token in tokens), "t.tsv")
    assert texts(found) == [(f"a {token} b", f"c {token} d") for token in tokens]


def test_a_cell_of_100_000_tokens(tmp_path):
    found = read(tmp_path, f"en,fr\n{'word ' * 100_000},mot\n")
    assert len(found.pairs) == 1
    assert len(found.pairs[0].source) == 5 * 100_000 - 1


CELL = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12) | st.sampled_from(
    ["", " ", "a\nb", '"', "a,b", "Open", "\u00a0", "%s", "\r\n", "\ufeff", "x  y"]
)


@given(st.lists(st.tuples(CELL, CELL, CELL)))
def test_every_row_gives_pairs_or_is_counted(tmp_path_factory, rows):
    folder = tmp_path_factory.mktemp("rows")

    def quoted(cell):
        doubled = cell.replace('"', '""')
        return f'"{doubled}"'

    table = "\n".join([",".join(map(quoted, row)) for row in [("en", "note", "fr"), *rows]])
    found = read(folder, table)
    with_text = sum(any(row) for row in rows)
    assert len({pair.line for pair in found.pairs}) + sum(found.left_out.values()) == with_text
    assert all(pair.source and pair.target for pair in found.pairs)
    assert not any(set("\r\n\t\0\x85\u2028") & set(pair.source + pair.target) for pair in found.pairs)
    lines = "".join(json.dumps(dict(zip(("en", "note", "fr"), row, strict=True))) + "\n" for row in rows)
    same = read(folder, lines, "t.jsonl")
    assert texts(same) == texts(found)
    assert sum((same.left_out - found.left_out).values()) == len(rows) - with_text  # of rows that a table leaves empty


@given(st.lists(st.tuples(CELL.filter(str.strip), CELL.filter(str.strip))))
def test_letters_are_never_lost(tmp_path_factory, rows):
    lines = "".join(json.dumps({"source": source, "target": target}) + "\n" for source, target in rows)
    found = read(tmp_path_factory.mktemp("letters"), lines, "t.jsonl")
    left_out = set(range(1, len(rows) + 1)) - {pair.line for pair in found.pairs}
    assert len(left_out) == sum(found.left_out.values())
    wanted = Counter(c for n, (source, _) in enumerate(rows, 1) if n not in left_out for c in source if c.isalpha())
    marked = any(set("_&~%<{\\") & set(source + target) for source, target in rows)  # accelerators, protected spans
    assert marked or Counter(c for pair in found.pairs for c in pair.source if c.isalpha()) == wanted


def test_json_lines_by_hand(tmp_path):
    lines = [
        {"id": 1, "translation": {"en": "Open file", "fr": "Ouvrir"}},
        {"translation": {"en": "Close", "fr": None}},
        {"translation": {"en": ["Save"], "fr": "Enregistrer"}},
        {"translation": {"fr": "Quitter"}},
        {"translation": "no object"},
        {},
        {"translation": {"en": "half \ud800", "fr": "demi"}},
        {"translation": {"en": "nul \0", "fr": "nul"}},
        {"translation": {"en": {"deep": "x"}, "fr": "y"}},
    ]
    found = read(tmp_path, "\ufeff" + "\r\n\r\n".join(map(json.dumps, lines)), "t.jsonl")
    assert [(pair.line, pair.source, pair.target) for pair in found.pairs] == [(1, "Open file", "Ouvrir")]
    assert found.left_out == {
        "no translation": 1,
        "a value that is no text": 2,
        "no source": 3,
        "half a character (a lone surrogate)": 1,
        "a NUL character": 1,
    }
    assert found.first_left_out["a value that is no text"] == 5
    assert found.languages == ("en", "fr")


PO = r"""msgid ""
msgstr ""
"Content-Type: text/plain; charset=UTF-8\n"
"Language: fr\n"
"Plural-Forms: nplurals=2; plural=(n > 1);\n"

msgid "Open"
msgstr "Ouvrir"

msgctxt "menu"
msgid "Open"
msgstr "Ouverture"

#, fuzzy
msgid "Close"
msgstr "Ferme"

msgid "%d file"
msgid_plural "%d files"
msgstr[0] "%d fichier"
msgstr[1] "%d fichiers"

msgid "one line\n"
"two lines\n"
msgstr "une ligne\n"
"deux lignes\n"

msgid "Quit"
msgstr ""

msgid "caf\303\251"
msgstr "x"

#~ msgid "Old"
#~ msgstr "Vieux"
"""


@pytest.mark.parametrize("name", ["t.po", "t.po.gz", "t.pot"])
def test_po_entries_by_hand(tmp_path, name):
    found = read(tmp_path, gzip.compress(PO.encode()) if name.endswith(".gz") else PO, name)
    assert texts(found) == [
        ("Open", "Ouvrir"),
        ("Open", "Ouverture"),
        ("%d file", "%d fichier"),
        ("%d files", "%d fichiers"),
        ("one line", "une ligne"),
        ("two lines", "deux lignes"),
    ]
    trouble = "trouble: has bytes written as numbers, which may be part of a character"
    assert found.left_out == {"a fuzzy mark": 1, "no translation": 1, trouble: 1}
    assert found.first_left_out["a fuzzy mark"] == 15
    assert found.languages == (None, "fr")


def test_plurals_that_cannot_be_told_apart_are_counted(tmp_path):
    po = PO.replace("nplurals=2; plural=(n > 1)", "nplurals=x").replace('"Language: fr\\n"\n', "")
    found = read(tmp_path, po, "t.po", languages=("en", "xx"))
    assert ("%d file", "%d fichier") not in texts(found)
    assert sum("Plural-Forms" in reason for reason in found.left_out) == 1


XLIFF = """<?xml version="1.0" encoding="utf-8"?>
<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">
<file source-language="en" target-language="de" original="x" datatype="plaintext"><body>
<trans-unit id="1"><source>Open <g id="1">this</g></source><target>Das <g id="1">hier</g> öffnen</target></trans-unit>
<trans-unit id="2"><source>Close</source></trans-unit>
<trans-unit id="3"><source>Save</source><target state="needs-review-translation">Sichern</target></trans-unit>
</body></file></xliff>
"""


@pytest.mark.parametrize("name", ["t.xlf", "t.xliff.gz"])
def test_xliff_units_by_hand(tmp_path, name):
    found = read(tmp_path, gzip.compress(XLIFF.encode()) if name.endswith(".gz") else XLIFF, name)
    assert texts(found) == [('Open <g id="1">this</g>', 'Das <g id="1">hier</g> öffnen')]
    assert found.left_out == {"no translation": 1, "a fuzzy mark": 1}
    assert found.languages == (None, "de")


def test_gzip_files_of_several_members_are_read_whole(tmp_path):
    parts = [b"en,fr\nOpen file,Ouvrir\n", b"Save as,Enregistrer\n", b"", b"Close,Fermer\n"]
    found = read(tmp_path, b"".join(map(gzip.compress, parts)), "t.csv.gz")
    assert [pair.source for pair in found.pairs] == ["Open file", "Save as", "Close"]
    assert read(tmp_path, gzip.compress(b"en,fr\na,b\n"), "t.CSV.GZ").pairs


def test_a_gzip_file_that_is_cut_off_is_refused_at_any_place(tmp_path):
    whole = gzip.compress(b"en,fr\n" + b"".join(f"word {n},mot {n}\n".encode() for n in range(300)))
    for end in (1, 5, 11, len(whole) // 2, len(whole) - 9, len(whole) - 8, len(whole) - 4, len(whole) - 1):
        with pytest.raises(Misuse, match=r"t\.csv\.gz: this is not a whole gzip file"):
            read(tmp_path, whole[:end], "t.csv.gz")
    with pytest.raises(Misuse, match="this is not a whole gzip file"):
        read(tmp_path, whole + b"garbage", "t.csv.gz")
    with pytest.raises(Misuse, match="this is not a whole gzip file"):
        read(tmp_path, b"en,fr\na,b\n", "t.csv.gz")


def test_a_gzip_file_that_unpacks_to_too_much_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(pairs, "LARGEST", 30_000)
    with pytest.raises(Misuse, match="unpacked, this file has more than 30,000 bytes"):
        read(tmp_path, gzip.compress(b"en,fr\n" + b"a,b\n" * 8_000), "t.csv.gz")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        *[("t.csv", text) for text in ("", "\n\n", "en,fr\n", "en,fr", ",\n,\n")],
        *[("t.csv.gz", content) for content in (b"", gzip.compress(b"", mtime=0))],
        *[("t.jsonl", text) for text in ("", "\n \n")],
        *[("t.txt", ""), ("t.po", "")],
    ],
)
def test_empty_files_have_no_pairs_and_say_so(tmp_path, name, content):
    found = read(tmp_path, content, name)
    assert found.pairs == []
    assert found.emptiness == "there is no pair to learn from: it is empty"


def test_a_file_without_pairs_says_why():
    found = pairs.PairsOfFile(Path("x"))
    found.leave_out("no source", 1_200)
    found.leave_out("no source", 1_300)
    found.leave_out("no word", 7)
    reasons = "2 have no source (first on line 1,200), 1 have no word (first on line 7)"
    assert found.emptiness == f"there is no pair to learn from: {reasons}"


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.csv", b"en,fr\na,\xff\n", r"t\.csv:2: not utf-8, as tables are read: save it as UTF-8 \(byte 9"),
        ("t.csv", "en,fr\na,b\n".encode("utf-16-le"), r"t\.csv:1: there is a NUL character: this is no text file"),
        ("t.csv", b"en,fr\na,b\0\n", r"t\.csv:2: there is a NUL"),
        ("t.csv", b"\xff\xfee", r"t\.csv:1: not utf-8"),
        ("t.csv", b'en,fr\na,b\n"c,d\n', r"t\.csv:3: a quoted field has no end"),
        ("t.csv", b'en,fr\n"c"x,d\n', r"t\.csv:2: a quoted field goes on after its closing quotation mark"),
        ("t.csv", b"source\na\n", r"t\.csv: there is only one column"),
        ("t.jsonl", b'{"en": "a", "fr": "b"}\n{"en": \n', r"t\.jsonl:2: this line is no JSON: Expecting value"),
        ("t.jsonl", b"\n[1, 2]\n", r"t\.jsonl:2: this line is JSON, but no object"),
        ("t.jsonl", b"[" * 100_000, r"t\.jsonl:1: this line is no JSON"),
        ("t.jsonl", b'{"en": "a"}\n', r"t\.jsonl: there is only one column"),
        ("t.json", b"[]", r"t\.json: files named \*\.json cannot be read: write one object a line"),
        ("t.xlsx", b"PK", r"t\.xlsx: files named \*\.xlsx cannot be read: save the table as CSV"),
        ("t.po", b'msgid "a"\nmsgstr "b\n', r"t\.po:2: "),
        ("t.xlf", b"<xliff>", r"t\.xlf:1: this is no XML"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_line(tmp_path, name, content, message):
    with pytest.raises(Misuse, match=message) as error:
        read(tmp_path, content, name)
    assert "\n" not in str(error.value)


def test_files_without_columns_take_none(tmp_path):
    for told in ({"key": "x"}, {"source": "x"}, {"target": "x"}):
        with pytest.raises(Misuse, match=r"t\.po: there are no columns in this file"):
            read(tmp_path, PO, "t.po", **told)


def test_folders_and_missing_files_are_refused(tmp_path):
    (tmp_path / "x.csv").mkdir()
    with pytest.raises(Misuse, match=r"x\.csv: this is a folder: give a file"):
        read_pairs(tmp_path / "x.csv", Wanted())
    with pytest.raises(Misuse, match=r"y\.csv\.gz: there is no such file"):
        read_pairs(tmp_path / "y.csv.gz", Wanted())


def test_names_say_what_a_file_is():
    tables = ["a.csv", "A.TSV", "b.tab.gz", "c.jsonl", "d.po.GZ", "e.xliff"]
    assert [name for name in [*tables, "a.txt", "a.en", "a.yaml", "csv", "a.gz"] if is_table(Path(name))] == tables
    data = ["a.csv.gz", "b.txt", "b.txt.gz", "c.xlsx"]
    assert [name for name in [*data, "a.yaml", "a.json", "train.en"] if is_data(Path(name))] == data
