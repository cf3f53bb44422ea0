"""Raw files through the real command to a corpus on disk, and everything that can be wrong with raw files."""

import gzip
import json
import random
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import forked
import numpy as np
import pytest

from pointing.config import Config, Training, checked
from pointing.corpus import preparation, sources
from pointing.corpus.examples import Corpus
from pointing.corpus.statistics import show_example, statistics_tables
from pointing.errors import Misuse
from pointing.generation.reader import LineReader
from pointing.text.forms import CAPITAL, JOINED, NO_BREAK, UPPER, case_between
from pointing.text.vocabulary import EOS, UNK

SOURCE = ["the cat sees Zorblatt 7 .", "the dog sees the cat .", "the cat and the dog .", "Quux sees Quux ."] * 3
TARGET = ["le chat voit Zorblatt 7 .", "le chien voit le chat .", "le chat et le chien .", "Quux voit Quux ."] * 3


def files(folder, source=SOURCE, target=TARGET, dev=2):
    """Files and the settings that name them; a vocabulary of the 8 most frequent words."""
    for name, lines in {"train.en": source, "train.fr": target, "dev.en": SOURCE[:dev], "dev.fr": TARGET[:dev]}.items():
        content = b"".join((line if isinstance(line, bytes) else line.encode()) + b"\n" for line in lines)
        (folder / name).write_bytes(content)
    return {
        "data": {
            "train": {"source": str(folder / "train.en"), "target": str(folder / "train.fr")},
            "dev": {"source": str(folder / "dev.en"), "target": str(folder / "dev.fr")},
        },
        "vocabulary": {"source": 8, "target": 8},
    }


def prepared(folder, settings, name="corpus", **changes):
    return preparation.prepare(checked(Config, settings | changes), folder / name, workers=1)[0]


def command(folder, settings, *arguments):
    (folder / "x.yaml").write_text(json.dumps(settings))
    return forked.run("prepare", "x.yaml", "--out", "corpus", *arguments, cwd=folder)


def test_one_pair_from_raw_line_to_tensors(tmp_path):
    corpus = prepared(tmp_path, files(tmp_path))
    example = corpus.split("train")[0]
    V = len(corpus.lexicon.target)
    assert V == 8
    assert corpus.lexicon.target.words == ["le", ".", "chat", "voit", "chien", "quux"]  # 15, 12, 9, 9, 6, 6
    raw = [example["source_text"][start:end] for start, end in zip(example["starts"], example["ends"], strict=True)]
    assert raw == ["the", "cat", "sees", "Zorblatt", "7", "."]
    choices = [corpus.lexicon.target.word(n) if n < V else raw[n - V] for n in example["target"]]
    assert choices == ["le", "chat", "voit", "Zorblatt", "7", ".", None]
    assert example["target"][3:5] == [V + 3, V + 4]
    assert example["target"][-1] == example["target_words"][-1] == EOS
    assert example["target_words"][3] == V + 3
    assert corpus.split("train")[2]["target_words"][2] == UNK  # `et` is nowhere
    assert example["source_words"] == [V, V + 1, V + 2, V + 3, V + 4, corpus.lexicon.target["."]]
    assert example["line"] == 1


def test_copies_come_out_as_they_were_written(tmp_path):
    settings = files(tmp_path, ["I like ZorBlatt's İstanbul 1999"], ["J'aime ZorBlatt İstanbul 1999"], dev=1)
    settings["vocabulary"] = {"target": 3}
    text, pointers = {"lowercase": True, "digits": "fold"}, {"policy": "all-matches"}
    corpus = prepared(tmp_path, settings, text=text, pointers=pointers)
    example = corpus.split("train")[0]
    V = len(corpus.lexicon.target)
    copied = [
        example["source_text"][example["starts"][n - V] : example["ends"][n - V]] for n in example["target"] if n >= V
    ]
    assert copied == ["ZorBlatt", "İstanbul", "1999"]


def test_statistics_by_hand(tmp_path):
    corpus = prepared(tmp_path, files(tmp_path))
    train = corpus.about["statistics"]["train"]
    # each of the 3 rounds: 22 target words; outside the shortlist Zorblatt, 7 (both reached) and et (not)
    assert (train["pairs"], train["target_tokens"], train["unknown"], train["same_word"]) == (12, 66, 9, 6)
    assert train["pointers_per_100"] == pytest.approx(100 * 6 / 12)
    assert train["unknown_share"] == pytest.approx(9 / 66)
    assert train["reached_by_same_word"] == pytest.approx(6 / 9)


