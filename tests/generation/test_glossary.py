"""The user's terms at generation: found by stated rules, written as asked, by any model that can point."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pointing.config import Config, Search, checked
from pointing.corpus.lexicon import Lexicon
from pointing.errors import Misuse
from pointing.evaluation.span_metrics import span_measures
from pointing.generation.generator import Generator
from pointing.generation.glossary import Glossary, Term, parse_mode, read_glossary, read_kept
from pointing.generation.reader import UNDRAWN, positions_of_spans
from pointing.generation.spans import Spans
from pointing.generation.writer import join_apart
from pointing.model.encoder import Reads
from pointing.model.fast_output import NO_WORD
from pointing.model.run import Run
from pointing.model.seq2seq import Seq2Seq
from pointing.text.forms import JOINED
from pointing.text.protected import PRESETS, Protector
from pointing.text.tokenizer import Tokenizer
from pointing.text.vocabulary import UNK, Vocabulary

SOURCE = Vocabulary(["the", "file", "saw", " printf", "."], [9, 8, 7, 6, 5])
TARGET = Vocabulary(["le", "fichier", "vu", ".", "%", "s"], [9, 8, 7, 6, 5, 4], writings={"le": "Le"})
SOFTWARE = Protector(PRESETS["software"])


def make(seed=0, output="pointer-softmax", **text):
    files = {"source": "a", "target": "b"}
    values = {
        "data": {"train": files, "dev": files},
        "text": {"forms": True, "protect": "software", **text},
        "model": {"embedding": 6, "hidden": 7, "encoder": 4, "output": output},
    }
    config = checked(Config, values)
    torch.manual_seed(seed)
    model = Seq2Seq(config.model, len(SOURCE), len(TARGET), reads=Reads(config.text.forms)).eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, 0, 0.9)
    return Generator(Run(Lexicon(config, SOURCE, TARGET), model, {}))


def marked(line, *terms, mode="guaranteed"):
    glossary = Glossary([Term(*term) for term in terms], Tokenizer(lowercase=True, protector=SOFTWARE), mode)
    tokens = glossary.mark(line, Tokenizer(lowercase=True, protector=SOFTWARE)(line))
    found = zip(*tokens, strict=True)
    return [(line[start:end], glossary.found[word].target) for word, start, end in found if word in glossary.found]


def test_the_longest_term_from_the_left_is_taken():
    terms = [("error", "erreur"), ("error log", "journal"), ("log file", "fichier journal"), ("file", "fichier")]
    assert marked("The error log file, an error: a log file", *terms) == [
        ("error log", "journal"),
        ("file", "fichier"),
        ("error", "erreur"),
        ("log file", "fichier journal"),
    ]


def test_words_match_whole_and_without_regard_to_case():
    assert marked("File FILE files profile file-system", ("file", "fichier")) == [
        ("File", "fichier"),
        ("FILE", "fichier"),
    ]


def test_the_same_capitals_come_first():
    terms = ("Word", "Word"), ("word", "mot")
    assert marked("Open Word, type a word. WORD", *terms) == [("Word", "Word"), ("word", "mot"), ("WORD", "mot")]


def test_the_term_may_be_a_protected_span_but_not_a_part_of_it():
    assert marked("<b>help</b> --help help", ("help", "aide"), ("--help", "--aide")) == [
        ("help", "aide"),
        ("--help", "--aide"),
        ("help", "aide"),
    ]


def test_the_model_is_drawn_to_a_term_that_it_would_translate_itself_and_reads_other_terms_as_unknown_words():
    # the vocabulary has "file" and "saw", not "zorblatt"
    generator = make()
    terms = generator.glossary({"file": "dossier", "saw": "vu", "zorblatt": "zorb"}, keep=["the file"])
    (line,) = generator.read(["saw file zorblatt the file"], None, terms)
    assert line.ids.tolist() == [SOURCE["saw"], SOURCE["file"], UNK, UNK]
    assert line.aliases == {0: TARGET["vu"], 1: NO_WORD, 2: UNDRAWN, 3: UNDRAWN}
    spans = Spans(*map(torch.from_numpy, positions_of_spans([line])), len(TARGET))
    drawn = spans.terms()
    assert drawn.open[0, 0, :4].tolist() == [True, True, False, False]
    assert drawn.words[0, :4].tolist() == [TARGET["vu"], NO_WORD, NO_WORD, NO_WORD]
    assert spans.required.tolist() == [4]  # the guarantee holds for all of them


def test_files_of_terms(tmp_path):
    (tmp_path / "g.tsv").write_text("# a comment\nfile\tfichier\tnoun\n\n error log \t journal d'erreurs\n")
    assert read_glossary(tmp_path / "g.tsv") == [Term("file", "fichier"), Term("error log", "journal d'erreurs")]
    (tmp_path / "k.txt").write_text("GNOME\nVisual Studio Code\n")
    assert read_kept(tmp_path / "k.txt") == [Term("GNOME", None), Term("Visual Studio Code", None)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("file fichier\n", "not a source term, a tab and a target term"),
        ("a\tb\nfile\t \n", "one of the two terms is empty"),
    ],
)
def test_a_wrong_line_is_named(tmp_path, text, message):
    (tmp_path / "g.tsv").write_text(text)
    with pytest.raises(Misuse, match=message) as refused:
        read_glossary(tmp_path / "g.tsv")
    assert f"g.tsv:{text.count(chr(10))}" in str(refused.value)


def test_modes_have_names():
    assert parse_mode("encouraged") == "encouraged"
    with pytest.raises(Misuse, match="guaranteed and encouraged"):
        parse_mode("forced")


@pytest.mark.parametrize("beam", [1, 4])
@pytest.mark.parametrize("output", ["pointer-softmax", "pointer-network"])
def test_every_term_and_every_span_is_written_once_by_any_model(output, beam):
    lines = ["the File saw %s the file and %d%%.", "Visual Studio Code saw the file", "no term . %s"]
    for seed in range(10):
        generator = make(seed, output)
        glossary = generator.glossary({"file": "le dossier"}, keep=["Visual Studio Code"])
        outputs = generator.generate(lines, Search(beam=beam, max_length=15), glossary=glossary)
        for line, output_ in zip(lines, outputs, strict=True):
            terms = [token for token in output_.tokens if token.origin == "glossary"]
            assert len(terms) == line.lower().count("file")
            assert all(token.text.lower() == "le dossier" for token in terms)
            assert all(line[slice(*token.span)].lower() == "file" for token in terms)
            kept = [token for token in output_.tokens if token.text == "Visual Studio Code"]
            assert len(kept) == line.count("Visual")
            assert all(token.origin == "copied" for token in kept)
            found = [output_.text[start:end] for start, end, _ in SOFTWARE(output_.text)]
            assert sorted(found) == sorted(line[start:end] for start, end, _ in SOFTWARE(line))
        assert generator.generate(lines, Search(beam=beam), glossary=glossary)[0].text  # a glossary may be used again


def test_an_encouraged_term_need_not_be_written_and_is_written_as_asked():
    texts = set()
    for seed in range(30):
        generator = make(seed)
        glossary = generator.glossary({"file": "dossier"}, mode="encouraged")
        (output,) = generator.generate(["the file saw"], Search(max_length=6), glossary=glossary)
        texts |= {token.text.lower() for token in output.tokens if token.span == (4, 8)}
        texts.add(len([token for token in output.tokens if token.origin == "glossary"]))
    assert "dossier" in texts
    assert 0 in texts  # not guaranteed
    assert "file" not in texts


def test_a_plain_softmax_and_subwords_have_no_terms():
    with pytest.raises(Misuse, match="plain softmax"):
        make(output="softmax").generate(["the file"], glossary=make().glossary({"file": "x"}))
    with pytest.raises(Misuse, match="no word"):
        make().glossary({" ": "x"})


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.text(st.sampled_from("ab%sd{}<>/ \\n&'1."), min_size=1, max_size=18))
def test_spans_come_through_any_model_whatever_the_line(seed, line):
    (output,) = make(seed).generate([line], Search(beam=2, max_length=10))
    measures = {measure.name: measure.score for measure in span_measures([line], [output.text], SOFTWARE)}
    assert (measures["spans lost"], measures["spans invented"]) == (0, 0)


def test_neighbours_that_would_make_up_a_span_are_kept_apart():
    joined = [("%", 0), ("s", 4 * JOINED), ("x", 4 * JOINED)]
    assert join_apart(joined, [False] * 3, SOFTWARE) == "% sx"
    assert join_apart([("%", 0), ("%s", 4 * JOINED)], [False, True], SOFTWARE) == "% %s"
    assert join_apart([("a", 0), ("%s", 4 * JOINED), (".", 4 * JOINED)], [False, True, False], SOFTWARE) == "a%s."


def test_words_are_written_in_their_usual_form_and_in_that_of_the_hypothesis():
    texts = {output.text for seed in range(20) for output in make(seed).generate(["the file saw ."], Search(beam=1))}
    assert any("Le" in text for text in texts)
    assert any("LE" in text for text in texts)
    assert any(joined in text for text in texts for joined in ("lefichier", "Lefichier", "vu.", "le.", "Le."))


def test_a_term_with_capitals_is_written_as_it_is_and_another_like_other_words():
    texts = set()
    for seed in range(20):
        generator = make(seed)
        glossary = generator.glossary({"file": "Dossier", "cat": "chat"}, keep=["GNOME"])
        (output,) = generator.generate(["the file cat gnome"], Search(beam=1, max_length=8), glossary=glossary)
        texts |= {token.text for token in output.tokens if token.span is not None and token.span[0] >= 4}
    assert "Dossier" in texts
    assert not {"dossier", "DOSSIER"} & texts
    assert {"chat", "Chat", "CHAT"} <= texts
    assert "gnome" in texts  # kept as it stands in the text
    assert not {"Gnome", "GNOME"} & texts
