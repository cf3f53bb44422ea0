"""CSV, TSV and JSON lines: columns found, fields filled, all else as it was."""

from pathlib import Path

import pytest

from pointing.documents.columns import Wanted, choose_columns
from pointing.documents.document import Fill
from pointing.documents.json_lines import JsonLines
from pointing.documents.tables import DelimitedTable
from pointing.errors import Misuse


def table(text, name="t.csv", source=None, target=None, **options):
    data = text if isinstance(text, bytes) else text.encode()
    return DelimitedTable(Path(name), data, Wanted(source, target), **options)


def json_lines(text, source=None, target=None):
    return JsonLines(Path("t.jsonl"), text.encode(), Wanted(source, target))


def capitals(document):
    fills = {unit.number: Fill((unit.sources[0].upper(),)) for unit in document.units if unit.state == "empty"}
    return document.written(fills, True).decode()


def test_only_empty_fields_change():
    text = 'id,source,target,"note"\r\n1,"a, ""b""",,"x"\r\n\r\n2,c,done, y \r\n3,"two\nlines","",z\r\n'
    document = table(text)
    assert [unit.sources[0] for unit in document.units] == ['a, "b"', "c", "two\nlines"]
    assert [unit.line for unit in document.units] == [2, 4, 5]
    assert capitals(document) == text.replace('""",,', '""","A, ""B""",').replace('lines","",', 'lines","TWO\nLINES",')
    assert document.notes == ["t.csv: source column 'source', target column 'target' (guessed from the header)"]


@pytest.mark.parametrize(
    ("header", "source", "target", "columns"),
    [
        ("id,msgid,msgstr", None, None, ("msgid", "msgstr")),
        ("id,EN,fr,de", None, None, ("EN", "fr")),
        ("Text,Übersetzung", None, None, ("Text", "Übersetzung")),
        ("a,b,c", "c", "a", ("c", "a")),
        ("a,b,c", "c", "new", ("c", "new")),
        ("a", None, None, ("a", "fr")),
        ("a,b", "b", None, ("b", "a")),
    ],
)
def test_columns_are_found(header, source, target, columns):
    names = header.split(",")
    document = table(
        f"{header}\n" + ",".join("x" if name == columns[0] else "" for name in names) + "\n", "t.csv", source, target
    )
    assert names[document.source] == columns[0]
    assert [unit.sources[0] for unit in document.units] == ["x"]
    assert capitals(document).split("\n")[1].split(",")[([*names, columns[1]]).index(columns[1])] == "X"


@pytest.mark.parametrize(
    ("header", "source", "target", "message"),
    [
        ("a,b,c", None, None, "not clear: give --source-column and --target-column; there are: 'a', 'b', 'c'"),
        ("a,b,c", "a", None, "give --target-column"),
        ("a,b,c", "x", "b", "there is no column 'x'"),
        ("a,b,c", "a", "a", "are the same"),
        ("a,a,c", "c", "a", "there are 2 columns 'a'"),
        ("a,b,c", "0", "2", "numbered from 1 to 3"),
        ("a,b,c", "9", "2", "numbered from 1 to 3"),
    ],
)
def test_columns_that_are_not_clear_are_asked_for(header, source, target, message):
    with pytest.raises(Misuse, match=message):
        table(f"{header}\n1,2,3\n", "t.csv", source, target)


def test_numbers_mean_that_there_is_no_header():
    document = table("a,\nb,c\nd\n", source="1", target="2")
    assert capitals(document) == "a,A\nb,c\nd,D\n"


def test_a_new_column_is_added_to_every_row():
    assert capitals(table("k;a\n1;x\n2;\n3;y;z\n", source="a", target="fr")) == "k;a;fr\n1;x;X\n2;;\n3;y;z\n"


def test_tsv_has_no_quotation_marks():
    text = 'source\ttarget\n"a\t\nb"c\td\n'
    assert capitals(table(text, "t.tsv")) == 'source\ttarget\n"a\t"A\nb"c\td\n'
    document = table(text, "t.tsv")
    assert "tab" in document.problem(document.units[0], "a\tb")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('source,target\n"a,b\nc\n', "t.csv:2: a quoted field has no end"),
        ('source,target\n"a"b,c\n', "t.csv:2: a quoted field goes on"),
        (b"source,target\n\xff,\n", r"t.csv:2: not utf-8, as tables are read \(see --encoding\)"),
        (b"source,target\na\0,\n", "t.csv:2: there is a NUL"),
    ],
)
def test_a_broken_table_is_refused_with_its_line(text, message):
    with pytest.raises(Misuse, match=message):
        table(text)