@pytest.mark.parametrize("how", ["given", "induced"])
def test_a_dictionary_reaches_what_the_same_word_does_not(tmp_path, how):
    settings = files(tmp_path)
    if how == "given":
        (tmp_path / "words.tsv").write_text("and\tet\nAND\tEt\n")
    dictionary = str(tmp_path / "words.tsv") if how == "given" else "induced"
    corpus = prepared(tmp_path, settings, pointers={"policy": "dictionary", "dictionary": dictionary})
    assert "and" in corpus.lexicon.dictionary.senses("et")
    V = len(corpus.lexicon.target)
    assert corpus.split("train")[2]["target"][2] == V + 2
    assert corpus.about["statistics"]["train"]["reached_by_same_word_or_dictionary"] == 1


def tag(folder, settings, *names):
    """Tag files for the files: these words are names, the others none."""
    for split in ("train", "dev"):
        for side in ("source", "target"):
            path = Path(settings["data"][split][side])
            tokens = [line.split() for line in path.read_text().splitlines()]
            tagged = [" ".join(f"{w}￨{'B-PER' if w in names else 'O'}" for w in line) for line in tokens]
            settings["data"][split][f"{side}_tags"] = str(folder / f"{path.name}.ner.gz")
            (folder / f"{path.name}.ner.gz").write_bytes(gzip.compress("".join(f"{x}\n" for x in tagged).encode()))
    settings["vocabulary"] = {}


def test_entities_from_tag_files(tmp_path):
    settings = files(tmp_path)
    tag(tmp_path, settings, "Zorblatt", "Quux")
    corpus = prepared(tmp_path, settings, pointers={"policy": "entities"}, text={"max_tokens": 20})
    V = len(corpus.lexicon.target)
    first, last = corpus.split("train")[0], corpus.split("train")[3]
    assert first["target"][3] == V + 3
    assert [n for n in first["target"] if n >= V] == [V + 3]
    assert [n for n in last["target"] if n >= V] == [V, V]  # the same entity twice, the first place both times
    assert first["source"][3] == last["source"][0]  # placeholders are shared between documents
    assert "zorblatt" not in corpus.lexicon.source
    assert corpus.about["statistics"]["train"]["pointers"] == 9


def test_entities_that_keep_their_words(tmp_path):
    settings = files(tmp_path)
    tag(tmp_path, settings, "Zorblatt", "Quux")
    corpus = prepared(tmp_path, settings, pointers={"policy": "entities", "anonymize": False})
    V, (first, last) = len(corpus.lexicon.target), (corpus.split("train")[row] for row in (0, 3))
    assert len(corpus.lexicon.target.words) == V - 2  # no placeholders
    assert first["target"][:4] == [
        *(corpus.lexicon.target[word] for word in ("le", "chat", "voit")),
        V + 3,
    ]  # known or not
    assert first["target_words"][3] == corpus.lexicon.target["zorblatt"]
    assert last["target"][:3] == [V, corpus.lexicon.target["voit"], V]
    assert last["source"] == [corpus.lexicon.source[word] for word in ("quux", "sees", "quux", ".")]


def test_pointers_are_the_same_with_and_without_anonymising(tmp_path):
    rng = random.Random(1)
    for name, pairs in (("train", 300), ("dev", 5)):  # any word may be tagged in one place and not in another
        for side in ("source", "target"):
            lines = [[rng.choice("abcdef") for _ in range(rng.randint(1, 9))] for _ in range(pairs)]
            (tmp_path / f"{name}.{side}").write_text("".join(" ".join(line) + "\n" for line in lines))
            tagged = [" ".join(f"{word}￨{rng.choice(['O', 'B-PER', 'I-LOC'])}" for word in line) for line in lines]
            (tmp_path / f"{name}.{side}_tags").write_text("".join(f"{line}\n" for line in tagged))
    kinds = ("source", "target", "source_tags", "target_tags")
    data = {name: {kind: str(tmp_path / f"{name}.{kind}") for kind in kinds} for name in ("train", "dev")}
    pointers = []
    for number, anonymize in enumerate((True, False)):
        settings = {"data": data, "pointers": {"policy": "entities", "anonymize": anonymize}}
        corpus = prepared(tmp_path, settings, str(number), vocabulary={"target": 5})
        V, split = len(corpus.lexicon.target), corpus.split("train")
        pointers.append([[n - V if n >= V else None for n in split[row]["target"]] for row in range(len(split))])
    assert pointers[0] == pointers[1]
    assert sum(place is not None for line in pointers[0] for place in line) > 300


