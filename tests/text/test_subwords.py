"""Merges by hand and against a naive loop; what is cut is joined again; from training to generating with pieces."""

import pickle
import shutil
import sys
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
import tiny
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pointing.config import Search
from pointing.corpus.examples import Corpus
from pointing.corpus.preparation import prepare
from pointing.corpus.statistics import show_example, statistics_tables
from pointing.errors import Misuse
from pointing.evaluation.evaluate import System, evaluate
from pointing.evaluation.evaluation_set import EvaluationSet
from pointing.evaluation.significance import Resampling
from pointing.generation.command import load_generator
from pointing.model.run import load_run
from pointing.settings_file import read_config
from pointing.text.subwords import LONGEST_SPLIT, Merges, ends_word, learn_merges, split_into_pieces, without_mark
from pointing.text.token_arrays import tokenize_lines
from pointing.text.tokenizer import Tokenizer
from pointing.text.vocabulary import FIRST, UNK, Vocabulary

COUNTS = {"low": 5, "lower": 2, "newest": 6, "widest": 3}
BPE = {
    "text": {"subwords": "bpe"},
    "vocabulary": {"source": 120, "target": 130, "min_count": 1},
    "pointers": {"policy": "none"},
    "model": {"output": "softmax"},
}


def joined(pieces):
    """The words that pieces make: the mark alone says where a word goes on."""
    return "".join(without_mark(piece) + "\n" * ends_word(piece) for piece in pieces).split("\n")[:-1]


def test_merges_by_hand():
    # Symbols from common to rare, and w. ends its word: e 17, w 11, s 9, t. 9, l 7, o 7, n 6, w. 5, d 3, i 3, r. 2.
    # Of pairs as frequent, the one whose first piece has been known longest comes first.
    merges, found = learn_merges(COUNTS, 11 + 11, min_count=1)
    assert merges.pairs == [
        ("e@@ ", "s@@ "),  # 9, like st.
        ("es@@ ", "t"),  # 9
        ("l@@ ", "o@@ "),  # 7
        ("e@@ ", "w@@ "),  # 6, like ne and west.
        ("n@@ ", "ew@@ "),  # 6, like ewest.
        ("new@@ ", "est"),  # 6
        ("lo@@ ", "w"),  # 5
        ("w@@ ", "i@@ "),  # 3, like id and dest.
        ("d@@ ", "est"),  # 3, like wid
        ("wi@@ ", "dest"),  # 3
        ("e@@ ", "r"),  # 2, like low and we
    ]
    assert list(found)[:11] == ["e@@ ", "w@@ ", "s@@ ", "t", "l@@ ", "o@@ ", "n@@ ", "w", "d@@ ", "i@@ ", "r"]
    assert {piece: count for piece, count in found.items() if count} == {
        **{"low": 5, "lo@@ ": 2, "w@@ ": 2, "er": 2, "newest": 6, "widest": 3}
    }
    assert merges("lowest") == ["lo@@ ", "w@@ ", "est"]
    assert merges("zoo") == ["z@@ ", "o@@ ", "o"]  # characters that nobody knows are pieces too


def test_characters_beyond_half_of_the_vocabulary_are_not_known():
    # 8 of 16 pieces: not d, i and r., so widest and lower are not learned from, and es, ew and ne are seen 6 times each
    merges, found = learn_merges(COUNTS, 16, min_count=1)
    assert merges.pairs[:2] == [("e@@ ", "w@@ "), ("e@@ ", "s@@ ")]
    assert list(found)[:8] == ["e@@ ", "w@@ ", "s@@ ", "t", "l@@ ", "o@@ ", "n@@ ", "w"]


def test_what_is_seen_too_seldom_is_neither_known_nor_merged():
    merges, found = learn_merges(COUNTS, 100, min_count=6)
    assert merges.pairs == [("e@@ ", "w@@ "), ("e@@ ", "s@@ "), ("n@@ ", "ew@@ "), ("es@@ ", "t"), ("new@@ ", "est")]
    assert "w" not in found


