"""`generate` and `stream` from Python: a line or lines, settings by name, and what is refused in our own words."""

import io
from pathlib import Path

import numpy as np
import pytest
from test_generator import GREEDY, make, pointing_at_everything

from pointing.config import Search
from pointing.errors import Misuse
from pointing.generation.options import SearchOptions, search_settings


def test_a_string_is_one_line_and_has_one_output():
    model = make()
    (among,) = model.generate(["the cat saw Zoe"], GREEDY)
    alone = model.generate("the cat saw Zoe", GREEDY)
    assert (alone, alone.line) == (among, 1)
    assert list(model.stream("the cat saw Zoe", GREEDY)) == [among]
    assert model.generate(b"the cat saw Zoe\n", GREEDY) == among
    assert model.generate(np.str_("the cat saw Zoe"), GREEDY) == among
    assert model.generate("", GREEDY).text == ""
    assert model.generate([], GREEDY) == []


def test_lines_may_come_from_anywhere_and_lose_their_ends():
    model = make()
    expected = model.generate(["the cat", "", "saw"], GREEDY)
    assert [one.source.text for one in expected] == ["the cat", "", "saw"]
    for lines in (
        ("the cat", "", "saw"),
        io.StringIO("the cat\n\nsaw\n"),
        io.BytesIO(b"the cat\r\n\nsaw"),
        (line for line in ["the cat\r\n", "\n", bytearray(b"saw")]),
        np.array(["the cat", "", "saw"]),
    ):
        assert [(one.text, one.source.text) for one in model.generate(lines, GREEDY)] == [
            (one.text, one.source.text) for one in expected
        ]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (None, "give a line, or a list of lines, not None"),
        (3, "give a line, or a list of lines, not 3 (of type int)"),
        ({"a": "b"}, "not {'a': 'b'} (of type dict)"),
        (Path("lines.en"), "lines are strings, not a path: give open('lines.en'"),
        (["the cat", None], "line 2 is None, not a string"),
        (["the cat", float("nan")], "line 2 is nan (of type float), not a string"),
        ([["the", "cat"]], "line 1 is ['the', 'cat'] (of type list), not a string"),
    ],
)
def test_what_is_no_line_is_named(lines, message):
    for call in (make().generate, lambda lines: list(make().stream(lines))):
        with pytest.raises(Misuse) as refused:
            call(lines)
        assert message in str(refused.value)


def test_settings_by_name_change_those_of_the_object():
    model, lines = make(), ["the cat saw Zoe"]
    both = model.generate(lines, Search(beam=4, max_length=6), nbest=3)
    assert both == model.generate(lines, Search(beam=4, nbest=3, max_length=6))
    assert len(both[0].alternatives) == 2
    assert list(model.stream(lines, beam=4, nbest=3, max_length=6)) == both
    assert search_settings(Search(beam=4), {"nbest": 3}) == Search(beam=4, nbest=3)
    assert SearchOptions.__annotations__.keys() == Search.model_fields.keys()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"beem": 3}, "beem: there is no such setting; did you mean beam?"),
        ({"num_beams": 3}, "num_beams: there is no such setting; did you mean beam?"),
        ({"glosary": {}}, "glosary: there is no such setting; did you mean glossary?"),
        ({"dictionnary": {}}, "did you mean dictionary?"),
        ({"beam": 0}, "beam: "),
        ({"beam": "many"}, "not 'many'"),
        ({"nbest": 6}, "nbest (6) cannot be larger than beam (5)"),
        ({"glossary": 3}, "glossary: should be a file, or a mapping of terms to translations, not 3"),
        ({"glossary": {"cat": None}}, "a glossary's term should be text, not None"),
        ({"glossary": {"cat": " "}}, "a glossary's term has no word: ' '"),
        ({"glossary": "cat"}, "cat: there is no such file; terms themselves are given as glossary={term: translation}"),
        ({"keep": "GNOME"}, "GNOME: there is no such file; terms themselves are given as keep=[term]"),
        ({"keep": [3]}, "a glossary's term should be text, not 3"),
        ({"keep": 3}, "keep: should be a file, or a list of terms, not 3"),
        ({"dictionary": {"cat": "chat"}}, "a dictionary is a file of word pairs; for your own terms give glossary="),
    ],
)
def test_wrong_keywords_are_refused_in_our_own_words_before_a_line_is_read(options, message):
    model = make()
    for call in (model.generate, model.stream):
        with pytest.raises(Misuse) as refused:
            call(iter(["the cat"]), **options)
        assert message in str(refused.value)
        assert "pydantic" not in str(refused.value)


def test_only_a_search_is_taken_for_one_and_a_window_has_lines():
    for wrong, written in ((5, "5 (of type int)"), ({"beam": 5}, "{'beam': 5} (of type dict)")):
        with pytest.raises(Misuse) as refused:
            make().generate("the cat", wrong)
        assert str(refused.value) == (
            f"the second argument is a Search, not {written}: give its settings by name, such as beam=5"
        )
    for window in (0, "7", 2.5):
        with pytest.raises(Misuse, match="window: should be a number of lines"):
            make().stream(["the cat"], window=window)


def test_terms_as_a_mapping_as_a_file_and_as_a_glossary(tmp_path):
    model = pointing_at_everything()
    (tmp_path / "terms.tsv").write_text("cat\tle gros chat\n")
    (tmp_path / "keep.txt").write_text("Zoe\n")
    made = model.glossary({"cat": "le gros chat"}, keep=["Zoe"])
    outputs = [
        model.generate("the cat saw Zoe", max_length=8, **options)
        for options in (
            {"glossary": {"cat": " le gros chat "}, "keep": ["Zoe"]},
            {"glossary": tmp_path / "terms.tsv", "keep": str(tmp_path / "keep.txt")},
            {"glossary": made},
        )
    ]
    assert outputs[0] == outputs[1] == outputs[2]
    assert [token.text for token in outputs[0].tokens if token.origin == "glossary"] == ["le gros chat"]
    with pytest.raises(Misuse, match="keep is part of a glossary that is made before"):
        model.generate("the cat", glossary=made, keep=["Zoe"])


def test_a_dictionary_for_one_call(tmp_path):
    (tmp_path / "words.tsv").write_text("zoe\tzoé\n")
    model = pointing_at_everything(lowercase=True)
    plain = model.generate("Zoe", min_length=2, beam=1)
    translated = model.generate("Zoe", min_length=2, beam=1, dictionary=tmp_path / "words.tsv")
    assert {token.text for token in plain.tokens} == {"Zoe"}
    assert {(token.text, token.origin) for token in translated.tokens} == {("zoé", "translated")}
    assert model.generate("Zoe", min_length=2, beam=1) == plain
