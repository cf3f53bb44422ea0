"""Vocabularies that go on from those of another run: which words they get, in which order, and when they are made."""

import json

import pytest
import tiny

from pointing.config import Config, checked
from pointing.corpus import preparation
from pointing.corpus.base import Base, extended
from pointing.corpus.lexicon import Lexicon
from pointing.errors import Misuse
from pointing.model.run import load_lexicon
from pointing.text.subwords import Merges
from pointing.text.vocabulary import Vocabulary

BASE = Vocabulary(["b", "a"], [5, 3])
TEXT = Vocabulary(["c", "a", "e", "d"], [9, 4, 4, 1])
OLD = ["the cat sees Zorblatt", "the dog sees the cat", "the cat and the dog"]
NEW = ["the ox sees Zorblatt", "the ox sees the gnu", "the gnu and the ox", "the yak"]


def settings(folder, lines, **changes):
    """Settings of a text whose target is its source in capitals, without case folding."""
    for name, chosen in {"train": lines, "dev": lines[:1]}.items():
        (folder / f"{name}.en").write_text("".join(f"{line}\n" for line in chosen))
        (folder / f"{name}.fr").write_text("".join(f"{line.upper()}\n" for line in chosen))
    files = {
        name: {"source": str(folder / f"{name}.en"), "target": str(folder / f"{name}.fr")} for name in ("train", "dev")
    }
    return checked(Config, {"data": files, "text": {"lowercase": False}} | changes)


def prepared(folder, config, base=None, name="corpus"):
    return preparation.prepare(config, folder / name, workers=1, base=base)


@pytest.fixture
def old(tmp_path):
    """The lexicon of a corpus."""
    (tmp_path / "old").mkdir()
    return prepared(tmp_path / "old", settings(tmp_path / "old", OLD))[0].lexicon


@pytest.mark.parametrize(
    ("size", "words", "counts"),
    [
        (None, ["b", "a", "c", "e", "d"], [5, 3, 9, 4, 1]),
        (6, ["b", "a", "c", "e"], [5, 3, 9, 4]),  # the end of sentence and the unknown word are two of the six
        (4, ["b", "a"], [5, 3]),
        (3, ["b", "a"], [5, 3]),  # no word is taken away
    ],
)
def test_words_of_the_base_stay_and_the_most_frequent_others_follow(size, words, counts):
    vocabulary = extended(BASE, TEXT, size, "vocabulary.source")
    assert (vocabulary.words, vocabulary.counts) == (words, counts)
    assert [vocabulary[word] for word in BASE.words] == [BASE[word] for word in BASE.words] == [2, 3]


def test_words_that_find_no_room_are_said(capsys):
    extended(BASE, TEXT, 5, "vocabulary.target")
    room = "vocabulary.target=5 has room for 1 of 3 new words, beside the 2 of the other run: raise it to learn more"
    assert capsys.readouterr().err == room + "\n"
    extended(BASE, TEXT, 7, "vocabulary.target")
    assert capsys.readouterr().err == ""


def test_placeholders_are_those_that_the_new_settings_ask_for():
    vocabulary = extended(Vocabulary(["b"], [5], placeholders=3), Vocabulary(["c"], [1], placeholders=2), None, "")
    assert (vocabulary.placeholders, vocabulary["b"], vocabulary["c"]) == (2, 4, 5)


@pytest.mark.parametrize(
    ("forms", "writings"),
    [
        (True, {"a": "A", "new": "NEW"}),  # `b` is written as it is: the run has learned forms on top of that
        (False, {"a": "a!", "b": "B", "new": "NEW"}),
    ],
)
def test_words_are_written_as_the_base_knows_them(forms, writings):
    vocabulary = Vocabulary(["b", "a"], [5, 3], writings={"a": "A"} if forms else {})
    base = Base(BASE, vocabulary, forms, True, "")
    assert base.writings({"a": "a!", "b": "B", "new": "NEW"}) == writings


def test_a_corpus_has_the_words_of_the_run_and_those_of_its_own_text(tmp_path, old):
    corpus, _ = prepared(tmp_path, settings(tmp_path, NEW), Base.of(old, grow=True))
    source = corpus.lexicon.source
    assert old.source.words == ["the", "cat", "dog", "sees", "Zorblatt", "and"]
    assert source.words == [*old.source.words, "ox", "gnu", "yak"]  # 3, 2 and 1 times
    assert corpus.lexicon.target.words[-3:] == ["OX", "GNU", "YAK"]
    assert corpus.split("train")[1]["source"] == [source[word] for word in NEW[1].split()] == [2, 8, 5, 2, 9]