def test_encodings_and_marks_are_kept():
    document = table("source;target\né;\n".encode("latin-1"), encoding="latin-1")
    assert document.written({0: Fill(("É",))}, True) == "source;target\né;É\n".encode("latin-1")
    assert document.problem(document.units[0], "œ") == "has characters that latin-1 lacks"
    excel = b"\xff\xfe" + "source\ttarget\nа\t\n".encode("utf-16-le")
    assert table(excel, "t.tsv").written({0: Fill(("А",))}, True) == excel[:-2] + "А\n".encode("utf-16-le")
    mark = b"\xef\xbb\xbfsource,target\na,\n"
    assert table(mark).written({0: Fill(("A",))}, True) == mark[:-1] + b"A\n"


def test_empty_tables_have_no_units():
    for text in ("", "\n\n", "source,target\n", "source,target"):
        assert capitals(table(text)) == text


def test_json_lines_keep_their_form():
    text = '{"id": 1,"source":"a", "target" : "" }\r\n\n'
    text += '{ "source": "\\u00e9", "x": {"target": "y"}}\n{"source": "ü", "target": null}'
    document = json_lines(text)
    assert [unit.line for unit in document.units] == [1, 3, 4]
    assert capitals(document) == (
        '{"id": 1,"source":"a", "target" : "A" }\r\n\n'
        '{ "source": "\\u00e9", "x": {"target": "y"}, "target": "\\u00c9"}\n{"source": "ü", "target": "Ü"}'
    )


def test_json_that_is_no_text_is_left():
    document = json_lines('{"source": "a", "target": ""}\n{"source": 5, "target": ""}\n{"target": "x"}\n')
    assert [unit.state for unit in document.units] == ["empty", "locked", "translated"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"source": "a"}\n{"source": \n', "t.jsonl:2: this line is no JSON"),
        ("[1]\n", "t.jsonl:1: this line is JSON, but no object"),
        ("[" * 100_000, "t.jsonl:1: this line is no JSON"),
        ('{"a": "x", "b": "y", "c": "z"}\n', "not clear: give --source-column"),
    ],
)
def test_broken_json_is_refused_with_its_line(text, message):
    with pytest.raises(Misuse, match=message):
        json_lines(text)


@pytest.mark.parametrize("header", ["ID,Text (DE),Text (EN)", "id,German,English", "id,de_DE,en_US"])
def test_columns_are_known_by_the_names_of_the_runs_languages(header):
    names = header.split(",")
    columns = choose_columns(names, Wanted(languages=("en", "de")), Path("t.csv"))
    assert (columns.source, columns.target) == (names[2], names[1])


def test_a_missing_column_of_the_runs_language_is_new():
    columns = choose_columns(["ID", "Screen", "Text (EN)"], Wanted(languages=("en", "de")), Path("t.csv"))
    assert (columns.source, columns.target) == ("Text (EN)", "de")


@pytest.mark.parametrize(
    ("line", "written"),
    [
        ('{"key": "a", "text": {"en": "Hello", "es": ""}}', '{"key": "a", "text": {"en": "Hello", "es": "Hola"}}'),
        (
            '{"key": "a", "text": {"en": "Hello"}, "note": null}',
            '{"key": "a", "text": {"en": "Hello", "es": "Hola"}, "note": null}',
        ),
        ('{"text": {"es": null, "en": "Hello"}}', '{"text": {"es": "Hola", "en": "Hello"}}'),
    ],
)
def test_members_of_objects_inside_are_filled(line, written):
    document = JsonLines(Path("t.jsonl"), f"{line}\n".encode(), Wanted(languages=("en", "es")))
    assert (document.source, document.target) == ("text.en", "text.es")
    assert [unit.sources for unit in document.units] == [("Hello",)]
    assert document.written({0: Fill(("Hola",))}, fuzzy=False).decode() == f"{written}\n"


def test_a_line_without_the_object_to_write_into_is_left_alone():
    lines = b'{"text": {"en": "Hello", "es": ""}}\n{"text": "Hello"}\n'
    document = JsonLines(Path("t.jsonl"), lines, Wanted("text.en", "text.es"))
    assert document.units[1].state == "locked"
