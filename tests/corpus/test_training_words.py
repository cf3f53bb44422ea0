"""Target words counted by `prepare` are those that a count of the file gives, whatever the settings."""

import pytest

from pointing.config import Config, checked
from pointing.corpus.lexicon import Tokenization
from pointing.corpus.preparation import prepare
from pointing.corpus.training_words import TRAINING_WORDS, count_words, load_counts, save_counts
from pointing.errors import Misuse
from pointing.evaluation.measures import count_training_words

TARGET = [
    "Le chat-huant voit Zorblatt 7.", "use %s in /usr/lib/X.so or <b>bold</b>", "", "x \0 y", "word " * 60,
    "Tango-Geräte und Geräte", "--no-option `A B`",
]  # fmt: skip


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"text": {"lowercase": False, "forms": True, "protect": "software"}},
        {"text": {"digits": "fold", "tokenizer": "moses"}},
        {"text": {"subwords": "bpe"}, "pointers": {"places": "words"}, "vocabulary": {"source": 80, "target": 80}},
    ],
)
@pytest.mark.parametrize("workers", [1, 2])
def test_kept_counts_are_those_of_a_new_count(tmp_path, settings, workers, monkeypatch):
    monkeypatch.setattr("pointing.corpus.sources.PAIRS_OF_A_BLOCK", 5)
    target = [line.encode() + b"\n" for line in TARGET * 2] + [b"not \xff UTF-8\r\n"]
    for name in ("train", "dev"):
        (tmp_path / f"{name}.en").write_bytes(b"the tango-cat sees Zorblatt\n" * len(target))
        (tmp_path / f"{name}.fr").write_bytes(b"".join(target))
    data = {name: {s: str(tmp_path / f"{name}.{e}") for s, e in (("source", "en"), ("target", "fr"))}
            for name in ("train", "dev")}  # fmt: skip
    config = checked(Config, {"data": data, "vocabulary": {"source": 20, "target": 20}} | settings)
    prepare(config, tmp_path / "corpus", workers=workers)
    kept = load_counts(tmp_path / "corpus" / TRAINING_WORDS)
    again = count_training_words(tmp_path / "train.fr", Tokenization(config).target)
    assert kept == dict(again.counts)
    assert kept["word"] == 120
    assert list(kept.values()) == sorted(kept.values(), reverse=True)


def test_words_come_back_as_they_were(tmp_path):
    counts = {"a\tb": 3, "\ufeffx": 2, "\u2028": 2, "1": 1}
    save_counts(counts, tmp_path / "words")
    assert load_counts(tmp_path / "words") == counts
    save_counts({}, tmp_path / "words")
    assert load_counts(tmp_path / "words") == {}


@pytest.mark.parametrize("text", ["x\ta\n", "1 a\n", "1\ta\n2\ta\n", "1\t\n", "1234567890123\ta\n"])
def test_damaged_counts_are_refused(tmp_path, text):
    (tmp_path / "words").write_text(text)
    with pytest.raises(Misuse, match="not a count"):
        load_counts(tmp_path / "words")


def test_lines_are_counted_as_they_are_in_a_file():
    tokenizer = Tokenization(checked(Config, {"data": {"train": {"source": "a", "target": "b"}}})).target
    assert count_words([b"A b\r\n", b"a \xff\n"], tokenizer) == {"a": 2, "b": 1, "\ufffd": 1}
