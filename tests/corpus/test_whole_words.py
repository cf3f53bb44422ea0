"""Pieces in and words out (`pointers.places: words`): raw text → examples, and what a raw line becomes at test."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pointing.config import Config, checked
from pointing.corpus.encoding import encode_pairs, tokenize_pairs
from pointing.corpus.examples import NOWHERE, Corpus, place_of_pieces
from pointing.corpus.lexicon import Lexicon, Tokenization
from pointing.corpus.preparation import prepare
from pointing.generation.reader import LineReader, as_batch
from pointing.text.compounds import cut_compounds
from pointing.text.forms import CAPITAL, JOINED, WITHIN_WORD, join, write_word
from pointing.text.subwords import without_mark
from pointing.text.token_arrays import tokenize_lines
from pointing.text.tokenizer import Tokenizer
from pointing.text.vocabulary import EOS

SOURCE = ["open the file with Zorb-Edit", "close the file", "Floopix needs the tango server", "the file"] * 6
TARGET = ["Öffne die Datei mit Zorb-Edit", "schließe die Datei", "Floopix braucht den Tango-Server", "die Datei"] * 6


def prepared(folder, policy="unknown-words", guidance=0.0, protect="none", forms=True, places="words", lines=None):
    source, target = lines or (SOURCE, TARGET)
    data = {}
    for name, size in (("train", len(source)), ("dev", 4)):
        for side, texts in (("source", source), ("target", target)):
            (folder / f"{name}.{side}").write_text("\n".join(texts[:size]) + "\n")
        data[name] = {side: str(folder / f"{name}.{side}") for side in ("source", "target")}
    settings = {
        "data": data | {"languages": ["en", "de"]},
        "text": {"subwords": "bpe", "forms": forms, "protect": protect},
        "vocabulary": {"source": 40, "target": 40, "min_count": 5},
        "pointers": {"policy": policy, "places": places, "guidance": guidance},
    }
    return prepare(checked(Config, settings), folder / "corpus", workers=1)[0]


def steps(corpus, row, split="train"):
    """What the decoder writes: raw source words in brackets, pieces as they are, | before what is joined."""
    example, V = corpus.split(split)[row], len(corpus.lexicon.target)
    raw = [example["source_text"][start:end] for start, end in zip(example["starts"], example["ends"], strict=True)]
    return [f"[{raw[c - V]}]" if c >= V else corpus.lexicon.target.word(c) for c in example["target"]]


def written(corpus, row):
    """The text that an example teaches, from its choices and their forms."""
    example, V = corpus.split("train")[row], len(corpus.lexicon.target)
    raw = [example["source_text"][start:end] for start, end in zip(example["starts"], example["ends"], strict=True)]
    words, goes_on = [], False
    for choice, form in zip(example["target"][:-1], example["target_forms"], strict=False):
        if goes_on:
            assert form == WITHIN_WORD
            words[-1] = words[-1][0] + without_mark(corpus.lexicon.target.word(choice)), words[-1][1], False
        else:
            base = raw[choice - V] if choice >= V else corpus.lexicon.target.word(choice)
            words.append((without_mark(base), form, choice < V and not base.endswith("@@ ")))
        goes_on = choice < V and corpus.lexicon.target.word(choice).endswith("@@ ")
    bases = [(corpus.lexicon.target.writing(word) if whole else word, form) for word, form, whole in words]
    return join((write_word(base, form), form) for base, form in bases)


def test_a_copied_word_is_one_step_and_others_are_pieces(tmp_path):
    corpus = prepared(tmp_path)
    assert steps(corpus, 0)[-1] is None  # the end
    assert steps(corpus, 0)[-2] == "[Zorb-Edit]"
    assert "datei" in steps(corpus, 0)
    example, V = corpus.split("train")[0], len(corpus.lexicon.target)
    assert len(example["source_words"]) == len(example["pieces"]) == len(example["starts"]) == 5
    assert sum(example["pieces"]) == len(example["source"]) > 5
    assert example["source_words"][4] == example["target"][-2] == example["target_words"][-2] == V + 4
    assert corpus.about["statistics"]["train"]["pointers"] == 6 * 4  # Zorb-Edit, Floopix, tango, server


def test_a_name_in_a_compound_is_pointed_at(tmp_path):
    corpus = prepared(tmp_path)
    found = steps(corpus, 2)
    assert found[0] == "[Floopix]"
    assert "[tango]" in found
    assert found[found.index("[tango]") + 1] == "-"
    assert [written(corpus, row) for row in range(4)] == TARGET[:4]


def test_without_forms_words_with_hyphens_stay_whole(tmp_path):
    corpus = prepared(tmp_path, forms=False)
    assert "[tango]" not in steps(corpus, 2)
    assert "-" not in steps(corpus, 2)


def test_all_matches_teaches_every_word_that_the_source_has(tmp_path):
    lines = ["a GNU file", "no GNU"] * 8, ["une file GNU", "pas de GNU"] * 8
    corpus = prepared(tmp_path, policy="all-matches", lines=lines)
    assert steps(corpus, 0) == ["une", "[file]", "[GNU]", None]
    example = corpus.split("train")[0]
    gnu = corpus.lexicon.target["gnu"]
    assert example["target_words"][2] == gnu == example["source_words"][1]  # known words are named by themselves


def test_a_protected_span_is_one_position_of_one_piece_of_its_kind(tmp_path):
    lines = ["cannot open %s here", "no %s and %d"] * 8, ["%s ist nicht offen", "weder %s noch %d"] * 8
    corpus = prepared(tmp_path, protect="software", lines=lines)
    example = corpus.split("train")[0]
    assert steps(corpus, 0)[0] == "[%s]"
    assert example["pieces"][2] == 1
    start = sum(example["pieces"][:2])
    assert corpus.lexicon.source.word(example["source"][start]).startswith(" ")  # the kind, not UNK


def test_links_go_from_each_piece_to_the_word_that_the_aligner_found(tmp_path):
    corpus = prepared(tmp_path, guidance=0.5)
    example = corpus.split("train")[1]
    raw = [example["source_text"][start:end] for start, end in zip(example["starts"], example["ends"], strict=True)]
    linked = dict(zip(steps(corpus, 1), example["links"], strict=True))
    assert raw[linked["datei"]] == "file"
    assert linked[None] == NOWHERE  # the end
    first = corpus.split("train")[0]
    places = dict(zip(steps(corpus, 0), first["links"], strict=True))
    assert places["[Zorb-Edit]"] == NOWHERE  # a pointer teaches itself
    batch = corpus.split("train").batch(np.array([0, 1]))
    assert batch.links.shape == batch.target.shape
    assert (batch.links[1, len(example["links"]) :] == NOWHERE).all()
    assert set(corpus.split("dev")[0]["links"]) == {NOWHERE}  # dev text is not aligned


def test_with_pieces_as_positions_links_go_to_the_first_piece(tmp_path):
    corpus = prepared(tmp_path, guidance=0.5, places="tokens")
    example, source = corpus.split("train")[1], corpus.lexicon.source
    pieces = [source.word(number) for number in example["source"]]
    target = [corpus.lexicon.target.word(number) for number in example["target"][:-1]]
    first = pieces[example["links"][target.index("datei")]]
    assert "file".startswith(without_mark(first))
    assert all(link == NOWHERE or link < len(pieces) for link in example["links"])


def test_links_skip_protected_spans(tmp_path):
    lines = ["%d files", "the %s"] * 9, ["%d Dateien", "die %s"] * 9
    corpus = prepared(tmp_path, guidance=0.5, protect="software", lines=lines)
    example = corpus.split("train")[0]
    assert steps(corpus, 0)[-2] == "dateien"
    assert example["links"][-2] == 1  # among all tokens of the line, `%d` too


def test_the_weight_of_the_guidance_makes_no_corpus_anew_and_links_do(tmp_path):
    corpus = prepared(tmp_path, guidance=0.5)
    made = corpus.about["made_from"]
    assert prepared(tmp_path, guidance=0.1).about["made_from"] == made
    assert prepared(tmp_path).about["made_from"] != made
    assert not Corpus(corpus.folder).split("train").has("links")


def test_a_raw_line_becomes_what_the_corpus_holds(tmp_path):
    corpus = prepared(tmp_path)
    read, train = LineReader(corpus.lexicon), corpus.split("train")
    rows = np.arange(4)
    expected, found = train.batch(rows), as_batch(read(SOURCE[:4]))
    for name in ("x", "x_mask", "source_words", "x_form", "place"):
        assert getattr(found, name).tolist() == getattr(expected, name).tolist(), name


def test_a_line_knows_which_words_it_reads_whole(tmp_path):
    line = LineReader(prepared(tmp_path).lexicon)(["open the file"])[0]
    vocabulary = prepared(tmp_path).lexicon.source
    assert line.ids[-1] == vocabulary["file"]
    assert len(line.ids) == len(line.reading.counts) == 3
    assert line.reading.counts.sum() == len(line.reading.ids)


def test_place_of_pieces_by_hand():
    pieces, lengths = np.array([[2, 1, 3], [1, 2, 0]]), np.array([3, 2])
    assert place_of_pieces(pieces, lengths, 7).tolist() == [[0, 0, 1, 2, 2, 2, 3], [0, 1, 1, 2, -1, -1, -1]]
    assert place_of_pieces(np.zeros((1, 0), np.int64), np.array([0]), 1).tolist() == [[0]]  # an empty source: its end


# compounds


def cut(text, keep=()):
    tokens = tokenize_lines(Tokenizer("whitespace", "de", lowercase=True), [text], writing=True)
    whole = np.array([tokens.words[number] in keep for number in tokens.ids], bool)
    return cut_compounds(tokens, whole)


def test_compounds_are_cut_at_their_hyphens():
    tokens = cut("Die Tango-Geräte, X-Y-Z -v a- 3-4 vim-tiny", keep={"vim-tiny"})
    words = [tokens.words[number] for number in tokens.ids]
    assert words == ["die", "tango", "-", "geräte,", "x", "-", "y", "-", "z", "-v", "a-", "3", "-", "4", "vim-tiny"]
    surfaces, ids, spaces = tokens.writing
    assert [surfaces[number] for number in ids][:4] == ["Die", "Tango", "-", "Geräte,"]
    assert [space == JOINED for space in spaces][:6] == [False, False, True, True, False, True]
    assert tokens.counts.tolist() == [15]
    assert tokens.starts[:4].tolist() == [0, 4, 9, 10]
    assert tokens.ends[:4].tolist() == [3, 9, 10, 17]


@given(st.lists(st.text("aB-é \u0130", max_size=12), min_size=1, max_size=4))
def test_cut_words_are_the_same_text(lines):
    tokens = tokenize_lines(Tokenizer("regex", "de", lowercase=True), lines, writing=True)
    parts = cut_compounds(tokens, np.zeros(len(tokens.ids), bool))
    surfaces, ids, spaces = parts.writing
    ends = np.cumsum(parts.counts)
    for line, end, count in zip(lines, ends, parts.counts, strict=True):
        here = range(end - count, end)
        assert [line[parts.starts[t] : parts.ends[t]] for t in here] == [surfaces[ids[t]] for t in here]
        text = "".join(("" if spaces[t] == JOINED or t == end - count else " ") + surfaces[ids[t]] for t in here)
        assert text.split() == line.split()


@pytest.mark.parametrize("places", ["tokens", "words"])
def test_any_pair_is_encoded_with_as_many_forms_as_steps(tmp_path, places):
    corpus = prepared(tmp_path, guidance=0.1, places=places)
    lexicon = Lexicon(corpus.lexicon.config, corpus.lexicon.source, corpus.lexicon.target)
    sources = ["", "a-b c", "Zorb-Edit İ file", "x" * 30]
    targets = ["", "Q-a-b c", "die Datei-Zorb-Edit İ", "y" * 30 + "-z"]
    lines = [[text.encode() + b"\n" for text in side] for side in (sources, targets)]
    pairs, _ = tokenize_pairs(Tokenization(lexicon.config), *lines, None, range(4))
    linked = np.zeros(len(pairs.target.ids), np.int32)
    encoded, counted = encode_pairs(lexicon, pairs, np.arange(3))
    for row in encoded.to_pylist():
        assert len(row["target"]) == len(row["target_words"]) == len(row["target_forms"]) == len(row["links"])
        assert row["target"][-1] == EOS
        assert len(row["source"]) == len(row["source_forms"])
    encoded, _ = encode_pairs(lexicon, pairs, np.arange(3), linked)
    assert {link for row in encoded.to_pylist() for link in row["links"]} == {0, NOWHERE}
    assert counted.target_pieces == sum(len(row["target"]) - 1 for row in encoded.to_pylist())


def test_a_capital_after_a_copied_part_is_that_of_the_word(tmp_path):
    corpus = prepared(tmp_path)
    example = corpus.split("train")[2]
    place = steps(corpus, 2).index("[tango]")
    assert example["target_forms"][place] == CAPITAL
    assert example["target_forms"][place + 1] == 4 * JOINED
