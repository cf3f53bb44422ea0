"""What `pointing init` finds in data: which files belong together, lengths, languages, copies, spans."""

from pathlib import Path

import pytest

from pointing.config import Parallel, Table
from pointing.errors import Misuse
from pointing.init import findings
from pointing.init.findings import data_settings, look


def table(path, rows, header="English,French"):
    path.write_text("\n".join([header, *rows]) + "\n")
    return path


def data(folder, rows, header="English,French", **more):
    """Settings for a table whose dev part is given, so that the training part is just these rows."""
    settings = data_settings([table(folder / "x.csv", rows, header)], None, None)
    dev = Table(files=(table(folder / "d.csv", ["a,b"], header),))
    return settings.model_copy(update={"dev": dev, **more})


def touched(folder, *names):
    for name in names:
        (folder / name).touch()
    return [folder / name for name in names]


def test_two_files_of_lines_are_source_and_target(tmp_path):
    files = touched(tmp_path, "a.en", "a.fr")
    settings = data_settings(files, ("en", "de"), None)
    assert settings.train == Parallel(source=files[0], target=files[1])
    assert settings.split_off() == ["dev", "test"]
    assert settings.languages == ("en", "de")


def test_tables_and_single_files_have_both_sides(tmp_path):
    for names in (["a.csv"], ["a.csv", "b.csv"], ["a.txt"], ["a.csv", "a.txt"], ["a.po", "b.xlf", "c.jsonl"]):
        files = touched(tmp_path, *names)
        told = Table(files=tuple(files), source_column="x", key_column="k")
        assert data_settings(files, None, told).train == told


def test_files_that_begin_with_train_bring_others_along(tmp_path):
    files = touched(tmp_path, "train.en", "train.fr")
    touched(tmp_path, "valid.en", "valid.fr", "test.en")
    settings = data_settings(files, None, None)
    assert settings.dev == Parallel(source=tmp_path / "valid.en", target=tmp_path / "valid.fr")
    assert settings.test is None  # it has one side only
    touched(tmp_path, "dev.en", "dev.fr", "test.fr")
    settings = data_settings(files, None, None)
    assert settings.dev == Parallel(source=tmp_path / "dev.en", target=tmp_path / "dev.fr")
    assert settings.test == Parallel(source=tmp_path / "test.en", target=tmp_path / "test.fr")


def test_a_table_brings_others_along_with_the_same_columns(tmp_path):
    files = touched(tmp_path, "train.csv", "test.csv", "dev.tsv")[:1]
    told = Table(files=tuple(files), source_column="x")
    settings = data_settings(files, None, told)
    assert settings.train == told
    assert settings.dev is None
    assert settings.test == Table(files=(tmp_path / "test.csv",), source_column="x")
    assert settings.split_off() == ["dev"]
    other = touched(tmp_path, "strings.csv")
    assert data_settings(other, None, None).test is None


def test_columns_without_a_use_are_refused(tmp_path):
    files = touched(tmp_path, "a.en", "a.fr")
    with pytest.raises(Misuse, match=r"a\.en: two files of lines have no columns: leave out source_column"):
        data_settings(files, None, Table(files=tuple(files), source_column="x"))
    files = touched(tmp_path, "train.csv", "dev.csv")[:1]
    with pytest.raises(Misuse, match=r"a key column is for splitting off dev, but there is .*dev\.csv: leave it out"):
        data_settings(files, None, Table(files=tuple(files), key_column="x"))


def test_findings_by_hand(tmp_path):
    rows = ["Open Zorblatt now,Ouvrir Zorblatt", "%d files of Quux .,%d fichiers de Quux ."]
    rows += ["Use %s,Utiliser", "a b,c d"]
    found = look(data(tmp_path, rows), is_told=False)
    assert found.splits == {"train": 4, "dev": 1}
    assert found.every == 1
    assert found.guessed_languages == found.languages == ("en", "fr")
    # tokens: 3 → 2, 5 → 5, 2 → 1, 2 → 2
    assert found.lengths == (12 / 4, 10 / 4)
    assert found.longest == 5  # of fewer than 100 pairs, the longest
    assert found.shorter == (2 / 3 + 1) / 2  # the middle of 1/2, 2/3, 1, 1
    # target words: ouvrir zorblatt, %d fichiers de quux, utiliser, c d; copied are zorblatt, %d and quux
    assert found.copied_share == 3 / 9
    assert (found.with_spans, found.spans_kept) == (2 / 4, 1 / 2)
    assert found.words.target["zorblatt"] == found.words.copied["zorblatt"] == 1
    assert "zorblatt" in found.words.source
    assert "ouvrir" not in found.words.source
    assert not found.summarizes


def test_a_sample_is_taken_evenly(tmp_path, monkeypatch):
    monkeypatch.setattr(findings, "SAMPLE", 10)
    monkeypatch.setattr("pointing.corpus.sources.PAIRS_OF_A_BLOCK", 7)
    words = [chr(97 + n // 26) + chr(97 + n % 26) for n in range(95)]
    found = look(data(tmp_path, [f"{word},{word}" for word in words]), is_told=False)
    assert found.every == 10
    assert set(found.words.source) == set(words[::10])


def test_languages_are_told_or_named_or_guessed_from_words(tmp_path):
    rows = ["the file is not here and you are,die Datei ist nicht hier und das ist"] * 3
    assert look(data(tmp_path, rows, "one,two"), is_told=False).languages == ("en", "de")
    assert look(data(tmp_path, rows, "pl,cs"), is_told=False).languages == ("pl", "cs")
    assert look(data(tmp_path, rows, "pl,target"), is_told=False).languages == ("pl", "de")
    assert look(data(tmp_path, rows, "one,two", languages=("it", "sv")), is_told=True).languages == ("it", "sv")
    unknown = look(data(tmp_path, ["Zorblatt,Quux"], "one,two"), is_told=False)
    assert unknown.guessed_languages == (None, None)
    assert unknown.languages == ("en", "fr")


def test_files_say_languages_by_their_ends(tmp_path):
    for name in ("a.sv", "a.da", "d.sv", "d.da"):
        (tmp_path / name).write_text("x\n")
    settings = data_settings([tmp_path / "a.sv", tmp_path / "a.da"], None, None)
    dev = Parallel(source=tmp_path / "d.sv", target=tmp_path / "d.da")
    assert look(settings.model_copy(update={"dev": dev}), is_told=False).languages == ("sv", "da")


def test_short_targets_in_the_same_language_are_summaries(tmp_path):
    rows = ["the file is not in the folder of you and is lost,the file is lost"] * 3
    assert look(data(tmp_path, rows, "article,headline"), is_told=False).summarizes
    rows = ["the file is not in the folder of you and is lost,the file is lost in the folder now"] * 3  # 8 of 12 tokens
    assert not look(data(tmp_path, rows, "article,headline"), is_told=False).summarizes


def test_texts_that_are_too_long_to_look_at_are_said(tmp_path):
    with pytest.raises(Misuse, match=r"x\.csv: no pair is left of 1: 1 have more than 1000 tokens \(first on line 2\)"):
        look(data(tmp_path, ["word " * 1001 + ",mot"]), is_told=False)


def test_the_path_of_the_first_file_is_as_it_was_given():
    assert data_settings([Path("a b.csv")], None, None).train.files == (Path("a b.csv"),)
