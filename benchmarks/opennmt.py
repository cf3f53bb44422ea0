"""The peer: OpenNMT-py 2.3.0 with its copy mechanism, in a venv of its own, trained and used on text of ours.

    python benchmarks/opennmt.py SOURCE TARGET --embedding 128 --hidden 384 --vocabulary 5000 --batch 64 --updates 60

benchmarks/training.py, generation.py and serving.py set it beside ours. 2.3.0 is the last release whose copying works;
it runs as installed, on the torch that we use, and sees the tokens that our model sees.

How its model differs from ours (widths E, S, A = 2 × encoder; its D is `rnn_size`):

              ours (dl4mt)                                its own
encoder       GRU, E → A / 2, in both directions          GRU, E → D / 2, in both directions
decoder       s' = GRU(y, s), s = GRU(c, s')              s = GRU([y ; r], s), r the last readout ("input feed")
attention     v · tanh(W h + U s'), of width A            the same, of width D; W h is computed anew at every step
readout       r = tanh(W s + W y + W c), of width E       r = W [c ; s], of width D
shortlist     E → V                                       D → V
copying       an MLP of two layers chooses; log space     one unit chooses; probabilities of equal words are added up
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import statistics
import sys
import time
import venv
from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from subprocess import PIPE, STDOUT, Popen, run
from typing import Any, NamedTuple

from pointing.config import Config, checked
from pointing.corpus.examples import Corpus
from pointing.corpus.lexicon import make_tokenizer
from pointing.corpus.preparation import prepare

OTHERS = "configargparse tensorboard flask waitress pyonmttok pyyaml sacrebleu six tqdm requests sentencepiece numpy"
PEER = ["--no-deps", "OpenNMT-py==2.3.0", "torchtext==0.5.0"]  # what they ask for themselves is too old for us
INSTALLATION = [["torch==2.13.0"], PEER, [*OTHERS.split(), "setuptools<80"]]
SPECIALS = ["<unk>", "<blank>", "<s>", "</s>"]  # of its target vocabulary; the source has the first two
SERVED = 100  # the model's number in its server
POOL = 100  # batches whose examples are sorted by length together, as in pointing.corpus

THREADS = "import torch; print('threads', torch.get_num_threads(), flush=True)\n"
TRAIN = THREADS + "from onmt.bin.train import main; main()"
TRANSLATE = f"""{THREADS}import io, time
from onmt import opts
from onmt.translate.translator import build_translator
from onmt.utils.parse import ArgumentParser
parser = ArgumentParser()
opts.translate_opts(parser)
opt = parser.parse_args()
ArgumentParser.validate_translate_opts(opt)
lines = open(opt.src, encoding="utf-8").read().splitlines()
translator = build_translator(opt, report_score=False, out_file=io.StringIO())
translator.translate(lines[: opt.batch_size], batch_size=opt.batch_size)  # warm-up
for _ in range(REPETITIONS):
    start = time.perf_counter()
    _, best = translator.translate(lines, batch_size=opt.batch_size)
    print("seconds", time.perf_counter() - start)
for line in lines[:ALONE]:
    start = time.perf_counter()
    translator.translate([line], batch_size=1)
    print("alone", time.perf_counter() - start)
