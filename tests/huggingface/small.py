"""Small random models of five architectures, with their real tokenizer classes trained on the demo's text."""

from __future__ import annotations

import json
import os
import random
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

os.environ["HF_HUB_OFFLINE"] = "1"

import sentencepiece
import torch
import transformers
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from pointing.data.names import Names, pairs

SPECIAL = ["<s>", "<pad>", "</s>", "<unk>"]


@cache
def text(train=4000, test=200, seed=1):
    """Pairs (source, target) of both parts; no name of the test part is in the training part."""
    names = Names(seed)
    return [list(pairs(count, names)) for count in (train, test)]


@cache
def lines():
    return [line for pair in text()[0] for line in pair]


@cache
def spm(size=300):
    """(a SentencePiece model file, its pieces with their scores)."""
    folder = Path(mkdtemp())
    (folder / "text").write_text("\n".join(lines()), encoding="utf-8")
    sentencepiece.SentencePieceTrainer.train(
        input=str(folder / "text"), model_prefix=str(folder / "spm"), vocab_size=size, character_coverage=1.0,
        num_threads=1, minloglevel=2,
    )  # fmt: skip
    model = sentencepiece.SentencePieceProcessor(str(folder / "spm.model"))
    return folder / "spm.model", [(model.id_to_piece(k), model.get_score(k)) for k in range(3, len(model))]


@cache
def bpe(byte_level, size=600):
    """(vocabulary, merges) of byte-pair encoding."""
    tokenizer = Tokenizer(models.BPE(unk_token=None if byte_level else "<unk>"))
    tokenizer.pre_tokenizer = (
        pre_tokenizers.ByteLevel(add_prefix_space=False) if byte_level else pre_tokenizers.Metaspace()
    )
    alphabet = pre_tokenizers.ByteLevel.alphabet() if byte_level else []
    trainer = trainers.BpeTrainer(
        vocab_size=size, special_tokens=SPECIAL, initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(lines(), trainer)
    model = json.loads(tokenizer.to_str())["model"]
    return model["vocab"], [tuple(merge) for merge in model["merges"]]


def t5_tokenizer():
    special = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0)]
    return transformers.T5TokenizerFast(vocab=special + spm()[1], extra_ids=0)


def bart_tokenizer():
    vocabulary, merges = bpe(byte_level=True)
    return transformers.BartTokenizerFast(vocab=vocabulary, merges=merges)


def marian_tokenizer():
    """A slow one, which does not say which characters its pieces stand for."""
    file, pieces = spm()
    ids = {piece: k for k, piece in enumerate(["</s>", "<unk>", *(piece for piece, _ in pieces), "<pad>"])}
    vocabulary = file.parent / "vocab.json"
    vocabulary.write_text(json.dumps(ids))
    return transformers.MarianTokenizer(source_spm=str(file), target_spm=str(file), vocab=str(vocabulary))


def nllb_tokenizer():
    vocabulary, merges = bpe(byte_level=False)
    return transformers.NllbTokenizer(
        vocab=vocabulary, merges=merges, src_lang="eng_Latn", tgt_lang="fra_Latn",
        extra_special_tokens=["eng_Latn", "fra_Latn"],
    )  # fmt: skip


def mbart_tokenizer():
    special = [("<s>", 0.0), ("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0)]
    return transformers.MBartTokenizerFast(vocab=special + spm()[1], src_lang="en_XX", tgt_lang="fr_XX")


def layers(width, heads=4):
    """The sizes of BART and its kin."""
    both = {"layers": 2, "attention_heads": heads, "ffn_dim": 2 * width, "layerdrop": 0.0}
    sides = {f"{side}_{name}": size for side in ("encoder", "decoder") for name, size in both.items()}
    return {"d_model": width, "max_position_embeddings": 128, "dropout": 0.0, "attention_dropout": 0.0, **sides}


def t5(width):
    tokenizer = t5_tokenizer()
    config = transformers.T5Config(
        vocab_size=len(tokenizer), d_model=width, d_kv=width // 4, d_ff=2 * width, num_layers=2, num_heads=4,
        dropout_rate=0.0, pad_token_id=0, eos_token_id=1, decoder_start_token_id=0,
    )  # fmt: skip
    return transformers.T5ForConditionalGeneration(config), tokenizer


def bart(width):
    tokenizer = bart_tokenizer()
    config = transformers.BartConfig(vocab_size=len(tokenizer), forced_eos_token_id=None, **layers(width))
    config.bos_token_id, config.pad_token_id, config.eos_token_id, config.decoder_start_token_id = 0, 1, 2, 2
    return transformers.BartForConditionalGeneration(config), tokenizer


def marian(width):
    tokenizer = marian_tokenizer()
    pad = tokenizer.pad_token_id
    config = transformers.MarianConfig(
        vocab_size=len(tokenizer), pad_token_id=pad, eos_token_id=0, decoder_start_token_id=pad, scale_embedding=True,
        forced_eos_token_id=None, **layers(width),
    )  # fmt: skip
    return transformers.MarianMTModel(config), tokenizer


def nllb(width):
    tokenizer = nllb_tokenizer()
    config = transformers.M2M100Config(
        vocab_size=len(tokenizer),
        pad_token_id=1,
        bos_token_id=0,
        eos_token_id=2,
        decoder_start_token_id=2,
        **layers(width),
    )
    return transformers.M2M100ForConditionalGeneration(config), tokenizer


def mbart(width):
    tokenizer = mbart_tokenizer()
    config = transformers.MBartConfig(
        vocab_size=len(tokenizer),
        pad_token_id=1,
        bos_token_id=0,
        eos_token_id=2,
        forced_eos_token_id=None,
        **layers(width),
    )
    return transformers.MBartForConditionalGeneration(config), tokenizer


ARCHITECTURES = {"T5": t5, "BART": bart, "Marian": marian, "NLLB": nllb, "mBART": mbart}


def build(name, width=32, seed=0):
    """(a model of random weights, its tokenizer)."""
    torch.manual_seed(seed)
    random.seed(seed)
    return ARCHITECTURES[name](width)


def options(name, tokenizer):
    """What `generate()` needs beside the source: the target's language."""
    if name == "NLLB":
        return {"forced_bos_token_id": tokenizer.convert_tokens_to_ids("fra_Latn")}
    if name == "mBART":
        return {"decoder_start_token_id": tokenizer.convert_tokens_to_ids("fr_XX")}
    return {}
