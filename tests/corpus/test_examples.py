import numpy as np
import pyarrow as pa
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pointing.corpus.batches import (
    Batches,
    CandidateTranslations,
    candidates,
    candidates_by_source,
    padding_share,
    plan,
)
from pointing.corpus.examples import SCHEMA, Batch, Split
from pointing.errors import Misuse
from pointing.text.dictionary import Dictionary
from pointing.text.vocabulary import EOS, FIRST, UNK, Vocabulary

V = 50
lengths = st.lists(st.integers(1, 30), min_size=1, max_size=200).map(lambda some: np.array(some, np.int32))


def write(path, sources, targets, group=3):
    """Sources and targets as ids, in row groups of three."""
    rows = [
        {"source": x, "source_words": [V + j for j in range(len(x))], "starts": [0] * len(x), "ends": [1] * len(x)}
        | {"target": [*y, EOS], "target_words": [min(w, V - 1) for w in y] + [EOS]}
        | {"source_text": str(x), "target_text": str(y), "line": n + 1}
        for n, (x, y) in enumerate(zip(sources, targets, strict=True))
    ]
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, SCHEMA) as writer:
        for start in range(0, len(rows), group):
            writer.write_batch(pa.RecordBatch.from_pylist(rows[start : start + group], SCHEMA))
    return Split.open(path)


@pytest.fixture
def split(tmp_path):
    rng = np.random.default_rng(0)
    sources = [rng.integers(2, 40, rng.integers(1, 9)).tolist() for _ in range(20)]
    targets = [rng.integers(2, 60, rng.integers(1, 7)).tolist() for _ in range(20)]
    return write(tmp_path / "x.arrow", sources, targets), sources, targets


def test_a_batch_is_its_examples_padded(split):
    split, sources, targets = split
    rows = np.array([7, 0, 19, 7])
    batch = split.batch(rows)
    assert batch.x.shape == (4, max(len(sources[r]) for r in rows) + 1)
    for n, row in enumerate(rows):
        assert batch.x[n][batch.x_mask[n]].tolist() == [*sources[row], EOS]
        assert batch.source_words[n][batch.x_mask[n]].tolist() == [*(V + j for j in range(len(sources[row]))), EOS]
        assert batch.target[n][batch.mask[n]].tolist() == [*targets[row], EOS]
        assert batch.y[n][batch.mask[n]].tolist() == [min(w, V - 1) for w in targets[row]] + [EOS]
        assert not batch.x[n][~batch.x_mask[n]].any()
        assert not batch.target[n][~batch.mask[n]].any()
        assert split[int(row)]["target_text"] == str(targets[row])


@given(lengths, st.integers(1, 40), st.sampled_from(["sentences", "tokens"]), st.integers(0, 3))
def test_an_epoch_holds_every_example_once(lengths, batch, by, epoch):
    batches = plan(lengths, lengths[::-1], batch, by, seed=1, epoch=epoch, pool=3)
    lengths = np.maximum(lengths, lengths[::-1])
    assert sorted(np.concatenate(batches)) == list(range(len(lengths)))
    for rows in batches:
        if by == "sentences":
            assert len(rows) <= batch
        else:
            assert len(rows) == 1 or lengths[rows].max() * len(rows) <= batch


def test_the_same_seed_and_epoch_give_the_same_plan_and_others_do_not():
    lengths = np.arange(1, 500, dtype=np.int32)
    first, again, other, later = (
        [rows.tolist() for rows in plan(lengths, lengths, 8, "sentences", seed, epoch)]
        for seed, epoch in ((1, 0), (1, 0), (2, 0), (1, 1))
    )
    assert first == again
    assert first != other
    assert first != later


def test_bucketing_keeps_padding_small():
    rng = np.random.default_rng(0)
    source = rng.integers(1, 51, 20_000)
    target = np.maximum(1, source + rng.integers(-5, 6, 20_000))  # as long as its translation, more or less
    bucketed = padding_share(source, target, plan(source, target, 32, "sentences", 1, 0))
    shuffled = padding_share(source, target, list(rng.permutation(20_000).reshape(-1, 32)))
    assert bucketed < 0.08 < 0.4 < shuffled


def test_padding_by_hand():
    # sources of 2 and 4, targets of 1 and 1; then a pair of 3 and 5: 2 of 18 places hold nothing
    batches = [np.array([0, 1]), np.array([2])]
    assert padding_share(np.array([2, 4, 3]), np.array([1, 1, 5]), batches) == pytest.approx(2 / 18)


