"""Pairs of lines from the user's files, split by split: what is given, what is split off, what is wrong with it."""

import json
from collections import Counter

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pointing.config import Data, checked
from pointing.corpus import sources
from pointing.corpus.held_out import text_key
from pointing.corpus.sources import DUPLICATES, open_splits
from pointing.errors import Misuse


def table(path, rows, header="en,fr"):
    path.write_text("\n".join([header, *rows]) + "\n")
    return str(path)


def rows(count, name="word"):
    """Rows whose sources differ in more than digits."""
    return [f"{name} {letters(n)},mot {letters(n)}" for n in range(count)]


def letters(number):
    return "".join(chr(97 + int(digit)) for digit in str(number))


def opened(**values):
    return open_splits(checked(Data, values))


def lines(split):
    """All pairs of a split: line number, source, target."""
    return [
        (number, source.decode().removesuffix("\n"), target.decode().removesuffix("\n"))
        for block in split.blocks()
        for number, source, target in zip(block.numbers, block.source, block.target, strict=True)
    ]


def test_two_files_and_a_table_give_the_same_pairs(tmp_path):
    pairs = [row.split(",") for row in rows(50)]
    for side, name in enumerate(("x.en", "x.fr")):
        (tmp_path / name).write_text("".join(f"{pair[side]}\n" for pair in pairs))
    data = table(tmp_path / "x.csv", rows(50))
    files = {"source": str(tmp_path / "x.en"), "target": str(tmp_path / "x.fr")}
    one, other = opened(train=files), opened(train=data)
    assert list(one) == list(other) == ["train", "dev", "test"]
    for name in one:  # a table's header is its first line
        assert [(n + 1, *texts) for n, *texts in lines(one[name])] == lines(other[name])
        assert one[name].pairs == other[name].pairs == len(lines(one[name]))


def test_dev_and_test_are_split_off_without_a_source_of_the_training_part(tmp_path):
    data = table(tmp_path / "x.csv", [*rows(90), *(row.upper() + "!" for row in rows(30))])
    splits = opened(train=data)
    assert {name: split.pairs for name, split in splits.items()} == {"train": 96, "dev": 12, "test": 12}
    keys = {name: {text_key(source) for _, source, _ in lines(split)} for name, split in splits.items()}
    assert not keys["train"] & (keys["dev"] | keys["test"])
    assert not keys["dev"] & keys["test"]
    assert sorted(line for split in splits.values() for line in lines(split)) == [
        (n, *row.split(",")) for n, row in enumerate([*rows(90), *(row.upper() + "!" for row in rows(30))], 2)
    ]


@given(st.lists(st.tuples(st.integers(0, 200), st.integers(0, 99)), min_size=70, max_size=120), st.integers(0, 9))
def test_every_pair_is_in_one_split_or_counted(tmp_path_factory, pairs, seed):
    folder = tmp_path_factory.mktemp("splits")
    written = [f"{letters(key)},word {letters(source)},mot {n}" for n, (key, source) in enumerate(pairs)]
    data = table(folder / "x.csv", written, "key,en,fr")
    files = {"files": data, "key_column": "key"}
    try:
        splits = opened(train=files, held_out={"dev": 15, "test": 10, "seed": seed})
    except Misuse:
        assume(False)
    found = {name: lines(split) for name, split in splits.items()}
    left_out = splits["train"].left_out
    assert set(left_out) <= {DUPLICATES}
    assert sum(map(len, found.values())) + left_out.total() == len(pairs)
    targets = Counter(target for part in found.values() for _, _, target in part)
    assert max(targets.values()) == 1
    train = {source for _, source, _ in found["train"]}
    keys = {name: {written[n - 2].split(",")[0] for n, _, _ in part} for name, part in found.items()}
    for name in ("dev", "test"):
        assert not train & {source for _, source, _ in found[name]}
        assert not keys["train"] & keys[name]
    assert not keys["dev"] & keys["test"]
    again = opened(train=files, held_out={"dev": 15, "test": 10, "seed": seed})
    assert {name: lines(split) for name, split in again.items()} == found


def test_the_seed_decides(tmp_path):
    data = table(tmp_path / "x.csv", rows(100))
    first, same, other = (lines(opened(train=data, held_out={"seed": seed})["dev"]) for seed in (1, 1, 2))
    assert first == same != other


def test_what_is_given_is_not_split_off(tmp_path):
    data, dev, test = (table(tmp_path / f"{name}.csv", rows(40, name)) for name in ("train", "dev", "test"))
    splits = opened(train=data, dev=dev)
    assert {name: split.pairs for name, split in splits.items()} == {"train": 40, "dev": 40}  # and there is no test
    splits = opened(train=data, test=test)
    assert {name: split.pairs for name, split in splits.items()} == {"train": 36, "dev": 4, "test": 40}
    splits = opened(train=data, dev=dev, test=test)
    assert {name: lines(split)[0][1] for name, split in splits.items()} == {
        "train": "train a",
        "dev": "dev a",
        "test": "test a",
    }


def test_given_sizes_are_taken(tmp_path):
    splits = opened(train=table(tmp_path / "x.csv", rows(100)), held_out={"dev": 7, "test": 11})
    assert {name: split.pairs for name, split in splits.items()} == {"train": 82, "dev": 7, "test": 11}


