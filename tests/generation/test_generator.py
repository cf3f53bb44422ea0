"""Raw lines in, outputs out."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pointing.config import Config, Search, checked
from pointing.corpus.examples import Corpus
from pointing.corpus.lexicon import Lexicon
from pointing.corpus.preparation import prepare
from pointing.errors import Misuse
from pointing.generation.generator import Generator
from pointing.generation.reader import as_batch
from pointing.model.run import Run
from pointing.model.seq2seq import Seq2Seq
from pointing.text.dictionary import Dictionary
from pointing.text.entities import Tagged
from pointing.text.vocabulary import UNK, Vocabulary

SOURCE = Vocabulary(["the", "cat", "saw", "a", "house", ".", "and"], [9, 8, 7, 6, 5, 4, 3])
TARGET = Vocabulary(["le", "chat", "a", "vu", "une", "maison", ".", "et", "cat"], [9, 8, 7, 6, 5, 4, 3, 2, 1])
GREEDY = Search(beam=1)
HARD = [
    "",
    "   ",
    "Zyzzyva",
    "the cat saw " * 4000,
    "👩‍👩‍👧 saw a 🏠 🇫🇷",
    "القطة رأت the بيت",
    "the\x00cat\x07 saw\x1b[31m a \x85 house \u2028 and \x0b.",
    "<unk> saw </s> <s> the <blank>",
    "caf\u00e9 cafe\u0301 ＣＡＴ",
    "\ufeffthe cat",
    b"the c\xe9t saw \xff\xfe a house\r\n",
    "the cat saw a house .",
]


def make(
    dictionary=None, policy="unknown-words", anonymize=True, placeholders=0, output="pointer-softmax", seed=0, **text
):
    files = {"source": "a", "target": "b", "source_tags": "c", "target_tags": "d"}
    values = {
        "data": {"train": files, "dev": files},
        "text": text,
        "pointers": {"policy": policy, "anonymize": anonymize, "dictionary": "induced" if dictionary else None},
        "model": {"embedding": 6, "hidden": 7, "encoder": 4, "output": output},
    }
    config = checked(Config, values)
    source, target = (Vocabulary(v.words, v.counts, placeholders) for v in (SOURCE, TARGET))
    torch.manual_seed(seed)
    model = Seq2Seq(config.model, len(source), len(target)).eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, 0, 0.8)
    return Generator(Run(Lexicon(config, source, target, dictionary), model, {}))


def pointing_at_everything(**more):
    """A generator whose switch always points, to the left or anywhere."""
    generator = make(**more)
    with torch.no_grad():
        generator.model.output.switch.last.bias.fill_(-80.0)
    return generator


@pytest.mark.parametrize("tokenizer", ["regex", "moses", "whitespace"])
@pytest.mark.parametrize("output", ["pointer-softmax", "softmax", "pointer-network"])
def test_every_line_has_its_output_whatever_it_holds(tokenizer, output):
    generator = make(tokenizer=tokenizer, output=output, digits="fold")
    outputs = generator.generate(HARD, Search(beam=3, nbest=2))
    assert [one.line for one in outputs] == list(range(1, len(HARD) + 1))
    assert [one.text for one in outputs[:2]] == ["", ""]
    for one in outputs:
        assert "\n" not in one.text
        for token in one.tokens:
            if token.origin == "copied":
                assert token.text == one.source.text[slice(*token.span)]
            assert token.text
            assert 0 < token.probability <= 1
            assert 0 <= token.d <= 1
    warnings = {one.line: one.warning for one in outputs if one.warning}
    assert warnings == {4: "12,000 tokens, cut after 200", 11: "not UTF-8 (byte 6 of the line)"}


def test_order_and_results_do_not_depend_on_windows():
    generator = make()
    lines = [f"the cat saw {'Zoe ' * (n * 7 % 11)} and {n}" for n in range(40)]
    expected = [generator.generate([line])[0] for line in lines]
    for window in (1, 7, 64):
        outputs = list(generator.stream(iter(lines), window=window))
        assert [one.text for one in outputs] == [one.text for one in expected]
        np.testing.assert_allclose([one.score for one in outputs], [one.score for one in expected], rtol=1e-4)
        assert [one.line for one in outputs] == list(range(1, 41))


def test_a_stream_reads_no_further_than_its_window():
    read = []

    def lines():
        for n in range(1000):
            read.append(n)
            yield "the cat"

    stream = make().stream(lines(), GREEDY, window=10)
    next(stream)
    assert len(read) == 10


def test_copied_words_come_out_as_they_were_written():
    generator = pointing_at_everything(lowercase=True, digits="fold")
    (output,) = generator.generate(["McÉwan  PAID $1,234.50 Zyzzyva"], Search(min_length=3))
    assert len(output.tokens) >= 3
    for token in output.tokens:
        assert token.origin == "copied"
        assert token.text in {"McÉwan", "PAID", "$", "1,234.50", "Zyzzyva"}
        assert output.source.text[slice(*token.span)] == token.text


def test_what_the_corpus_holds_is_what_a_raw_line_becomes(tmp_path):
    source = ["The cat saw 12 cats .", "Zoe saw a house , Zoe did !", "a a b b"]
    for name, lines in (("s", source), ("t", ["le chat Zoe", "Zoe 12 b", "b a"])):
        (tmp_path / name).write_text("".join(line + "\n" for line in lines))
    files = {"source": str(tmp_path / "s"), "target": str(tmp_path / "t")}
    values = {"data": {"train": files, "dev": files}, "text": {"digits": "fold"}, "vocabulary": {"target": 5}}
    config = checked(Config, values)
    corpus = Corpus(prepare(config, tmp_path / "corpus", 1)[0].folder)
    model = Seq2Seq(config.model, len(corpus.lexicon.source), len(corpus.lexicon.target))
    generator = Generator(Run(replace(corpus.lexicon, config=config, dictionary=None), model, {}))
    split = corpus.split("train")
    batch = split.batch(np.arange(3))
    for lines in (generator.read(source), generator.read.prepared(split, range(3))):
        mine = as_batch(lines)
        for name in ("x", "x_mask", "source_words"):
            assert torch.equal(getattr(mine, name), getattr(batch, name))
        assert [[line.raw(j) for j in range(len(line.ids))] for line in lines][2] == ["a", "a", "b", "b"]


def test_a_copied_word_is_translated_where_the_dictionary_has_it():
    dictionary = Dictionary([("zoe", "zoé", 0.9), ("house", "maison", 0.8), ("tom", "tom", 1.0)])
    generator = pointing_at_everything(dictionary=dictionary, policy="dictionary")
    (output,) = generator.generate(["Zoe Tom Ann house"], Search(beam=1, min_length=12))
    expected = {0: ("zoé", "translated"), 1: ("Tom", "copied"), 2: ("Ann", "copied"), 3: ("maison", "translated")}
    assert {token.source for token in output.tokens} <= set(expected)
    assert all((token.text, token.origin) == expected[token.source] for token in output.tokens)
    line = output.source
    assert line.source_words.tolist() == [len(TARGET), len(TARGET) + 1, len(TARGET) + 2, TARGET["maison"]]


def test_entities_come_back_as_the_words_that_they_stood_for():
    generator = make(policy="entities", placeholders=3)
    with torch.no_grad():
        generator.model.output.shortlist.bias[2:5] = 6.0
    tags = [Tagged(["Zoe", "saw", "Tom"], ["B-PER", "O", "B-PER"]), Tagged(["other"], ["O"])]
    outputs = generator.generate(["Zoe saw Tom", "Zoe saw Tom"], Search(beam=2), tags=tags)
    assert outputs[0].source.ids.tolist() == [2, SOURCE["saw"] + 3, 3]
    assert {"Zoe", "Tom"} & {token.text for token in outputs[0].tokens if token.origin == "copied"}
    assert outputs[1].warning == "its tags are those of another text"
    assert not any(text.startswith(" ") for one in outputs for text in [token.text for token in one.tokens])


def test_lines_and_tags_must_be_as_many():
    generator = make(policy="entities", placeholders=3)
    tags = [Tagged(["Zoe"], ["B-PER"])] * 3
    assert len(generator.generate(["Zoe"] * 3, Search(beam=1), tags=tags)) == 3
    for window in (2, 2048):
        with pytest.raises(Misuse, match="there are tags of 3 lines only"):
            list(generator.stream(["Zoe"] * 5, Search(beam=1), tags=tags, window=window))
        with pytest.raises(Misuse, match="there are 2 lines, but tags of more"):
            list(generator.stream(["Zoe"] * 2, Search(beam=1), tags=tags, window=window))
    with pytest.raises(Misuse, match="this run was trained on tagged entities: the lines need tags too"):
        generator.generate(["Zoe"])


def test_entities_that_are_not_anonymised_take_their_tags_only_for_where_tokens_end():
    generator = make(policy="entities", anonymize=False)
    tags = [Tagged(["The", "cat", "-saw"], ["B-PER", "O", "O"])]
    (tagged,) = generator.read(["The cat-saw"], tags)
    assert (tagged.ids.tolist(), tagged.starts.tolist()) == ([SOURCE["the"], SOURCE["cat"], UNK], [0, 4, 7])
    (plain,) = generator.read(["The cat-saw"])
    assert (plain.ids.tolist(), plain.starts.tolist()) == ([SOURCE["the"], UNK], [0, 4])
    (other,) = generator.read(["The cat-saw"], [Tagged(["other"], ["O"])])
    assert (other.ids.tolist(), other.warning) == (plain.ids.tolist(), "its tags are those of another text")


def test_unk_replacement_takes_the_source_word_of_most_attention():
    generator = make(output="softmax")
    with torch.no_grad():
        generator.model.output.shortlist.bias[1] = 50.0
    plain, replaced = (
        generator.generate(["Zoe saw Tom"], Search(beam=1, max_length=4, **{name: True}), locations=True)[0]
        for name in ("allow_unk", "unk_replace")
    )
    assert plain.tokenized == "<unk> <unk> <unk> <unk>"
    assert [token.source for token in replaced.tokens] == [int(token.location.argmax()) for token in plain.tokens]
    assert {token.origin for token in replaced.tokens} == {"copied"}
    assert {token.text for token in replaced.tokens} <= {"Zoe", "saw", "Tom"}


def test_large_vocabulary_at_test():
    generator = make()
    outputs = generator.generate(["the Zoe saw"] * 3, Search(beam=2, large_vocabulary=4, nbest=2))
    allowed = {TARGET.word(number) for number in range(2, 4)}
    for one in outputs:
        words = {
            token.text for some in (one, *one.alternatives) for token in some.tokens if token.origin == "shortlist"
        }
        assert words <= allowed


def test_with_a_large_vocabulary_a_line_has_the_same_output_alone_and_among_others():
    generator, lines = make(seed=3), ["the Zoe saw", "a house .", "cat Tom saw the cat", "Zyzzyva"]
    settings = Search(beam=3, nbest=3, large_vocabulary=2, max_length=6)
    for line, among_others in zip(lines, generator.generate(lines, settings), strict=True):
        (alone,) = generator.generate([line], settings)
        assert [one.text for one in (alone, *alone.alternatives)] == [
            one.text for one in (among_others, *among_others.alternatives)
        ]
        assert among_others.score == pytest.approx(alone.score, abs=1e-5)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]), max_size=20), max_size=4))
def test_any_text_goes_in_and_every_span_is_its_words(lines):
    generator = pointing_at_everything()
    outputs = generator.generate(lines, Search(beam=2, max_length=5))
    assert len(outputs) == len(lines)
    for line, one in zip(lines, outputs, strict=True):
        assert one.source.text == line
        for start, end in zip(one.source.starts, one.source.ends, strict=True):
            assert line[start:end].split() == [line[start:end]]
        assert all(token.text == line[slice(*token.span)] for token in one.tokens)


SCRIPT = """
import sys
from torch import distributed as dist
sys.path.insert(0, sys.argv[1])
from test_generator import make
rank = int(sys.argv[3])
dist.init_process_group("gloo", f"file://{sys.argv[2]}", rank=rank, world_size=2)
lines = [f"the cat saw Zoe {n}" for n in range(11)] if rank == 0 else []
for output in make().stream(lines, window=2, on_all=True):
    print(output.line, output.text, flush=True)
dist.destroy_process_group()
"""


def test_two_processes_print_what_one_prints_in_order(tmp_path):
    command = [sys.executable, "-W", "ignore", "-c", SCRIPT, str(Path(__file__).parent), str(tmp_path / "meeting")]
    processes = [
        subprocess.Popen([*command, rank], env=os.environ | {"OMP_NUM_THREADS": "1"}, stdout=subprocess.PIPE, text=True)
        for rank in ("0", "1")
    ]
    printed = [process.communicate(timeout=120)[0] for process in processes]
    alone = make().generate([f"the cat saw Zoe {n}" for n in range(11)])
    assert printed == ["".join(f"{one.line} {one.text}\n" for one in alone), ""]
