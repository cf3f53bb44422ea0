"""OpenNMT-py 2.3.0 as its users set it up, trained for so many minutes of one core on a recipe's text, to be compared.

    python benchmarks/opennmt_models.py recipes/debian-en-fr-pieces.yaml transformer --minutes 40 --folder opennmt
    pointing evaluate RUN opennmt/transformer/test.txt --source data/debian/test.en --reference data/debian/test.fr

It reads the raw text, cuts it with pyonmttok, and writes raw text again; it is scored as it is delivered, like ours.

transformer: 3 + 3 layers of width 256, cased BPE pieces of both languages together, Noam's schedule, label smoothing.
rnn: a bidirectional LSTM with attention and copying on cased words, 20,000 a side, so that rare ones must be copied.

Minutes are processor time of training alone, whatever else the machine does. Checkpoints are tested on the dev part
with greedy search after training; the one with the best BLEU translates the test part, with a beam of 5.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import time
from pathlib import Path
from subprocess import STDOUT, Popen, run
from typing import Any

import opennmt
import sacrebleu

from pointing.config import Parallel
from pointing.settings_file import read_config

TOKENIZE = """
import json, sys, pyonmttok
how = json.loads(sys.argv[1])
if how["pieces"]:
    words = pyonmttok.Tokenizer("aggressive", joiner_annotate=True)
    learner = pyonmttok.BPELearner(tokenizer=words, symbols=how["pieces"])
    for path in how["train"]:
        learner.ingest_file(path)
    tokenizer = learner.learn(how["model"])
else:
    tokenizer = pyonmttok.Tokenizer("aggressive", joiner_annotate=True)
for source, target in how["files"]:
    tokenizer.tokenize_file(source, target)
"""
DETOKENIZE = """
import sys, pyonmttok
pyonmttok.Tokenizer("aggressive", joiner_annotate=True).detokenize_file(sys.argv[1], sys.argv[2])
"""
COMMON = {
    "world_size": 1,
    "seed": 1,
    "report_every": 50,
    "max_grad_norm": 1.0,
    "src_seq_length": 100,
    "tgt_seq_length": 100,
}
KINDS: dict[str, dict[str, Any]] = {
    "transformer": {
        "encoder_type": "transformer",
        "decoder_type": "transformer",
        "enc_layers": 3,
        "dec_layers": 3,
        "heads": 4,
        "rnn_size": 256,
        "word_vec_size": 256,
        "transformer_ff": 1024,
        "position_encoding": True,
        "share_vocab": True,
        "share_embeddings": True,
        "share_decoder_embeddings": True,
        "dropout": [0.1],
        "attention_dropout": [0.1],
        "label_smoothing": 0.1,
        "optim": "adam",
        "adam_beta2": 0.998,
        "decay_method": "noam",
        "learning_rate": 2.0,
        "warmup_steps": 1000,
        "param_init": 0,
        "param_init_glorot": True,
        "batch_type": "tokens",
        "normalization": "tokens",
        "batch_size": 2048,
    },
    "rnn": {
        "encoder_type": "brnn",
        "decoder_type": "rnn",
        "rnn_type": "LSTM",
        "enc_layers": 1,
        "dec_layers": 1,
        "rnn_size": 256,
        "word_vec_size": 128,
        "global_attention": "mlp",
        "copy_attn": True,
        "reuse_copy_attn": True,
        "dropout": [0.1],
        "optim": "adam",
        "learning_rate": 0.001,
        "batch_type": "sents",
        "batch_size": 64,
    },
}
PIECES, WORDS = 8000, 20_000  # of the Transformer's joint vocabulary; of each of the RNN's
CHECKPOINTS = 8


def tokenized(python: Path, files: dict[str, Parallel], folder: Path, pieces: int) -> dict[str, Parallel]:
    """The files cut into tokens, in `folder`."""
    made = {name: Parallel(source=folder / f"{name}.src", target=folder / f"{name}.tgt") for name in files}
    pairs = [
        (str(getattr(files[name], side)), str(getattr(made[name], side)))
        for name in files
        for side in ("source", "target")
    ]
    how = {"pieces": pieces, "model": str(folder / "bpe"), "train": [pairs[0][0], pairs[1][0]], "files": pairs}
    run([python, "-c", TOKENIZE, json.dumps(how)], check=True)
    return made


def core_seconds(process: int) -> float:
    """Processor time of a process that runs, with its children."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def train(python: Path, kind: str, text: dict[str, Parallel], folder: Path, minutes: float) -> list[tuple[float, Path]]:
    """Trains until the time is over; checkpoints, each with its minutes of one core."""
    settings = COMMON | KINDS[kind]
    settings["data"] = {"train": {"path_src": str(text["train"].source), "path_tgt": str(text["train"].target)}}
    settings |= {"src_vocab": str(folder / "vocab.src"), "tgt_vocab": str(folder / "vocab.tgt")}
    if kind == "transformer":
        joint = folder / "both.txt"
        joint.write_bytes(text["train"].source.read_bytes() + text["train"].target.read_bytes())
        opennmt.write_vocabulary(joint, folder / "vocab.src", PIECES + 1000, specials=4)
        shutil.copy(folder / "vocab.src", folder / "vocab.tgt")
        settings |= {"src_vocab_size": PIECES + 1000, "tgt_vocab_size": PIECES + 1000}
    else:
        for side, specials in (("source", 2), ("target", 4)):
            path = folder / f"vocab.{'src' if side == 'source' else 'tgt'}"
            opennmt.write_vocabulary(getattr(text["train"], side), path, WORDS, specials)
        settings |= {"src_vocab_size": WORDS, "tgt_vocab_size": WORDS}
    settings |= {"train_steps": 1_000_000, "save_checkpoint_steps": 50, "keep_checkpoint": -1}
    settings |= {"save_model": str(folder / "model"), "bucket_size": 65536}
    (folder / "train.yaml").write_text(json.dumps(settings, indent=1))  # JSON is YAML
    command = [str(python), "-W", "ignore", "-c", opennmt.TRAIN, "-config", str(folder / "train.yaml")]
    saved: list[tuple[float, Path]] = []
    with (folder / "train.log").open("w") as log:
        process = Popen(command, env=opennmt.variables(1), stdout=log, stderr=STDOUT)
        try:
            while (spent := core_seconds(process.pid) / 60) < minutes and process.poll() is None:
                known = {path for _, path in saved}
                there = sorted(folder.glob("model_step_*.pt"), key=lambda path: int(path.stem.rpartition("_")[2]))
                for path in there:
                    if path not in known and time.time() - path.stat().st_mtime > 5:  # written whole
                        if saved and spent - saved[-1][0] < minutes / CHECKPOINTS and spent < 0.95 * minutes:
                            path.unlink()
                        else:
                            saved.append((spent, path))
                            print(f"{kind}: {path.stem} after {spent:.1f} minutes of one core", flush=True)
                time.sleep(2)
            if process.poll() is not None:
                raise SystemExit(f"the peer stopped: {(folder / 'train.log').read_text()[-2000:]}")
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait()
    return saved