def test_entities_by_spacy(tmp_path):
    spacy = pytest.importorskip("spacy")
    pipeline = spacy.blank("en")
    pipeline.add_pipe("entity_ruler").add_patterns([{"label": "PER", "pattern": "Zorblatt"}])
    pipeline.to_disk(tmp_path / "rules")
    corpus = prepared(
        tmp_path,
        files(tmp_path),
        pointers={"policy": "entities", "tagger": str(tmp_path / "rules")},
        text={"max_tokens": 5 + 1},
    )
    assert corpus.about["statistics"]["train"]["pointers"] == 3


@pytest.mark.parametrize("changes", [{}, {"text": {"subwords": "bpe"}, "vocabulary": {"source": 40, "target": 40}}])
def test_several_workers_make_the_same_corpus_as_one(tmp_path, monkeypatch, changes):
    settings = files(tmp_path) | changes
    one = prepared(tmp_path, settings, "one")
    monkeypatch.setattr(sources, "PAIRS_OF_A_BLOCK", 2)
    two, _ = preparation.prepare(checked(Config, settings), tmp_path / "two", workers=2)
    assert one.split("train").groups[0].to_pylist() == two.split("train").groups[0].to_pylist()
    assert one.about["statistics"] == two.about["statistics"]


def test_names_are_of_what_copying_writes(tmp_path):
    """Prepared, and read at test: a place whose word the dictionary has is called by its translation."""
    settings = files(tmp_path)
    (tmp_path / "words.tsv").write_text("zorblatt\tmachin\nthe\tle\ncat\tchat\n7\tsept\n")
    lines = ["the cat sees Zorblatt 7 . tool"], ["le chat voit machin sept . Zorblatt"]
    (tmp_path / "dev.en").write_text(lines[0][0] + "\n")
    (tmp_path / "dev.fr").write_text(lines[1][0] + "\n")
    pointers = {"policy": "dictionary", "dictionary": str(tmp_path / "words.tsv")}
    corpus = prepared(tmp_path, settings, pointers=pointers)
    example, V = corpus.split("dev")[0], len(corpus.lexicon.target)
    le, chat = corpus.lexicon.target["le"], corpus.lexicon.target["chat"]
    assert example["source_words"] == [le, chat, V + 2, V + 3, V + 4, corpus.lexicon.target["."], V + 6]
    reader = LineReader(replace(corpus.lexicon, config=checked(Config, settings | {"pointers": pointers})))
    assert reader(lines[0])[0].source_words.tolist() == example["source_words"]
    # What is to be learned points at the sources of machin and sept. The last word has none: copying it writes machin.
    assert example["target"][3:7] == [V + 3, V + 4, corpus.lexicon.target["."], UNK]
    assert example["target_words"][3:7] == [V + 3, V + 4, corpus.lexicon.target["."], UNK]
    # Of the three unknown words only Zorblatt stands in the source; copying reaches machin and sept, but not Zorblatt.
    dev = corpus.about["statistics"]["dev"]
    assert dev["reached_by_same_word"] == pytest.approx(1 / 3)
    assert dev["reached_by_same_word_or_dictionary"] == pytest.approx(2 / 3)


def test_what_a_terminal_would_obey_is_not_shown(tmp_path):
    odd = ["Quux\x1b[2J sees Zorblatt \x07"] * 4
    corpus = prepared(tmp_path, files(tmp_path, odd, odd))
    assert "\x1b" not in show_example(corpus, 0)
    assert "\x07" not in show_example(corpus, 0)


