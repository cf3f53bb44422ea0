import gzip

import pytest

from pointing.errors import Misuse
from pointing.text.entities import (
    SpacyTagger,
    anonymize,
    count_tagged_sentences,
    locate,
    placeholder,
    position_of_entity,
    read_tags,
)
from pointing.text.tokenizer import Tokens
from pointing.text.vocabulary import FIRST, Vocabulary

ONE, TWO, THREE = placeholder(1), placeholder(2), placeholder(3)


def test_ids_count_from_one_left_to_right_and_repeat_with_their_word():
    source = ["ada", "lovelace", "met", "babbage", ";", "ada", "wrote"]
    tags = ["B-PER", "I-PER", "O", "B-PER", "O", "B-PER", "O"]
    target, target_tags = ["lovelace", "and", "babbage"], ["B-PER", "O", "B-PER"]
    assert anonymize(source, tags, target, target_tags, limit=10) == (
        [ONE, TWO, "met", THREE, ";", ONE, "wrote"],
        [TWO, "and", THREE],  # half of a long name matches
    )


def test_what_the_source_does_not_name_keeps_its_word():
    assert anonymize(["ada"], ["B-PER"], ["grace"], ["B-PER"], limit=10) == ([ONE], ["grace"])


def test_a_word_that_is_no_entity_here_is_left_alone():
    assert anonymize(["may", "may"], ["B-PER", "O"], ["may", "may"], ["O", "B-PER"], limit=10) == (
        [ONE, "may"],
        ["may", ONE],
    )


def test_ids_end_at_the_limit():
    assert anonymize(["a", "b"], ["B-X", "B-X"], ["b", "a"], ["B-X", "B-X"], limit=1) == ([ONE, "b"], ["b", ONE])


def test_the_way_back_is_the_first_place_that_bore_the_id():
    vocabulary = Vocabulary(["met"], [1], placeholders=3)
    source = vocabulary.ids([TWO, "met", ONE, TWO])
    assert position_of_entity(2, source, FIRST) == 0
    assert position_of_entity(1, source, FIRST) == 2
    assert position_of_entity(3, source, FIRST) is None


def test_tokens_are_found_in_the_raw_line():
    assert locate("Don't  stop.", ["Don", "'t", "stop", "."]) == ([0, 3, 7, 11], [3, 5, 11, 12])
    assert locate("Don't stop", ["stop", "Don"]) is None
    assert locate("Don't stop", ["Don", "'t"]) is None  # half of the line
    assert locate("do not stop", ["do", "stop"]) is None  # a word is left out in the middle
    assert locate("concatenate cat", ["cat"]) is None


def test_joined_tags(tmp_path):
    path = tmp_path / "x.ner.gz"
    path.write_bytes(gzip.compress("Ada￨B-PER met￨O ￨￨O\n\nx￨O\n".encode()))
    assert list(read_tags(path)) == [(["Ada", "met", "￨"], ["B-PER", "O", "O"]), ([], []), (["x"], ["O"])]
    assert count_tagged_sentences(path) == 3


def test_conll_columns(tmp_path):
    path = tmp_path / "x.conll"
    path.write_text("-DOCSTART- -X- O O\n\nAda NNP I-NP B-PER\nmet VBD I-VP O\n\nx NN I-NP O\n")
    assert list(read_tags(path)) == [(["Ada", "met"], ["B-PER", "O"]), (["x"], ["O"])]
    assert count_tagged_sentences(path) == 2


@pytest.mark.parametrize(
    ("name", "text", "line"), [("x.ner", "a￨O\nb\n", 2), ("x.ner", "￨O\n", 1), ("x.conll", "a O\nb\n", 2)]
)
def test_tokens_without_a_tag_are_named_with_their_line(tmp_path, name, text, line):
    (tmp_path / name).write_text(text)
    with pytest.raises(Misuse, match=rf"x\.\w+:{line}: "):
        list(read_tags(tmp_path / name))


def test_spacy_tags_our_own_tokens(tmp_path):
    spacy = pytest.importorskip("spacy")
    pipeline = spacy.blank("en")
    pipeline.add_pipe("entity_ruler").add_patterns([{"label": "PER", "pattern": "Ada Lovelace"}])
    pipeline.to_disk(tmp_path / "rules")
    tagger = SpacyTagger(str(tmp_path / "rules"))
    tokens = Tokens(["was", "ada", "lovelace", "there", "?"], [0, 4, 8, 17, 22], [3, 7, 16, 22, 23])
    assert tagger("Was Ada Lovelace there?", tokens) == ["O", "PER", "PER", "O", "O"]
    beside = Tokens(["(", "ada lovelace", ")"], [0, 1, 13], [1, 13, 14])  # tokens that touch an entity are not in it
    assert tagger("(Ada Lovelace)", beside) == ["O", "PER", "O"]
    with pytest.raises(Misuse, match="python -m spacy download nothing"):
        SpacyTagger("nothing")


def installed(folder, name, code, entry_points):
    """A package as pip would install it."""
    (folder / name).mkdir(parents=True)
    (folder / name / "__init__.py").write_text(code)
    about = folder / f"{name}-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(entry_points)


def test_no_package_is_imported_because_settings_name_it(tmp_path, monkeypatch):
    spacy = pytest.importorskip("spacy")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    code = f"from pathlib import Path\nPath({str(tmp_path / 'imported')!r}).touch()\n"
    installed(tmp_path, "no_pipeline", code, "")
    for name in ("no_pipeline", "no_pipeline.inner", "./no_pipeline", "pip", "", "..", "blank:en"):
        with pytest.raises(Misuse, match=r"pointers\.tagger: there is no spaCy pipeline"):
            SpacyTagger(name)
    assert not (tmp_path / "imported").exists()
    load = f"{code}def load(**options):\n    import spacy\n    return spacy.blank('en')\n"
    installed(tmp_path, "a_pipeline", load, "[spacy_models]\na_pipeline = a_pipeline\n")
    assert isinstance(SpacyTagger("a_pipeline").pipeline, spacy.language.Language)
    assert (tmp_path / "imported").exists()


def test_a_damaged_pipeline_is_said(tmp_path):
    pytest.importorskip("spacy")
    (tmp_path / "config.cfg").write_text("[nlp\n")
    with pytest.raises(Misuse, match="not a spaCy pipeline that can be loaded"):
        SpacyTagger(str(tmp_path))
