"""Parts that were split off from the training data stay beside the prepared corpus and beside its runs."""

import tiny

from pointing.corpus.preparation import prepare
from pointing.corpus.sources import HELD_OUT_FILES, keep_held_out, open_split, open_splits, read_split
from pointing.model.run import start_run
from pointing.settings_file import read_config


def settings(folder, *changes):
    split_off = {"data": {"dev": None, "held_out": {"dev": 3, "test": 5}}}
    return read_config(tiny.write(folder, split_off, *changes))


def numbers(split):
    return [number for block in split.blocks() for number in block.numbers]


def read(folder, name):
    return tuple((folder / file).read_bytes().splitlines() for file in HELD_OUT_FILES[name])


def test_one_split_alone_is_the_same_as_among_all(tmp_path):
    config = settings(
        tmp_path,
        {
            "data": {
                "test": {side: str(tmp_path / f"dev.{side}") for side in ("source", "target")},
                "held_out": {"test": None},
            }
        },
    )
    for data in (config.data, settings(tmp_path).data):
        for name, split in open_splits(data).items():
            assert numbers(open_split(data, name)) == numbers(split)
    assert open_split(read_config(tiny.write(tmp_path)).data, "test") is None
    assert read_split(read_config(tiny.write(tmp_path)).data, "test") is None


def test_the_corpus_and_its_runs_keep_them(tmp_path):
    config = settings(tmp_path)
    corpus, _ = prepare(config, tmp_path / "corpus", workers=1)
    start_run(tmp_path / "run", config, corpus)
    for name, pairs in (("dev", 3), ("test", 5)):
        texts = read_split(config.data, name)
        expected = tuple([text.encode() for text in side] for side in (texts.source, texts.target))
        assert read(tmp_path / "corpus", name) == read(tmp_path / "run", name) == expected
        assert [len(side) for side in expected] == [pairs, pairs]


def test_a_run_with_dev_files_keeps_nothing_not_even_what_an_older_one_left(tmp_path):
    old, new = settings(tmp_path), read_config(tiny.write(tmp_path))
    for config in (old, new):  # the second corpus takes the first one's place
        corpus, made = prepare(config, tmp_path / "corpus", workers=1)
        assert made
        start_run(tmp_path / "run", config, corpus)
    for folder in ("corpus", "run"):
        assert list((tmp_path / folder).glob("held-out*")) == []


def test_lines_stay_lines_whatever_is_in_them(tmp_path):
    tiny.write(tmp_path)
    text = (tmp_path / "train.source").read_bytes().splitlines()
    (tmp_path / "train.source").write_bytes(b"".join(line + b" \xff\xe2\x80\xa8\r\n" for line in text))
    keep_held_out(open_split(settings(tmp_path).data, "test"), "test", tmp_path)
    source, target = ((tmp_path / name).read_bytes().split(b"\n") for name in HELD_OUT_FILES["test"])
    assert (len(source), len(target)) == (6, 6)  # the last one is empty
    assert all(line.endswith(" \ufffd\u2028".encode()) for line in source[:5])