def test_only_words_that_are_frequent_enough_are_added(tmp_path, old):
    config = settings(tmp_path, NEW, vocabulary={"min_count": 2})
    corpus, _ = prepared(tmp_path, config, Base.of(old, grow=True))
    assert corpus.lexicon.source.words == [*old.source.words, "ox", "gnu"]


def test_a_kept_vocabulary_stays_as_it_is(tmp_path, old):
    corpus, _ = prepared(tmp_path, settings(tmp_path, NEW), Base.of(old, grow=False))
    for before, now in ((old.source, corpus.lexicon.source), (old.target, corpus.lexicon.target)):
        assert (now.words, now.counts) == (before.words, before.counts)
    V = len(old.target)
    assert corpus.split("train")[0]["target"] == [old.target["THE"], 1, old.target["SEES"], old.target["ZORBLATT"], 0]
    assert len(corpus.lexicon.target) == V


def test_what_a_corpus_begins_with_decides_whether_it_is_made_anew(tmp_path, old):
    config, grown, kept = settings(tmp_path, NEW), Base.of(old, grow=True), Base.of(old, grow=False)
    other = Base.of(Lexicon(old.config, Vocabulary(["the"], [3]), old.target), grow=True)
    order = [(None, True), (grown, True), (grown, False), (kept, True), (other, True), (grown, True), (None, True)]
    assert [prepared(tmp_path, config, base)[1] for base, _ in order] == [made for _, made in order]


def test_the_grown_vocabularies_make_the_same_corpus_without_those_they_grew_from(tmp_path, old):
    config, grown = settings(tmp_path, NEW), Base.of(old, grow=True)
    first, _ = prepared(tmp_path, config, grown, "first")
    own = Base.of(first.lexicon, grow=False)._replace(fingerprint=grown.fingerprint)
    assert prepared(tmp_path, config, own, "second")[1]
    for path in (tmp_path / "first").iterdir():
        assert path.read_bytes() == (tmp_path / "second" / path.name).read_bytes(), path.name


def test_pieces_of_words_are_kept(tmp_path):
    pytest.importorskip("tokenizers")
    bpe = {"text": {"subwords": "bpe"}, "vocabulary": {"source": 40, "target": 41}}
    (tmp_path / "old").mkdir()
    old = prepared(tmp_path / "old", settings(tmp_path / "old", OLD, **bpe))[0].lexicon
    corpus, _ = prepared(tmp_path, settings(tmp_path, NEW, **bpe), Base.of(old, grow=True))
    for before, now in ((old.source, corpus.lexicon.source), (old.target, corpus.lexicon.target)):
        assert now.words == before.words
        assert now.merges.pairs == before.merges.pairs


@pytest.mark.parametrize(
    ("merges", "changes", "message"),
    [
        (None, {"text": {"subwords": "bpe"}}, "hold whole words: set text.subwords=null"),
        (Merges([]), {}, "hold pieces of words: set text.subwords=bpe"),
        (None, {"embeddings": {"target": "word2vec"}}, "embeddings.target does nothing, since with --from"),
    ],
)
def test_settings_that_do_not_fit_are_misuse(tmp_path, merges, changes, message):
    config, words = settings(tmp_path, NEW, **changes), Vocabulary(["a"], [1], merges=merges)
    with pytest.raises(Misuse, match=message):
        prepared(tmp_path, config, Base.of(Lexicon(config, words, words), grow=True))
    assert not (tmp_path / "corpus").exists()


def test_the_command_prepares_what_training_will_need(tmp_path):
    run = tiny.untrained(tmp_path / "old", train=30, dev=5)
    config = settings(tmp_path, NEW)
    (tmp_path / "new.yaml").write_text(json.dumps(config.model_dump(mode="json")))
    arguments = ["prepare", tmp_path / "new.yaml", "--out", tmp_path / "corpus", "--from", run, "--workers", 1]
    assert tiny.said(*arguments)[0] in (0, None)
    base = Base.of(load_lexicon(run), grow=True)
    assert not prepared(tmp_path, config, base)[1]
    assert tiny.said(*arguments, "--keep-vocabulary")[0] in (0, None)
    assert not prepared(tmp_path, config, Base.of(load_lexicon(run), grow=False))[1]
    code, said = tiny.said(*arguments[:4], "--keep-vocabulary")
    assert (code, said) == (2, "pointing: --keep-vocabulary is for --from: without it there is no vocabulary to keep\n")