def test_run_again_with_nothing_changed_it_does_nothing(tmp_path):
    settings = files(tmp_path)
    first = command(tmp_path, settings, "--show", "1")
    assert first.returncode == 0, first.stderr
    assert "Zorblatt₃" in first.stdout
    before = (tmp_path / "corpus" / "train.arrow").stat().st_mtime_ns
    again = command(tmp_path, settings)
    assert "was prepared already" in again.stdout
    assert (tmp_path / "corpus" / "train.arrow").stat().st_mtime_ns == before
    (tmp_path / "train.en").touch()  # the same words at another time
    assert "was prepared already" in command(tmp_path, settings).stdout
    changed = command(tmp_path, settings, "--set", "vocabulary.target=5", "--json")
    assert json.loads(changed.stdout)["train"]["unknown"] > 9
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "corpus",
        "dev.en",
        "dev.fr",
        "train.en",
        "train.fr",
        "x.yaml",
    ]


@pytest.mark.parametrize("is_table", [False, True])
def test_files_are_hashed_while_they_are_read(tmp_path, is_table, monkeypatch):
    settings = files(tmp_path)
    if is_table:
        rows = (f"{source},{target}\n" for source, target in zip(SOURCE, TARGET, strict=True))
        (tmp_path / "x.csv").write_text("en,fr\n" + "".join(rows))
        settings["data"] = {"train": [str(tmp_path / "x.csv")], "dev": settings["data"]["dev"]}
    monkeypatch.setattr("pointing.system.digests.digest", pytest.fail)
    prepared(tmp_path, settings)


LONG = " ".join(["word"] * 100_000)


@pytest.mark.parametrize(
    ("source", "target", "reason", "line"),
    [
        (b"not \xff\xfe UTF-8", b"x", "not UTF-8", 13),
        (b"a \0 b", b"x", "a NUL character", 13),
        (b"", b"x", "an empty side", 13),
        (b"x", " \t\u2003".encode(), "an empty side", 13),
        (LONG.encode(), b"x", "more than 50 tokens", 13),
    ],
)
def test_a_bad_pair_is_left_out_counted_and_named(tmp_path, source, target, reason, line):
    corpus = prepared(tmp_path, files(tmp_path, [*SOURCE, source, "the last"], [*TARGET, target, "le dernier"]))
    train = corpus.about["statistics"]["train"]
    assert train["skipped"] == {reason: 1}
    assert train["first_skipped"] == {reason: line}
    assert train["pairs"] == 13
    assert corpus.split("train")[12]["line"] == 14
    assert reason in statistics_tables(corpus, Training())[1].markdown()


def test_windows_line_ends_a_byte_order_mark_and_special_words_are_just_text(tmp_path):
    source = [b"\xef\xbb\xbf<unk> </s> <s> <pad> <blank>\r", *SOURCE]
    corpus = prepared(tmp_path, files(tmp_path, source, ["<unk> x\r", *TARGET]))
    example = corpus.split("train")[0]
    V = len(corpus.lexicon.target)
    assert example["source_text"] == "<unk> </s> <s> <pad> <blank>"
    assert example["target_text"] == "<unk> x"
    assert example["target"][0] == V  # the text's own <unk> is a word like any other, and copied
    assert len(set(example["source_words"])) == 5


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda f: (f / "train.fr").write_text("eins\n"), r"train\.fr: 1 lines, but .*train\.en has 12"),
        (lambda f: (f / "train.en").write_text(""), r"train\.en: this file is empty"),
        (lambda f: (f / "dev.fr").unlink(), r"dev\.fr: there is no such file"),
        (lambda f: (f / "train.en").write_text("\n" * 12), "no pair is left of 12: 12 have an empty side"),
        (lambda f: (f / "corpus").mkdir() or (f / "corpus" / "thesis.tex").touch(), "something else in this folder"),
        (
            lambda f: (f / "corpus").mkdir() or (f / "corpus" / "dictionary.tsv").touch(),
            "something else in this folder",
        ),
        (lambda f: (f / "corpus").touch(), "this is a file"),
        (lambda f: (f / "train.en").write_bytes(b"\xef\xbb\xbf"), "this file is empty"),
    ],
)
def test_bad_files_are_one_clear_line_and_leave_nothing_behind(tmp_path, spoil, message):
    settings = files(tmp_path)
    spoil(tmp_path)
    before = sorted(path.name for path in tmp_path.iterdir())
    with pytest.raises(Misuse, match=message):
        prepared(tmp_path, settings)
    assert sorted(path.name for path in tmp_path.iterdir()) == before
    result = command(tmp_path, settings)
    assert result.returncode == 2
    assert len(result.stderr.splitlines()) == 1
    assert "Traceback" not in result.stderr