def translated(python: Path, model: Path, source: Path, output: Path, beam: int) -> list[str]:
    """The lines of a tokenised file in the other language, as raw text."""
    pieces = output.with_suffix(".tokens")
    opennmt.translate(python, model, source, pieces, beam=beam, batch=32, threads=1, max_length=200)
    run([python, "-c", DETOKENIZE, str(pieces), str(output)], check=True)
    return output.read_text("utf-8").split("\n")[:-1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("recipe", type=Path)
    parser.add_argument("kind", choices=list(KINDS))
    parser.add_argument("--minutes", type=float, default=40.0)
    parser.add_argument("--folder", type=Path, default=Path("opennmt"), help="for its venv, text, models and outputs")
    args = parser.parse_args()
    data = read_config(args.recipe).data
    files = {name: files for name, files in data.given().items() if isinstance(files, Parallel)}
    python = opennmt.environment(args.folder)
    folder = args.folder / args.recipe.stem / args.kind
    folder.mkdir(parents=True, exist_ok=True)
    text = tokenized(python, files, folder, PIECES if args.kind == "transformer" else 0)
    reference = {name: files[name].target.read_text("utf-8").split("\n")[:-1] for name in ("dev", "test")}
    curve = []
    for spent, model in train(python, args.kind, text, folder, args.minutes):
        lines = translated(python, model, text["dev"].source, folder / "dev.txt", beam=1)
        curve.append((sacrebleu.corpus_bleu(lines, [reference["dev"]]).score, spent, model))
        print(f"{args.kind}: {spent:.1f} minutes, dev BLEU {curve[-1][0]:.2f}", flush=True)
    if not curve:
        raise SystemExit(f"no checkpoint in {args.minutes} minutes: give it more")
    best = max(curve)
    lines = translated(python, best[2], text["test"].source, folder / "test.txt", beam=5)
    scores = {
        "BLEU": sacrebleu.corpus_bleu(lines, [reference["test"]]).score,
        "chrF2": sacrebleu.corpus_chrf(lines, [reference["test"]]).score,
    }
    results = {"minutes": args.minutes, "test": scores, "tested": best[2].stem, "settings": COMMON | KINDS[args.kind]}
    results["curve"] = [{"core_minutes": spent, "bleu": bleu, "model": model.stem} for bleu, spent, model in curve]
    (folder / "results.json").write_text(json.dumps(results, indent=1) + "\n")
    print(f"{args.kind}: test BLEU {scores['BLEU']:.2f}, chrF2 {scores['chrF2']:.2f}; outputs: {folder / 'test.txt'}")


if __name__ == "__main__":
    main()