def naive(counts, size, min_count):
    """Byte-pair merges as they are defined, everything counted anew at every step."""
    symbols = {word: [*(letter + "@@ " for letter in word[:-1]), word[-1]] for word in counts}
    single = Counter()
    for word, some in symbols.items():
        for symbol in some:
            single[symbol] += counts[word]
    ranked = sorted((s for s in single if single[s] >= min_count), key=lambda s: (-single[s], s))
    order, others = ranked[: max(1, size // 2)], ranked[max(1, size // 2) :]
    symbols = {word: some for word, some in symbols.items() if set(some) <= set(order)}
    pairs = []
    while len(order) < size:
        seen = Counter()
        for word, some in symbols.items():
            for pair in pairwise(some):
                seen[pair] += counts[word]
        best = min(seen, key=lambda pair: (-seen[pair], *map(order.index, pair)), default=None)
        if best is None or seen[best] < min_count:
            break
        made = best[0].removesuffix("@@ ") + best[1]
        pairs.append(best)
        order += [made] * (made not in order)
        for some in symbols.values():
            for place in range(len(some) - 1):
                if tuple(some[place : place + 2]) == best:
                    some[place : place + 2] = [made]
    return pairs, order + others[: size - len(order)]


@settings(deadline=None)
@example({"da": 1, "bacc": 1, "aaabb": 1}, 12, 1)  # the only word that ends with a known a has an unknown d
@given(
    st.dictionaries(st.text("abcde", min_size=1, max_size=6), st.integers(1, 9), max_size=8),
    st.integers(1, 30),
    st.integers(1, 4),
)
def test_learning_equals_a_naive_loop(counts, size, min_count):
    merges, found = learn_merges(counts, size, min_count)
    pairs, order = naive(counts, size, min_count)
    assert merges.pairs == pairs
    assert list(found) == order


HARD = ["@@", "a@@", "@@@@", "a@@b", "<unk>", "</s>", "</w>", "#", "￨", "x" * (LONGEST_SPLIT + 1), "\ufeff", "İstanbul"]
text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n"), max_size=12) | st.sampled_from(HARD)
lines = st.lists(st.lists(text, max_size=5).map(" ".join), max_size=5)


@settings(max_examples=60, deadline=None)
@given(learned=lines, read=lines)
@example(learned=["a@@ a@@ @@ <unk> </w>"] * 3, read=["@@ a@@ a @@b", "", "</w> <unk>"])
def test_pieces_are_the_words_again_each_in_its_place(learned, read):
    tokenizer = Tokenizer("regex", lowercase=True)
    merges, found = learn_merges(Counter(word for line in learned for word in tokenizer.words(line)), 40, 1)
    words = tokenize_lines(tokenizer, [*learned, *read])
    pieces, token = split_into_pieces(words, merges)
    assert pieces.counts.sum() == len(pieces.ids) == len(token)
    at = 0
    for line, count in zip([*learned, *read], pieces.counts.tolist(), strict=True):
        here = slice(at, at + count)
        forms = [pieces.words[n] for n in pieces.ids[here]]
        assert joined(forms) == tokenizer.words(line)
        for form, n, start, end in zip(forms, token[here], pieces.starts[here], pieces.ends[here], strict=True):
            assert words.starts[n] <= start < end <= words.ends[n]
            own = words.ends[n] - words.starts[n] == len(words.words[words.ids[n]])
            if own:
                assert tokenizer.normalise(line[start:end]) == form.removesuffix("@@ ") or not line.isascii()
            else:
                assert (start, end) == (words.starts[n], words.ends[n])
        at = here.stop
    assert all(map(without_mark, found))  # no piece is empty


def test_a_word_whose_length_changed_gives_its_pieces_its_whole_span():
    words = tokenize_lines(Tokenizer("whitespace", lowercase=True), ["x ab İs"])  # i, a dot above, s: 3 for 2
    pieces, token = split_into_pieces(words, Merges([]))
    assert [pieces.words[n] for n in pieces.ids] == ["x", "a@@ ", "b", "i@@ ", "\u0307@@ ", "s"]
    assert pieces.starts.tolist() == [0, 2, 3, 5, 5, 5]
    assert pieces.ends.tolist() == [1, 3, 4, 7, 7, 7]
    assert token.tolist() == [0, 1, 1, 2, 2, 2]


def test_very_long_words_stay_whole():
    merges, found = learn_merges({"ab" * LONGEST_SPLIT: 9, "ab": 1}, 20, 1)
    assert merges("ab" * LONGEST_SPLIT) == ["ab" * LONGEST_SPLIT]
    assert found == {"a@@ ": 0, "b": 0, "ab": 1}


def test_merges_are_saved_whole_and_loaded_as_they_were(tmp_path):
    merges, _ = learn_merges({"a@@": 5, "@@b": 4, "</w>": 3, "\ufeffa\u2028": 2}, 40, 1)
    assert len(merges.pairs) > 8
    merges.save(tmp_path / "x.merges")
    for other in (Merges.load(tmp_path / "x.merges"), pickle.loads(pickle.dumps(merges))):
        assert other.pairs == merges.pairs
        assert other("a@@b</w>") == merges("a@@b</w>")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, r"x\.merges: there is no such file"),
        (b"\xff", r"x\.merges: not merges of subwords \(it is not UTF-8 \(byte 1 of the file\)\)"),
        (b"#version: 0.2\na b\n", r"x\.merges: not merges of subwords .*no pointing-merges-1 on top"),
        (b"pointing-merges-1\na@@ \tb\na b\n", r"x\.merges:3: not two pieces"),
        (b"pointing-merges-1\na@@\tb\n", r"x\.merges:2: not two pieces"),  # an editor has taken off the space
        (b"pointing-merges-1\na@@ \t\n", r"x\.merges:2: not two pieces"),
    ],
)
def test_what_are_no_merges_is_said(tmp_path, content, message):
    if content is not None:
        (tmp_path / "x.merges").write_bytes(content)
    with pytest.raises(Misuse, match=message):
        Merges.load(tmp_path / "x.merges")