open(opt.output, "w", encoding="utf-8").writelines(one[0] + "\\n" for one in best)
"""


class Training(NamedTuple):
    tokens_per_second: float  # target tokens with the end of sentence, without padding; after the warm-up
    seconds_per_update: float
    reports: list[float]  # target tokens per second of each counted report, to see how steady they are
    parameters: int
    model: Path


class Translation(NamedTuple):
    repetitions: list[float]  # seconds from lines to lines: without start-up, loading and warm-up
    alone: list[float]  # the same of single lines, one call each
    lines: list[str]
    mean_length: float

    @property
    def seconds(self) -> float:
        return statistics.median(self.repetitions)


def environment(folder: Path) -> Path:
    """The peer's Python, in a venv in this folder, which is made once with the machine's settings of pip."""
    python, stamp = folder / "venv" / "bin" / "python", folder / "installed.json"
    if not stamp.exists() or json.loads(stamp.read_text()) != INSTALLATION:
        stamp.unlink(missing_ok=True)
        venv.create(folder / "venv", clear=True, symlinks=True, with_pip=True)
        for packages in INSTALLATION:
            run([python, "-m", "pip", "install", "--quiet", *packages], check=True)
        stamp.write_text(json.dumps(INSTALLATION))
    return python


def write_text(corpus_folder: Path, out_folder: Path, split: str = "train", seed: int | None = 1) -> tuple[Path, Path]:
    """A prepared split as text: the words that our model reads, separated by spaces; shuffled unless seed is None."""
    corpus = Corpus(corpus_folder)
    config = checked(Config, corpus.about["settings"])
    if config.pointers.uses_entities:
        raise SystemExit("entities become placeholders here, which are no words to the peer")
    examples = corpus.split(split)
    tokenizers = [make_tokenizer(config.text, language) for language in config.data.languages]
    order = list(range(len(examples)))  # the peer reads in order, and sorts within what it has read
    rows = order if seed is None else random.Random(seed).sample(order, len(order))
    out_folder.mkdir(parents=True, exist_ok=True)
    paths = out_folder / f"{split}.source", out_folder / f"{split}.target"
    for path, side, tokenizer in zip(paths, ("source", "target"), tokenizers, strict=True):
        words = [tokenizer.words(str(text)) for group in examples.groups for text in group.column(f"{side}_text")]
        lengths = examples.source_lengths if side == "source" else examples.target_lengths - 1  # the end of sentence
        if [len(line) for line in words] != lengths.tolist():
            raise SystemExit(f"{corpus_folder}: its tokens are not those of this version; prepare it again")
        path.write_text("".join(" ".join(words[row]) + "\n" for row in rows), encoding="utf-8", newline="\n")
    return paths


def train(
    python: Path,
    folder: Path,
    source: Path,
    target: Path,
    *,
    embedding: int,
    hidden: int,
    vocabulary: int,
    batch: int,
    updates: int,
    threads: int,
    copy: bool = True,
    dropout: float = 0.0,
    optimizer: str = "adam",
    learning_rate: float = 1e-3,
    report_every: int = 10,
    warm_up: int = 2,
    model: Mapping[str, Any] | None = None,
) -> Training:
    """Trains on tokenised text, one sentence a line; the first `warm_up` reports are not counted.

    `model` are settings of the peer's own for another kind of model than our GRU's twin.

    `vocabulary` is the size of both vocabularies, special words included. The peer reads POOL batches at a time, so
    with up to POOL updates all reading falls into the first report, which is not counted: in the peer's favour.
    """
    if warm_up < 1 or updates < (warm_up + 1) * report_every:
        raise SystemExit(f"{updates} updates have no report left to count after {warm_up}, one every {report_every}")
    folder.mkdir(parents=True, exist_ok=True)
    settings = {
        "data": {"train": {"path_src": str(source), "path_tgt": str(target)}},
        "src_vocab": str(folder / "source.words"),
        "tgt_vocab": str(folder / "target.words"),
        "src_vocab_size": vocabulary,  # the default is 50,000
        "tgt_vocab_size": vocabulary,
        "encoder_type": "brnn",
        "decoder_type": "rnn",
        "rnn_type": "GRU",
        "enc_layers": 1,
        "dec_layers": 1,
        "word_vec_size": embedding,
        "rnn_size": hidden,
        "global_attention": "mlp",
        "input_feed": 1,
        "copy_attn": copy,
        "reuse_copy_attn": copy,
        "dropout": [dropout],
        "batch_type": "sents",
        "batch_size": batch,
        "bucket_size": POOL * batch,
        "world_size": 1,
        "seed": 1,
        "optim": optimizer,
        "learning_rate": learning_rate,
        "max_grad_norm": 1,
        "train_steps": updates,
        "report_every": report_every,
        "save_checkpoint_steps": updates,
        "save_model": str(folder / "model"),
    } | dict(model or {})
    write_vocabulary(source, folder / "source.words", vocabulary, specials=2)
    write_vocabulary(target, folder / "target.words", vocabulary, specials=4)
    (folder / "train.yaml").write_text(json.dumps(settings, indent=1))  # JSON is YAML
    log = _run(python, TRAIN, ["-config", str(folder / "train.yaml")], threads)
    (folder / "train.log").write_text(log)
    for side in ("src", "tgt"):
        if (size := int(_found(rf"\* {side} vocab size = (\d+)", log))) != vocabulary:
            raise SystemExit(f"its vocabulary ({side}) has {size:,} entries, not {vocabulary:,}: the text has no more")
    steps = re.findall(r"^\[(\S+ \S+) INFO\] Step +\d+/ *\d+; .* \d+/ *(\d+) tok/s", log, re.MULTILINE)
    times = [datetime.strptime(at, "%Y-%m-%d %H:%M:%S,%f").timestamp() for at, _ in steps][warm_up - 1 :]
    rates, seconds = [float(rate) for _, rate in steps[warm_up:]], times[-1] - times[0]
    words = [rate * (after - before) for rate, (before, after) in zip(rates, pairwise(times), strict=True)]
    return Training(
        tokens_per_second=sum(words) / seconds,
        seconds_per_update=seconds / (len(rates) * report_every),
        reports=rates,
        parameters=int(_found(r"number of parameters: (\d+)", log)),
        model=folder / f"model_step_{updates}.pt",
    )


def translate(
    python: Path,
    model: Path,
    source: Path,
    output: Path,
    *,
    beam: int,
    batch: int,
    threads: int,
    max_length: int,
    min_length: int = 0,
    repetitions: int = 1,
    alone: int = 0,
) -> Translation:
    """Beam search over tokenised lines. With min_length = max_length every output takes exactly so many steps.

    All lines are translated `repetitions` times, then the first ones once more, each by a call of its own.
    """
    numbers = f"-gpu -1 -beam_size {beam} -batch_size {batch} -max_length {max_length} -min_length {min_length}"
    arguments = ["-model", str(model), "-src", str(source), "-output", str(output), *numbers.split()]
    log = _run(python, f"REPETITIONS, ALONE = {repetitions}, {alone}\n{TRANSLATE}", arguments, threads)
    _found(r"^seconds (\S+)", log)
    seconds, singly = (
        [float(one) for one in re.findall(rf"^{name} (\S+)", log, re.M)] for name in ("seconds", "alone")
    )
    lines = output.read_text(encoding="utf-8").removesuffix("\n").split("\n")
    return Translation(seconds, singly, lines, sum(len(line.split()) for line in lines) / len(lines))


def serve(
    python: Path, folder: Path, model: Path, *, port: int, beam: int, threads: int, max_length: int, min_length: int = 0
) -> Popen[bytes]:
    """The peer's own server on 127.0.0.1, which is loading the model; it logs to a file in the folder.

    POST /translator/translate takes [{"src": a tokenised line, "id": 100}]; it answers when it is ready.
    """
    search = {"gpu": -1, "beam_size": beam, "min_length": min_length, "max_length": max_length}
    settings = {"id": SERVED, "model": str(model.resolve()), "load": True, "timeout": -1, "opt": search}
    (folder / "server.json").write_text(json.dumps({"models_root": "/", "models": [settings]}))
    options = ["--ip", "127.0.0.1", "--port", str(port), "--config", str((folder / "server.json").resolve())]
    command = [str(python.absolute()), "-W", "ignore", "-m", "onmt.bin.server", *options]
    with (folder / "server.log").open("wb") as log:
        return Popen(command, env=variables(threads), cwd=folder, stdout=log, stderr=log)


def multiplications(
    *, embedding: int, hidden: int, vocabulary: int, J: int, T: int, copy: bool = True, as_run: bool = False
) -> dict[str, int]:
    """Multiply-adds of the peer's forward pass, by part, for J source and T target words (in a search, beam × steps).

    The peer computes the attention's W h again at every step; only `as_run` counts it so, else it counts once.
    """
    E, D, V = embedding, hidden, vocabulary
    return {
        "encoder": J * 2 * 3 * (D // 2) * (E + D // 2),
        "decoder": T * 3 * D * (E + D + D),
        "attention": (T if as_run else 1) * J * D * D + T * D * D + 2 * T * J * D,
        "readout": T * 2 * D * D,
        "shortlist": T * D * V,
        "copying": T * (D + J * J) if copy else 0,  # it sums over equal words by a product with a matrix of 0 and 1
    }


def our_multiplications(
    *, embedding: int, encoder: int, hidden: int, vocabulary: int, J: int, T: int, copy: bool = True
) -> dict[str, int]:
    """Multiply-adds of our own model; `encoder` is the width of one direction."""
    E, H, S, A, V = embedding, encoder, hidden, 2 * encoder, vocabulary
    return {
        "encoder": J * 2 * 3 * H * (E + H),
        "decoder": A * S + T * 3 * S * (E + S + A + S),
        "attention": J * A * A + T * S * A + 2 * T * J * A,
        "readout": T * E * (S + E + A),
        "shortlist": T * E * V,
        "copying": T * ((A + S) * S + S * S + S) if copy else 0,
    }


def equal_hidden(work: int, **sizes: int) -> int:
    """The peer's width (hidden) at which it needs `work` multiplications; `sizes` are its other sizes."""
    return min(range(2, 8192, 2), key=lambda D: abs(sum(multiplications(hidden=D, **sizes).values()) - work))