def test_what_is_not_ours_in_a_corpus_folder_is_never_replaced(tmp_path):
    settings = files(tmp_path)
    prepared(tmp_path, settings)
    (tmp_path / "corpus" / "my-notes.txt").write_text("dear")
    with pytest.raises(Misuse, match=r"something else in this folder \(my-notes\.txt\)"):
        prepared(tmp_path, settings, text={"lowercase": False})
    assert (tmp_path / "corpus" / "my-notes.txt").read_text() == "dear"


def test_only_what_shapes_the_corpus_makes_it_anew(tmp_path):
    settings = files(tmp_path)

    def made(**changes):
        return preparation.prepare(checked(Config, settings | changes), tmp_path / "corpus", workers=1)[1]

    assert made()
    assert not made(training={"batch": 7, "large_vocabulary": 5})
    (tmp_path / "corpus" / "dev.arrow").unlink()
    assert made()
    assert made(text={"digits": "fold"})
    (tmp_path / "train.en").write_text((tmp_path / "train.en").read_text().replace("cat", "cow"))
    assert made(text={"digits": "fold"})


def test_a_corpus_of_version_0_1_0_is_not_made_anew(tmp_path):
    # As that version named it. If preparation now makes something else, raise PREPARES_AS and say so in CHANGELOG.md.
    made_from = "d95fbe2a88a2b937c87cdc8555f9795acc0f9cd44f1e3c967738f8251e459407"
    corpus, _ = preparation.prepare(checked(Config, files(tmp_path)), tmp_path / "corpus", workers=1)
    assert corpus.about["made_from"] == made_from


def test_settings_that_a_worker_cannot_use_are_one_line(tmp_path):
    settings = files(tmp_path) | {"pointers": {"policy": "entities", "tagger": "nothing"}}
    result = command(tmp_path, settings)
    assert result.returncode == 2
    assert result.stderr.splitlines() == [
        "pointing: pointers.tagger: there is no spaCy pipeline nothing: python -m spacy download nothing"
    ]


def test_a_word_that_begins_with_a_byte_order_mark_is_a_word(tmp_path):
    corpus = prepared(tmp_path, files(tmp_path, ["x \ufefffoo"] * 4, ["\ufefffoo"] * 4))
    assert "\ufefffoo" in Corpus(corpus.folder).lexicon.target.words


