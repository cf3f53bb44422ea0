"""Columns of tables to learn from: told, known by their names or by what is in them; or asked for."""

from pathlib import Path

import pytest

from pointing.documents.columns import Wanted
from pointing.documents.filled_columns import choose_filled_columns
from pointing.errors import Misuse

ROWS = ["1,open the file,ouvrir le fichier,done", "2,close it,le fermer,done", "3,x,y,done"]


def choose(header, source=None, target=None, key=None, languages=("en", "fr"), rows=ROWS, **options):
    lines = ([header] if header is not None else []) + list(rows)
    table = [line.split(",") for line in lines]
    return choose_filled_columns(table, Wanted(source, target, languages), key, Path("t.csv"), **options)


@pytest.mark.parametrize(
    ("header", "languages", "places", "why"),
    [
        ("id,English,French,state", ("en", "fr"), (1, 2), "by data.languages, en and fr"),
        ("id,fr,en,state", ("en", "fr"), (2, 1), "by data.languages, en and fr"),
        ("id,fr,en,state", ("fr", "en"), (1, 2), "by data.languages, fr and en"),
        ("fr_FR,en-GB,text (de),state", ("de", "fr"), (2, 0), "by data.languages, de and fr"),
        ("id,de,nl,state", ("en", "fr"), (1, 2), "by the names of languages"),
        ("id,en_US,en_GB,state", ("en", "fr"), (1, 2), "by the names of languages"),
        ("id,en_US,en_GB,state", ("en", "en"), (1, 2), "by the names of languages"),
        ("id,SRC,tgt,state", ("en", "fr"), (1, 2), "by their names"),
        ("id,original,Translation,state", ("en", "fr"), (1, 2), "by their names"),
        ("id,article,headline,state", ("en", "en"), (1, 2), "by their names"),
        ("id,foo,bar,state", ("en", "fr"), (1, 2), "the two columns that hold text"),
    ],
)
def test_columns_are_guessed_from_the_header(header, languages, places, why):
    columns = choose(header, languages=languages)
    assert (columns.source, columns.target) == places
    assert columns.header == header.split(",")
    assert columns.width == 4
    names = [header.split(",")[place] for place in places]
    assert columns.guess == f"source column {names[0]!r}, target column {names[1]!r} ({why})"


def test_a_first_row_that_names_nothing_is_data():
    columns = choose(None)
    assert (columns.source, columns.target, columns.header) == (1, 2, None)
    assert columns.guess == (
        "source column number 2, target column number 3 (the two columns that hold text; the first row is taken for "
        "data, since it names no columns)"
    )


@pytest.mark.parametrize(
    ("first", "is_header"),
    [
        ("File,Fichier", False),  # a label as good as a name
        ("file,context", True),
        ("source,Zieltext", True),
        ("string,French", True),
        ("name,Quelle,Ziel", True),
        ("1,File,Fichier", False),  # a number names no column
        ("Open,Ouvrir", False),
        (" Source , Target ", True),
    ],
)
def test_a_header_is_told_from_data(first, is_header):
    width = first.count(",") + 1
    rows = [",".join(["a b"] * 2 + ["1"] * (width - 2)), ",".join(["c d"] * 2 + ["1"] * (width - 2))]
    assert (choose(first, rows=rows).header is not None) == is_header


def test_told_columns_are_taken():
    columns = choose("id,en,fr,state", source="fr", target="state", key="id")
    assert columns == (2, 3, 0, ["id", "en", "fr", "state"], 4, None)
    assert choose("a,b,c,d", source="d", target="a").header == ["a", "b", "c", "d"]  # it has the names that were told
    columns = choose(None, source="3", target="2", key="4")
    assert columns == (2, 1, 3, None, 4, None)
    columns = choose("1,2,3,4", source="3", target="2")  # such names do occur
    assert (columns.source, columns.target, columns.header) == (2, 1, ["1", "2", "3", "4"])