def write_vocabulary(text: Path, path: Path, size: int, specials: int) -> None:
    """Writes the most frequent words with their counts, a word on each line; ties in the order of the alphabet."""
    counts = Counter(text.read_text(encoding="utf-8").split())
    ranked = sorted((-count, word) for word, count in counts.items() if word not in SPECIALS)
    path.write_text("".join(f"{word} {-count}\n" for count, word in ranked[: size - specials]), encoding="utf-8")


def variables(threads: int) -> dict[str, str]:
    """The environment of the peer's programs."""
    settings = {name: str(threads) for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS")}
    settings["TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"] = "1"  # the peer's checkpoints hold more than tensors
    return os.environ | settings


def _run(python: Path, program: str, arguments: list[str], threads: int) -> str:
    """Runs a program in the peer's venv and returns what it prints."""
    command = [str(python), "-W", "ignore", "-c", program, *arguments]
    start, before = time.perf_counter(), _seconds_of_others()
    done = run(command, env=variables(threads), stdout=PIPE, stderr=STDOUT, encoding="utf-8")
    if done.returncode:
        raise SystemExit(f"the peer failed:\n{done.stdout[-3000:]}")
    if (used := int(_found(r"^threads (\d+)", done.stdout))) != threads:
        raise SystemExit(f"the peer uses {used} threads, not {threads}")
    others = (_seconds_of_others() - before) / (time.perf_counter() - start)
    if others > 0.1:  # threads that wait for each other can then be ten times slower
        print(f"other processes took {others:.1f} cores meanwhile: measure again", file=sys.stderr)
    return done.stdout


def _seconds_of_others() -> float:
    """Processor time of all processes of this machine, without this one and its finished children."""
    user, nice, system = map(int, Path("/proc/stat").read_text().split()[1:4])
    return (user + nice + system) / os.sysconf("SC_CLK_TCK") - sum(os.times()[:4])


def _found(pattern: str, text: str) -> str:
    if (match := re.search(pattern, text, re.MULTILINE)) is None:
        raise SystemExit(f"{pattern!r} is not in the peer's log:\n{text[-3000:]}")
    return match[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("source", type=Path, help="raw text, a sentence a line")
    parser.add_argument("target", type=Path)
    numbers = {"embedding": 128, "hidden": 384, "vocabulary": 5000, "batch": 64, "updates": 60}
    numbers |= {"threads": os.cpu_count() or 1, "beam": 5, "sentences": 100, "steps": 20}  # the last three: generation
    for name, default in numbers.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--folder", type=Path, default=Path("opennmt"), help="for its venv, text and model")
    args = parser.parse_args()
    python = environment(args.folder)
    files = {"source": str(args.source), "target": str(args.target)}
    corpus, _ = prepare(checked(Config, {"data": {"train": files, "dev": files}}), args.folder / "corpus")
    source, target = write_text(corpus.folder, args.folder / "text")
    some = args.folder / "text" / "some.source"
    some.write_text("".join(f"{line}\n" for line in source.read_text("utf-8").splitlines()[: args.sentences]), "utf-8")
    sizes = {"embedding": args.embedding, "hidden": args.hidden, "vocabulary": args.vocabulary}
    common = {"batch": args.batch, "threads": args.threads}
    trained = train(python, args.folder / "model", source, target, **sizes, **common, updates=args.updates)
    search = {"beam": args.beam, "max_length": args.steps, "min_length": args.steps}
    made = translate(python, trained.model, some, args.folder / "output", **common, **search)
    J, T = (round(float(getattr(corpus.split("train"), f"{side}_lengths").mean())) for side in files)
    work, as_run = (multiplications(**sizes, J=J, T=T, as_run=how) for how in (False, True))
    rows = {"training, target tokens/s": trained.tokens_per_second}
    rows[f"generation, words/s (beam {args.beam}, {args.steps} each)"] = args.sentences * args.steps / made.seconds
    rows |= {f"multiply-adds a target word: {part}": count / T for part, count in work.items()}
    rows |= {"all of them": sum(work.values()) / T, "all, as it is run": sum(as_run.values()) / T}
    print(f"OpenNMT-py, {trained.parameters:,} parameters, {args.threads} threads, batch {args.batch}, J {J}, T {T}")
    for name, value in rows.items():
        print(f"{name:<45}{value:>12,.0f}")


if __name__ == "__main__":
    main()