def test_several_files_are_one_training_part(tmp_path):
    first = table(tmp_path / "a.csv", [*rows(20), ",x"])
    second = tmp_path / "b.jsonl"
    second.write_text("".join(json.dumps({"en": f"b {n}", "fr": f"c {n}"}) + "\n" for n in range(5)) + '{"fr": "x"}\n')
    empty = tmp_path / "c.po"
    empty.write_text('msgid "nothing"\nmsgstr ""\n')
    train = opened(train=[first, str(second), str(empty)], dev=first)["train"]
    assert train.pairs == 25
    assert [source for _, source, _ in lines(train)][18:22] == ["word bi", "word bj", "b 0", "b 1"]
    assert train.left_out == {"no source": 2, "no translation": 1}
    assert train.first_left_out == {"no source": 22, "no translation": 1}  # of the first file that has some
    assert train.notes[-1] == f"{empty}: there is no pair to learn from: 1 have no translation (first on line 1)"
    assert train.languages == ("en", "fr")


def test_blocks_hold_all_pairs_in_order(tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "PAIRS_OF_A_BLOCK", 7)
    splits = opened(train=table(tmp_path / "x.csv", rows(50)), held_out={"dev": 5, "test": 5})
    for split in splits.values():
        numbers = [number for number, _, _ in lines(split)]
        assert numbers == sorted(numbers)
        assert len(numbers) == split.pairs
    assert max(len(block.source) for block in splits["train"].blocks()) <= 7


def test_duplicates_are_counted_with_the_line_of_the_first(tmp_path):
    # each product is one key; `ok` is in all of them, so that what is held out of it is left out
    texts = [["ok,bon" if m == 3 else f"text {letters(9 * n + m)},texte" for m in range(4)] for n in range(20)]
    written = [f"{letters(n)},{text}" for n, of_product in enumerate(texts) for text in of_product]
    data = {"files": table(tmp_path / "x.csv", [",,", "", *written], "product,en,fr"), "key_column": "product"}
    splits = opened(train=data, held_out={"dev": 20, "test": 20})
    train = splits["train"]
    assert train.left_out == {DUPLICATES: 10}
    held_out = sorted(n for name in ("dev", "test") for n, _, _ in lines(splits[name]))
    assert len(held_out) == 30
    # line 1 is the header, 2 and 3 are empty, and the fourth row of a product is its `ok`
    assert train.first_left_out == {DUPLICATES: held_out[0] + 3}
    assert (held_out[0] - 4) % 4 == 0


def test_rows_without_a_key_are_split_as_if_there_were_no_keys(tmp_path):
    written = [f",word {letters(n)},mot" for n in range(40)] + [f"k{letters(n)},{letters(n)} x,mot" for n in range(10)]
    data = {"files": table(tmp_path / "x.csv", written, "key,en,fr"), "key_column": "key"}
    splits = opened(train=data, held_out={"dev": 20, "test": 5})
    assert splits["dev"].pairs == 20


@pytest.mark.parametrize(
    ("count", "message"),
    [
        (5, r"x\.csv: 5 pairs are too few to hold out dev and test: give more, or dev files of their own"),
        (1, r"x\.csv: 1 pairs are too few"),
    ],
)
def test_few_rows_cannot_be_split(tmp_path, count, message):
    with pytest.raises(Misuse, match=message):
        opened(train=table(tmp_path / "x.csv", rows(count)))


def test_twenty_rows_can(tmp_path):
    splits = opened(train=table(tmp_path / "x.csv", rows(20)))
    assert {name: split.pairs for name, split in splits.items()} == {"train": 16, "dev": 2, "test": 2}


def test_rows_that_are_all_the_same_cannot_be_split(tmp_path):
    with pytest.raises(Misuse, match=r"x\.csv: too many pairs belong together to hold out 4 for dev: there are 1 diff"):
        opened(train=table(tmp_path / "x.csv", ["same,pareil"] * 40))


def test_few_keys_cannot_be_split(tmp_path):
    written = [f"{'ab'[n % 2]},word {letters(n)},mot" for n in range(200)]
    with pytest.raises(Misuse, match="there are 2 different keys or sources; take another key column or none"):
        opened(train={"files": table(tmp_path / "x.csv", written, "key,en,fr"), "key_column": "key"})


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (["x.csv", "x.csv"], r"x\.csv: this file is given twice"),
        (["x.csv", "link.csv"], r"link\.csv: this file is given twice"),
        (["x.csv", "gone.csv"], r"gone\.csv: there is no such file$"),
        (["empty.csv"], r"empty\.csv: there is no pair to learn from: it is empty"),
        (["header.csv", "empty.csv"], r"header\.csv: there is no pair to learn from: it is empty"),
        (["half.csv"], r"half\.csv: there is no pair to learn from: 2 have no translation \(first on line 2\)"),
    ],
)
def test_what_is_wrong_with_the_files_is_said(tmp_path, files, message):
    table(tmp_path / "x.csv", rows(20))
    (tmp_path / "link.csv").symlink_to(tmp_path / "x.csv")
    (tmp_path / "empty.csv").write_text("")
    table(tmp_path / "header.csv", [])
    table(tmp_path / "half.csv", ["a,", "b,"])
    with pytest.raises(Misuse, match=message):
        opened(train=[str(tmp_path / name) for name in files])


def test_a_relative_path_that_leads_nowhere_says_where_was_looked(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    expected = f"x y/gone.csv: there is no such file, neither in {tmp_path} nor beside the settings file"
    with pytest.raises(Misuse, match=expected):
        opened(train="x y/gone.csv")
