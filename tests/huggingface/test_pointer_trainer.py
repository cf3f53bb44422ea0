"""`Trainer` as its users know it: it trains, evaluates, saves and resumes a `PointerModel`; and what is learned."""

import random
from collections import Counter

import datasets
import pytest
import small
import torch
from transformers import (
    Seq2SeqTrainer,
    Seq2SeqTrainingArguments,
    T5Config,
    T5ForConditionalGeneration,
    Trainer,
    TrainingArguments,
)

from pointing.errors import Misuse
from pointing.huggingface import PointerCollator, PointerModel, add_pointer
from pointing.pointer_softmax import NeverPoint

QUIET = {"report_to": "none", "disable_tqdm": True, "use_cpu": True, "remove_unused_columns": False, "seed": 1}


def examples(pairs):
    return [{"source": source, "target": target} for source, target in pairs]


@pytest.fixture
def bart():
    below, tokenizer = small.build("BART", width=16)
    return add_pointer(below, tokenizer)


def test_trainer_trains_evaluates_saves_and_resumes(bart, tmp_path):
    train, test = (examples(pairs[:16]) for pairs in small.text())
    settings = {
        "per_device_train_batch_size": 8, "per_device_eval_batch_size": 5, "num_train_epochs": 3, "learning_rate": 0.01,
        "eval_strategy": "epoch", "save_strategy": "epoch", "load_best_model_at_end": True, "logging_steps": 1,
    }  # fmt: skip
    arguments = TrainingArguments(str(tmp_path), **settings, **QUIET)
    trainer = Trainer(
        bart, arguments, PointerCollator(bart), datasets.Dataset.from_list(train), datasets.Dataset.from_list(test)
    )
    trainer.train()
    losses = [entry["eval_loss"] for entry in trainer.state.log_history if "eval_loss" in entry]
    assert len(losses) == 3
    assert losses[2] < losses[0]
    assert trainer.evaluate()["eval_loss"] == pytest.approx(losses[2], rel=1e-5)
    at_two = PointerModel.from_pretrained(tmp_path / "checkpoint-4")
    resumed = Trainer(at_two, arguments, PointerCollator(at_two), train, test)
    resumed.train(resume_from_checkpoint=str(tmp_path / "checkpoint-4"))
    parameters = zip(bart.named_parameters(), at_two.named_parameters(), strict=True)
    for (name, one), (_, other) in parameters:
        if not name.endswith(
            ("k_proj.bias", "key.bias")
        ):  # its gradient is 0, and Adam follows whatever rounding leaves of it
            torch.testing.assert_close(one, other, msg=name)
    assert at_two.layer().shortlist.weight is at_two.below.get_input_embeddings().weight


def test_seq2seq_trainer_generates_and_its_ids_become_text(bart, tmp_path):
    pairs = small.text()[1][:6]
    lines, targets = [source for source, _ in pairs], [target for _, target in pairs]
    decoded = {}

    def compute_metrics(predicted):
        decoded["outputs"] = bart.decode(lines, predicted.predictions)
        decoded["labels"] = bart.decode(lines, predicted.label_ids)
        return {"right": sum(map(str.__eq__, decoded["outputs"], decoded["labels"]))}

    arguments = Seq2SeqTrainingArguments(
        str(tmp_path), predict_with_generate=True, generation_num_beams=2, generation_max_length=7,
        per_device_eval_batch_size=4, **QUIET,
    )  # fmt: skip
    trainer = Seq2SeqTrainer(
        bart, arguments, PointerCollator(bart), eval_dataset=examples(pairs), compute_metrics=compute_metrics
    )
    assert trainer.evaluate()["eval_right"] == 0
    assert decoded["labels"] == targets
    expected = bart.translate(lines, num_beams=2, max_length=7)
    assert decoded["outputs"] == [output.text for output in expected]


def test_columns_may_have_any_name_and_missing_ones_are_said(bart, tmp_path):
    (source, target), *_ = small.text()[0]
    renamed = PointerCollator(bart, source="en", target="fr")([{"en": source, "fr": target}])
    torch.testing.assert_close(renamed, PointerCollator(bart)(examples([(source, target)])))
    with pytest.raises(Misuse, match=r"no column 'source', only 'en', 'fr': name the columns, .*remove_unused_columns"):
        PointerCollator(bart)([{"en": source, "fr": target}])


def greeting(rng):
    """A line with two names of any letters, and what is to be said: the second one first."""
    one, other = ("".join(rng.choices("bcdfghlmnprstvz", k=6)) for _ in range(2))
    return f"ask {one} to open {other}", f"{other} , {one}"


def test_names_that_were_never_seen_are_copied_to_their_places():
    rng = random.Random(0)
    torch.manual_seed(0)
    tokenizer = small.t5_tokenizer()
    config = T5Config(
        vocab_size=len(tokenizer), d_model=32, d_kv=8, d_ff=32, num_layers=1, num_heads=4, dropout_rate=0.0,
        decoder_start_token_id=0,
    )  # fmt: skip
    model = add_pointer(T5ForConditionalGeneration(config), tokenizer)
    collate, optimizer = PointerCollator(model), torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(150):
        loss = model(**collate(examples(greeting(rng) for _ in range(16)))).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    test = [greeting(rng) for _ in range(40)]
    outputs = model.translate([source for source, _ in test], num_beams=2, max_new_tokens=8)
    right = sum(output.text == target for output, (_, target) in zip(outputs, test, strict=True))
    assert right >= 38
    assert [token.source for token in outputs[0].tokens] == [4, None, 1]


def unseen(line, known):
    return Counter(word for word in line.split() if word not in known)


RUNS = [(name, True) for name in small.ARCHITECTURES] + [(name, False) for name in ("T5", "BART", "Marian")]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "pointing"), RUNS)
def test_the_demos_unseen_names_are_right_with_the_pointer_and_only_with_it(name, pointing, tmp_path):
    train, test = small.text()
    below, tokenizer = small.build(name, width=64)
    model = add_pointer(below, tokenizer)
    collate = PointerCollator(model)
    if not pointing:  # the same model and the same updates, with all words spelled in pieces
        model.switch = NeverPoint()
        collate.write = lambda source, target: collate.pieces.target(target).ids
    arguments = TrainingArguments(
        str(tmp_path), max_steps=600, per_device_train_batch_size=32, learning_rate=0.003, warmup_steps=50,
        save_strategy="no", logging_steps=100, **QUIET,
    )  # fmt: skip
    Trainer(model, arguments, collate, examples(train)).train()
    known = {word for _, target in train for word in target.split()}
    options = {"num_beams": 2, "max_new_tokens": 60, **small.options(name, tokenizer)}
    outputs = model.translate([source for source, _ in test], **options)
    wanted = [unseen(target, known) for _, target in test]
    right = sum((names & unseen(o.text, known)).total() for names, o in zip(wanted, outputs, strict=True))
    total = sum(names.total() for names in wanted)
    print(f"{name}, {'with' if pointing else 'without'} the pointer: {right} of {total} unseen names right")
    assert total > 400
    if pointing:
        assert right / total >= 0.95
    else:
        assert right / total <= 0.02  # to spell names piece by piece is learned later