def test_without_the_extra_it_is_said_how_to_get_it_before_any_work(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(Misuse, match=r"pip install 'pointing\[subwords\]'"):
        learn_merges(COUNTS, 20, 1)
    monkeypatch.setattr("pointing.corpus.preparation.in_order", None)
    with pytest.raises(Misuse, match=r"pip install 'pointing\[subwords\]'"):
        prepare(read_config(tiny.write(tmp_path, BPE)), tmp_path / "corpus")


def test_a_vocabulary_of_pieces_has_the_size_that_was_asked_for():
    vocabulary = Vocabulary.of_pieces(COUNTS, 24, 1)
    assert len(vocabulary) == 24
    assert vocabulary.words[:3] == ["newest", "low", "widest"]
    assert vocabulary.counts == sorted(vocabulary.counts, reverse=True)
    assert vocabulary["zoo"] == UNK
    assert len(Vocabulary.of_pieces(COUNTS, 12, 1)) == 12


def test_a_prepared_corpus_in_pieces(tmp_path):
    config = read_config(tiny.write(tmp_path, BPE))
    corpus, _ = prepare(config, tmp_path / "corpus", workers=1)
    words, _ = prepare(read_config(tiny.write(tmp_path)), tmp_path / "words", workers=1)
    assert (len(corpus.lexicon.source), len(corpus.lexicon.target)) == (120, 130)
    train, plain = corpus.split("train"), words.split("train")
    assert len(train) == len(plain)  # the same pairs
    for row in range(0, len(train), 20):
        example, other = train[row], plain[row]
        source, target = (
            [side.word(n) for n in ids]
            for side, ids in (
                (corpus.lexicon.source, example["source"]),
                (corpus.lexicon.target, example["target"][:-1]),
            )
        )
        assert joined(source) == example["source_text"].split()
        assert joined(target) == example["target_text"].lower().split()
        raw = [example["source_text"][a:b] for a, b in zip(example["starts"], example["ends"], strict=True)]
        assert "".join(raw) == example["source_text"].replace(" ", "")
        assert set(other["starts"]) <= set(example["starts"])
    counted = corpus.about["statistics"]["train"]
    assert counted["source_tokens"] == words.about["statistics"]["train"]["source_tokens"]
    assert counted["target_pieces"] == train.target_lengths.sum() - len(train)
    assert counted["pieces_per_word"] > 1.2
    table = statistics_tables(corpus, config.training)[0]
    assert "120 source and 130 target pieces" in table.title
    assert table.rows[0][4] == f"{counted['pieces_per_word']:.2f}"
    assert "@@ " in show_example(corpus, 0)
    assert Corpus(tmp_path / "corpus").lexicon.target.merges.pairs == corpus.lexicon.target.merges.pairs


def test_pieces_that_nobody_knows_are_pointed_at(tmp_path):
    for name in ("train", "dev"):
        for side in ("source", "target"):
            (tmp_path / f"{name}.{side}").write_text("ab ab ab\n" * 9 + "ab 字ab\n")
    changes = {"vocabulary": {"source": 8, "target": 8, "min_count": 2}, "pointers": {"policy": "unknown-words"}}
    corpus, _ = prepare(read_config(tiny.write(tmp_path, BPE, changes)), tmp_path / "corpus", workers=1)
    example, V = corpus.split("train")[9], len(corpus.lexicon.target)
    assert example["target"] == [corpus.lexicon.target["ab"], V + 1, corpus.lexicon.target["ab"], 0]
    assert example["source_text"][example["starts"][1] : example["ends"][1]] == "字"


def test_word2vec_has_a_vector_for_every_piece_of_the_text(tmp_path):
    pytest.importorskip("gensim")
    changes = {"embeddings": {"source": "word2vec", "width": 5}}
    corpus, _ = prepare(read_config(tiny.write(tmp_path, BPE, changes)), tmp_path / "corpus", workers=1)
    vectors = np.load(tmp_path / "corpus" / "source.vectors.npy")
    assert vectors.shape == (120, 5)
    seen = [FIRST + rank for rank, count in enumerate(corpus.lexicon.source.counts) if count]
    assert np.isfinite(vectors[seen]).all()


@pytest.mark.parametrize("output", ["softmax", "pointer-softmax"])
def test_trained_on_pieces_it_writes_words_wherever_the_folder_is(tmp_path, output):
    policy = {"pointers": {"policy": "none" if output == "softmax" else "all-matches"}, "model": {"output": output}}
    tiny.train_in(tmp_path / "here", tmp_path / "here" / "run", BPE, policy, {"training": {"score": "bleu"}})
    lines = ["a b name123456 c", "", "q " * 300, "d é字 @@ <unk>"]
    before = load_generator(tmp_path / "here" / "run").generate(lines, Search(beam=2))
    shutil.move(tmp_path / "here" / "run", tmp_path / "run")
    shutil.rmtree(tmp_path / "here")
    run = load_generator(tmp_path / "run")
    after = run.generate(lines, Search(beam=2), locations=True)
    assert [one.json() for one in before] == [one.json() for one in after]
    for one in after:
        assert not any(" " in token.text for token in one.tokens)  # no piece's mark is left; a literal @@ may be copied
        assert " ".join(token.text for token in one.tokens) == one.tokenized
        for token in one.tokens:
            assert 0 < token.probability <= 1
            assert token.location.shape == one.source.ids.shape
            if token.origin == "copied":
                assert one.source.text[slice(*token.span)] == token.text
                assert one.source.starts[token.source] <= token.span[0] < token.span[1] <= one.source.ends[token.source]
    assert [one.source.raw(n) for n in range(4) for one in after[:1]] == lines[0].split()
    assert after[2].warning == "300 tokens, cut after 200"
    (tmp_path / "run" / "source.merges").unlink()
    with pytest.raises(Misuse, match=r"source\.merges: these merges of subwords cannot be read"):
        load_run(tmp_path / "run")


def test_a_line_of_very_many_pieces_is_cut(tmp_path):
    read = load_generator(tiny.untrained(tmp_path, BPE)).read
    (line,) = read([" ".join(f"name{10**19 + n}" for n in range(100))])
    assert len(line.ids) == len(line.pieces.forms) == 800
    assert "pieces, cut after 800" in line.warning
    assert line.pieces.words.warning == line.warning


def test_runs_of_words_and_of_pieces_are_compared_in_words(tmp_path):
    runs = [
        (name, load_run(tiny.untrained(tmp_path, *changes, name=name)))
        for name, changes in (("words", ()), ("pieces", (BPE,)))
    ]
    test, few = EvaluationSet.read(tmp_path / "dev.source", [tmp_path / "dev.target"]), Resampling(20, 20)
    systems = [System(name, run, Search(beam=1, max_length=20)) for name, run in runs]
    report = evaluate(systems, test, resampling=few)
    shortlists = [
        next(m.signature for m in system.measures if m.name == "out-of-shortlist recall") for system in report.systems
    ]
    assert shortlists[0] == shortlists[1]  # measured by the same words
    assert not any("pieces" in note for note in report.notes)
    report = evaluate(systems[1:], test, resampling=few)
    assert any("words of several pieces count as outside the shortlist" in note for note in report.notes)


def test_the_switch_of_a_run_of_pieces_is_measured(tmp_path):
    changes = {"pointers": {"policy": "all-matches"}, "model": {"output": "pointer-softmax"}}
    run = load_run(tiny.untrained(tmp_path, BPE, changes))
    system = System("x", run, Search(beam=1, max_length=20))
    test = EvaluationSet.read(tmp_path / "dev.source", [tmp_path / "dev.target"])
    report = evaluate([system], test, resampling=Resampling(20, 20))
    assert {"switch accuracy", "pointer accuracy", "copies right"} <= {m.name for m in report.systems[0].measures}