def test_the_order_can_be_taken_up_again_at_any_batch(split):
    split, *_ = split
    whole = Batches(split, 3, seed=5)
    iterator = iter(whole)
    rows, places = [], []
    for _ in range(17):  # more than two epochs
        places.append((whole.epoch, whole.done))
        rows.append(next(iterator).rows.tolist())
    for stop in range(17):
        epoch, done = places[stop]
        resumed = iter(Batches(split, 3, seed=5, epoch=epoch, done=done))
        assert [next(resumed).rows.tolist() for _ in range(17 - stop)] == rows[stop:]


def test_the_parts_of_several_processes_are_the_batch(split):
    split, *_ = split
    whole = split.batch(np.arange(5))
    parts = [whole.part(rank, 3) for rank in range(3)]
    assert sorted(row for part in parts for row in part.rows.tolist()) == [0, 1, 2, 3, 4]
    assert sum(int(part.mask.sum()) for part in parts) == int(whole.mask.sum())
    assert all(part.x.shape[1] == whole.x.shape[1] for part in parts)


def test_a_process_without_an_example_gets_one_that_counts_for_nothing(split):
    split, *_ = split
    part = split.batch(np.array([3])).part(1, 2)
    assert part.x_mask.any()
    assert not part.mask.any()


def batch(x, source_words, y):
    x, source_words, y = (torch.tensor([row]) for row in (x, source_words, y))
    return Batch(np.array([0]), x, torch.ones_like(x).bool(), source_words, y, y, torch.ones_like(y).bool())


def test_candidates_are_source_words_translations_gold_words_and_then_common_ones():
    table = CandidateTranslations(np.array([0, 0, 0, 0, 2, 3]), np.array([30, 31, 32], np.int32))  # 3 → 30, 31; 4 → 32
    some = batch(x=[3, 3], source_words=[20, V + 1], y=[40, EOS])
    assert candidates(some, 9, V, table).tolist() == [0, 1, 2, 3, 4, 20, 30, 31, 40]
    assert candidates_by_source(some, 9, V, table).tolist() == [[0, 1, 2, 3, 4, 5, 20, 30, 31]]
    assert candidates(some, 4, V).tolist() == [0, 1, 20, 40]
    assert candidates(some, 3, V).tolist() == [0, 1, 20, 40]  # never fewer than are needed
    assert candidates(some, 1000, V).tolist() == list(range(V))


def test_candidates_are_translations_of_every_source_word():
    table = CandidateTranslations(np.array([0, 0, 0, 0, 2, 3]), np.array([30, 31, 32], np.int32))
    some = batch(x=[3, 4], source_words=[20, V + 1], y=[40, EOS])
    assert {30, 31, 32} <= set(candidates(some, 2, V, table).tolist())
    assert {30, 31, 32} <= set(candidates_by_source(some, 2, V, table)[0].tolist())


def test_at_test_every_source_has_candidates_of_its_own():
    table = CandidateTranslations(np.array([0, 0, 0, 0, 2, 3]), np.array([30, 31, 32], np.int32))
    short, long = (batch(x=[word], source_words=[name], y=[40]) for word, name in ((4, 20), (3, 21)))
    both = Batch(np.arange(2), *(torch.cat(parts) for parts in zip(short[1:7], long[1:7], strict=True)))
    assert candidates_by_source(both, 2, V, table).tolist() == [[0, 1, 20, 32, EOS], [0, 1, 21, 30, 31]]


def test_translations_between_vocabularies():
    source, target = Vocabulary(["cat", "dog"], [2, 1]), Vocabulary(["chat", "chatte", "chien"], [3, 2, 1])
    pairs = [("dog", "chien", 1.0), ("cat", "chatte", 0.4), ("cat", "chat", 0.6), ("cow", "vache", 1.0)]
    table = CandidateTranslations.between(source, target, Dictionary(pairs))
    cat, dog = source["cat"], source["dog"]
    assert table.of(np.array([cat])).tolist() == [target["chat"], target["chatte"]]
    assert table.of(np.array([UNK, dog, cat])).tolist() == [target["chien"], target["chat"], target["chatte"]]
    assert table.of(np.array([EOS, FIRST - 1])).tolist() == []


@pytest.mark.parametrize("content", [b"", b"not Arrow at all", b"ARROW1\0\0" + b"\0" * 100])
def test_what_is_not_a_corpus_is_refused(tmp_path, content):
    (tmp_path / "x.arrow").write_bytes(content)
    with pytest.raises(Misuse, match="not a prepared corpus"):
        Split.open(tmp_path / "x.arrow")