def test_ctrl_c_stops_in_one_line_and_leaves_nothing(tmp_path):
    settings = files(tmp_path, SOURCE * 5000, TARGET * 5000)
    (tmp_path / "x.yaml").write_text(json.dumps(settings))
    line = [sys.executable, "-m", "pointing", "prepare", "x.yaml", "--out", "corpus"]
    process = subprocess.Popen(line, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    for _ in range(2000):
        if list(tmp_path.glob(".corpus.*.part/train-block-*")):
            break
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 130
    assert errors.splitlines()[-1] == "pointing: stopped"
    assert "Traceback" not in errors
    assert not list(tmp_path.glob(".corpus*"))
    assert not (tmp_path / "corpus").exists()


def test_tags_that_are_not_the_lines_are_left_out_and_said(tmp_path):
    settings = files(tmp_path)
    for split in ("train", "dev"):
        for side in ("source", "target"):
            path = Path(settings["data"][split][side])
            path.with_suffix(".ner").write_text("".join("x￨O\n" for _ in path.read_text().splitlines()))
            settings["data"][split][f"{side}_tags"] = str(path.with_suffix(".ner"))
    settings["pointers"] = {"policy": "entities"}
    result = command(tmp_path, settings)
    assert result.returncode == 2
    assert "tags of another text" in result.stderr
    assert "first on line 1" in result.stderr


def test_a_disk_that_takes_no_more_is_a_failure_and_leaves_the_old_corpus(tmp_path):
    settings = files(tmp_path)
    old = prepared(tmp_path, settings)
    (tmp_path / "x.yaml").write_text(json.dumps(settings | {"text": {"lowercase": False}}))
    line = f"ulimit -f 1; exec {sys.executable} -m pointing prepare x.yaml --out corpus"  # files of 1 KiB at most
    result = subprocess.run(["bash", "-c", line], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert "cannot be written" in result.stderr
    assert "nothing was left half-written" in result.stderr
    assert "Traceback" not in result.stderr
    assert Corpus(tmp_path / "corpus").about == old.about
    assert not list(tmp_path.glob(".corpus*"))


def test_killed_half_way_it_leaves_nothing_that_looks_finished(tmp_path):
    settings = files(tmp_path, SOURCE * 3000, TARGET * 3000)
    (tmp_path / "x.yaml").write_text(json.dumps(settings))
    line = [sys.executable, "-m", "pointing", "prepare", "x.yaml", "--out", "corpus"]
    process = subprocess.Popen(line, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for _ in range(2000):
        if list(tmp_path.glob(".corpus.*.part/train-block-*")):
            break
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not (tmp_path / "corpus").exists()
    assert command(tmp_path, settings).returncode == 0
    assert len(Corpus(tmp_path / "corpus").split("train")) == 36_000
    assert not list(tmp_path.glob(".corpus*"))  # what the killed run left is cleared away


def test_pairs_of_max_tokens_are_kept_and_longer_ones_are_not(tmp_path):
    sources = ["a b c d e f", "a b c d e f g", "a b c d", "a b c"]
    targets = ["A B C D", "A B C D", "A B C D E F G", "A B C D E F"]
    corpus = prepared(tmp_path, files(tmp_path, sources, targets), text={"max_tokens": 6})
    train = corpus.split("train")
    assert [train[row]["source_text"] for row in range(len(train))] == [sources[0], sources[3]]


def test_forms_by_hand(tmp_path):
    source = ["The Cat sees Zorblatt.", "the dog: %s", "GNU the cat"] * 2
    target = ["Le Chat voit Zorblatt.", "Le chien\u00a0: %s", "le chat GNU le LE"] * 2
    settings = files(tmp_path, source, target) | {"text": {"forms": True, "protect": "software"}}
    corpus = prepared(tmp_path, settings | {"vocabulary": {"source": 9, "target": 7}})
    vocabulary = corpus.lexicon.target
    assert vocabulary.words == ["le", "chat", ".", ":", "chien"]  # 10, 4, 2, 2, 2; no span, and not the rest
    assert vocabulary.writings == {}  # `chat` stands inside as often as `Chat`; of equals the last in the alphabet
    first, second, third = (corpus.split("train")[row] for row in range(3))
    capital, joined = CAPITAL, 4 * JOINED
    assert first["source_forms"] == [capital, capital, 0, capital, joined]
    assert first["target_forms"] == [capital, capital, 0, 0, joined, 0]  # Zorblatt is copied as it is
    assert second["target_forms"] == [capital, 0, 4 * NO_BREAK, 0, 0]  # le chien : %s, and the end
    assert second["source_forms"] == [0, 0, joined, 0]
    V = len(vocabulary)
    assert second["target"][3] == V + 3  # %s is a pointer, however common
    assert third["source_forms"][0] == UPPER
    assert third["target_forms"] == [0, 0, 0, 0, UPPER, 0]  # GNU is copied as it is, LE is the shortlist's
    batch = corpus.split("train").batch(np.array([0, 1]))
    assert batch.x_form.shape == batch.x.shape
    assert batch.y_form.tolist()[1] == [capital, 0, 4 * NO_BREAK, 0, 0, 0]


@pytest.mark.parametrize("policy", ["unknown-words", "dictionary"])
def test_forms_are_those_of_each_word_alone(tmp_path, policy):
    words = ["cat", "Cat", "dog", "Zorblatt", "zorBlatt", "%s", "QUUX", "quux", "(x)", "straße", "STRASSE"]
    random.seed(5)
    lines = [" ".join(random.choices(words, k=6)) for _ in range(60)]
    changes = [str.upper, str.lower, str.capitalize, lambda word: f"new{word}"]
    others = [
        " ".join(word if word == "%s" else random.choice(changes)(word.replace("dog", "chien")) for word in words)
        for words in map(str.split, lines)
    ]
    (tmp_path / "words.tsv").write_text("dog\tchien\n")
    pointers = {"policy": policy} | ({"dictionary": str(tmp_path / "words.tsv")} if policy == "dictionary" else {})
    settings = files(tmp_path, lines, others) | {"text": {"forms": True, "protect": "software"}, "pointers": pointers}
    corpus = prepared(tmp_path, settings | {"vocabulary": {"source": 9, "target": 6}})
    lexicon, train, seen = corpus.lexicon, corpus.split("train"), set()
    V = len(lexicon.target)
    for row in map(train.__getitem__, range(len(train))):
        source, target = (row[f"{side}_text"] for side in ("source", "target"))
        tokens = lexicon.tokenization.target(target)
        for place, (choice, start, end) in enumerate(zip(row["target"], tokens.starts, tokens.ends, strict=False)):
            case, base = 0, lexicon.target.writing(tokens.words[place])
            if choice >= V:
                base = source[row["starts"][choice - V] : row["ends"][choice - V]]
                base = lexicon.translations([base.lower()])[0] or base
            if choice != UNK:
                case = case_between(base, target[start:end])
            space = JOINED if place and tokens.ends[place - 1] == start else 0
            assert row["target_forms"][place] == 4 * space + case
            seen.add((choice == UNK, choice >= V, case))
        assert row["target_forms"][len(tokens.words) :] == [0]
    assert len(seen) > 6  # unknown words, and cases of both shortlist words and pointers


def test_the_usual_writing_is_learned_and_kept_in_the_vocabulary_file(tmp_path):
    target = ["die Daten von GNU", "Daten der Daten", "Die Daten"] * 2
    settings = files(tmp_path, ["a b c d", "a b c", "a b"] * 2, target) | {"text": {"forms": True}}
    corpus = prepared(tmp_path, settings)
    assert corpus.lexicon.target.writings == {"daten": "Daten", "gnu": "GNU"}
    assert "daten\t8\tDaten\n" in (tmp_path / "corpus" / "target.vocabulary").read_text()
    assert corpus.lexicon.source.writings == {}
    row = corpus.split("train")[1]
    assert row["target_forms"] == [0, 0, 0, 0]  # Daten is written as usual


def test_all_spans_of_a_kind_are_one_word_of_the_source(tmp_path):
    source = ["open %s", "open %d of %s", "open --help"] * 2
    settings = files(tmp_path, source, source) | {"text": {"protect": "software"}}
    corpus = prepared(tmp_path, settings)
    assert corpus.lexicon.source.words == [" printf", "open", " option", "of"]
    assert corpus.lexicon.target.words == ["open", "of"]
    row = corpus.split("train")[1]
    assert row["source"] == [3, 2, 5, 2]
    V = len(corpus.lexicon.target)
    assert row["target"] == [2, V + 1, 3, V + 3, EOS]


def test_pieces_have_the_form_of_their_word(tmp_path):
    source = ["low lower lowest", "new newer newest wow tone torn"] * 4
    target = ["Low LOWER lowest.", "New newer newest wow tone torn worst!"] * 4
    sizes = {"vocabulary": {"source": 32, "target": 32}}
    settings = files(tmp_path, source, target) | {"text": {"forms": True, "subwords": "bpe"}} | sizes
    corpus = prepared(tmp_path, settings, pointers={"policy": "none"})
    row = corpus.split("train")[0]
    pieces = [corpus.lexicon.target.word(number) for number in row["target"]]
    words = "".join(piece.replace("@@ ", "") if piece.endswith("@@ ") else piece + " " for piece in pieces[:-1])
    assert words.split() == ["low", "lower", "lowest", "."]
    starts = [place for place in range(len(pieces) - 1) if place == 0 or not pieces[place - 1].endswith("@@ ")]
    assert [row["target_forms"][place] for place in starts] == [CAPITAL, UPPER, 0, 4 * JOINED]
    rest = set(range(len(pieces) - 1)) - set(starts)
    assert rest
    assert {row["target_forms"][place] for place in rest} == {4 * JOINED}


def test_pieces_have_no_usual_writing(tmp_path):
    settings = files(tmp_path, ["a new file"] * 4, ["le GNU GNU GNU"] * 4)
    changes = {"text": {"forms": True, "subwords": "bpe"}, "vocabulary": {"source": 20, "target": 20}}
    target = prepared(tmp_path, settings, **changes).lexicon.target
    assert "gnu" in target  # of a word it would be GNU
    assert target.writings == {}