def test_one_told_column_leaves_the_other_that_holds_text():
    columns = choose("id,foo,bar,state", source="bar")
    assert (columns.source, columns.target) == (2, 1)
    assert columns.guess == "source column 'bar', target column 'foo' (the other column)"
    columns = choose("x,y", target="x", rows=["a,b"])
    assert (columns.source, columns.target) == (1, 0)


def test_the_key_is_neither_source_nor_target():
    columns = choose("id,fr,foo,bar", key="fr", rows=["1,c d,e f,g h"] * 3)
    assert (columns.source, columns.target, columns.key) == (2, 3, 1)
    columns = choose("key,foo,bar", key="key", rows=["a b,c,d"] * 3)  # of the two that are left, neither holds text
    assert (columns.source, columns.target) == (1, 2)


def test_without_a_header_most_rows_say_how_many_columns_there_are():
    columns = choose(None, rows=["a b,c d", "a b,c d,note", "e f,g h,note", "i j,k l,note"])
    assert columns.width == 3
    assert (columns.source, columns.target) == (0, 1)
    assert choose(None, rows=["a b,c d", "e f,g h", "i j,k l,m n,o p"]).width == 2


@pytest.mark.parametrize(
    ("header", "told", "message"),
    [
        ("id,a,b,c", {}, "is not clear: give source_column and target_column .*; there are: 'id', 'a', 'b', 'c'"),
        ("id,a,b,c", {"source": "a"}, "is not clear"),
        ("id,a,b,c", {"source": "x", "target": "b"}, "there is no column 'x'; there are: 'id', 'a', 'b', 'c'"),
        ("id,a,b,c", {"key": "x"}, "there is no column 'x'"),
        ("id,a,b,c", {"source": "a", "target": "a"}, "are the same: give two names"),
        ("id,a,a,c", {"source": "a", "target": "c"}, "there are 2 columns 'a': give each its own name"),
        ("id,en,fr,fr", {}, "there are 2 columns 'fr': give each its own name"),
        ("id,en,fr,id", {"key": "id"}, "there are 2 columns 'id'"),
        (None, {"source": "0", "target": "1"}, "there is no column '0'; the first row has 'a b', "),
        (None, {"source": "1", "target": "9"}, "there is no column '9'"),
        (None, {"source": "foo"}, f"no column 'foo'; the first row has 'a b', 'c d', 'e f', '{'x' * 40}…'$"),
    ],
)
def test_columns_that_are_not_clear_are_asked_for(header, told, message):
    with pytest.raises(Misuse, match=f"^t.csv: .*{message}"):
        choose(header, rows=[f"a b,c d,e f,{'x' * 41}", "a b,c d,e f,g h"], **told)


def test_not_all_of_many_columns_are_shown():
    names = [f"column {n}" for n in range(500)]
    with pytest.raises(Misuse) as error:
        choose(",".join(names), rows=[",".join(["a b"] * 500)], source="x")
    assert str(error.value).endswith("'column 18', 'column 19', …")


def test_one_column_is_not_enough():
    for header in ("source", None):
        with pytest.raises(Misuse, match="there is only one column, but source and translation need two"):
            choose(header, rows=["a b", "c d"])


def test_keys_of_objects_are_always_names():
    columns = choose("foo,bar", rows=["x,y"], has_header=True)
    assert columns.header == ["foo", "bar"]
    assert "first row" not in columns.guess


def test_of_two_languages_the_one_with_empty_cells_is_the_target():
    rows = [["fr", "de"], ["", "Guten Tag"], ["Bonsoir", "Guten Abend"]]
    columns = choose_filled_columns(rows, Wanted(languages=("en", "it")), None, Path("t.csv"))
    assert (columns.source, columns.target) == (1, 0)


def test_of_two_languages_english_is_the_source():
    rows = [["id", "Text (DE)", "Text (EN)"], ["1", "Guten Tag", "Good day"], ["2", "Guten Abend", "Good evening"]]
    columns = choose_filled_columns(rows, Wanted(), None, Path("t.csv"))
    assert (columns.source, columns.target) == (2, 1)
