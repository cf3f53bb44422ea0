"""Training: one loop over updates, on one process or many; validated, checkpointed, taken up again to the same bit."""

from __future__ import annotations

import math
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

from pointing.config import Config
from pointing.corpus.batches import Batches, CandidateTranslations, candidates
from pointing.corpus.examples import Batch, Corpus
from pointing.corpus.preparation import prepare
from pointing.corpus.vectors import load as load_vectors
from pointing.errors import Failure, Misuse, Stopped
from pointing.model.decoder import not_training
from pointing.model.loss import log_likelihood
from pointing.model.run import MODEL, STATE, check_free, start_run, write_tensors
from pointing.model.seq2seq import Seq2Seq
from pointing.pointer_softmax import Switch
from pointing.system.progress import Progress, progress, say
from pointing.system.world import Processes, processes
from pointing.training import state as resuming
from pointing.training.journal import Journal
from pointing.training.optimizers import Optimizer, clip, values
from pointing.training.samples import Samples
from pointing.training.state import State
from pointing.training.validation import validate

NOTE_EVERY = 50  # updates
STEADY = 2_000  # updates without an overflow, after which a float16 loss is scaled up


def train(config: Config, corpus: Path, folder: Path, resume: bool = False) -> dict[str, Any] | None:
    """A whole run, or the rest of one; prepares the corpus if needed. Returns how it ended, in the first process."""
    with processes(config.training.device) as others:
        if not resume:
            check_free(folder)
        elif not (folder / "config.yaml").exists():
            raise Misuse("there is no run to resume in this folder", folder)
        made = _in_turn(others, lambda: prepare(config, corpus)[0])
        state = Trainer(config, made, folder, others, resume).run()
        return asdict(state) | {"folder": str(folder)} if others.first else None


def sentence(summary: dict[str, Any]) -> str:
    return (
        f"{summary['folder']}: {summary['update']:,} updates in {summary['seconds'] / 60:.1f} minutes, the best at "
        f"update {summary['best_update']:,} with a dev score of {abs(summary['best']):.3f}"
    )


class Trainer:
    """One run. Every process of it has one of these; the first one writes."""

    def __init__(self, config: Config, corpus: Corpus, folder: Path, processes: Processes, resume: bool) -> None:
        settings = self.settings = config.training
        self.config, self.corpus, self.folder, self.processes = config, corpus, folder, processes
        if settings.threads is not None:
            torch.set_num_threads(settings.threads)
        torch.manual_seed(settings.seed)
        sparse = settings.large_vocabulary is not None
        model = Seq2Seq(config.model, len(corpus.lexicon.source), len(corpus.lexicon.target), sparse)
        _start_from_vectors(model, corpus)
        self.model = model.to(processes.device).train()
        self.parameters: dict[str, Tensor] = dict(self.model.named_parameters())
        self.optimizer = Optimizer(self.parameters.items(), settings)
        torch.manual_seed(settings.seed + 1_000_003 * processes.rank)  # the same weights everywhere, other noise
        longest = int(corpus.split("train").source_lengths.max()) + 1
        self.guessing = math.log(len(corpus.lexicon.target) + longest)  # nats a word, of all that could be chosen
        self.translations = CandidateTranslations.of_lexicon(corpus.lexicon)
        self.state = State()
        if resume:
            self.state = resuming.take_up(folder, config, self._tensors(), corpus.about["made_from"], processes)
        if processes.first and self.state.update == 0:
            start_run(folder, config, corpus)
        where = {"epoch": self.state.epoch, "done": self.state.done}
        train, self.dev = corpus.split("train"), corpus.split("dev")
        if not len(train) or not len(self.dev):
            raise Misuse("there is nothing to learn from: the training or dev part is empty", corpus.folder)
        self.batches = Batches(train, settings.batch, settings.batch_by, seed=settings.seed, **where)
        self.samples = Samples(config, corpus, self.dev, self.model)
        self.journal = Journal(folder, self.state.update) if processes.first else None
        self.clock = self.saved = self.noted = time.monotonic()

    def run(self) -> State:
        """Updates until the settings say that it is enough, or until a signal; then the last checkpoint."""
        state, settings = self.state, self.settings
        try:
            with _signals() as stop, progress("training", settings.updates, "updates", state.update) as bar:
                batches = iter(self.batches)
                while not state.enough(settings):
                    asked = self._learn([next(batches) for _ in range(settings.accumulate)], bool(stop))
                    self._tell(bar)
                    if validate_now := state.update % settings.validate_every == 0 or state.enough(settings):
                        self._validate()
                    if validate_now or asked:
                        self._save()
                    if asked == "stop":
                        raise Stopped(f"stopped at update {state.update:,}; to go on, run the same with --resume")
        finally:
            if self.journal is not None:
                self.journal.close()
        return state

    def _learn(self, batches: list[Batch], stop: bool) -> Literal["stop", "save"] | None:
        """One update. Returned: what all processes are asked for, a stop by a signal to any, or a checkpoint now."""
        settings, state, others = self.settings, self.state, self.processes
        sequences = sum(len(batch.rows) for batch in batches)
        words = self._candidates(batches)
        sums = torch.zeros(2, dtype=torch.float64, device=others.device)
        for batch in batches:
            mine = batch.part(others.rank, others.world).to(others.device)
            with torch.autocast(others.device.type, _dtype(settings.precision), settings.precision != "float32"):
                predicted = self.model(mine.x, mine.x_mask, mine.y)
                log_p = log_likelihood(self.config, self.model, predicted, mine, words)
            loss = -log_p.sum() / sequences
            (loss * state.scale if settings.precision == "float16" else loss).backward()
            sums += torch.stack([loss.detach().double() * sequences, mine.mask.sum().double()])
        self.seen = predicted[1].detach(), mine.mask  # for the next note
        others.sum_gradients(self.parameters)
        save = others.first and time.monotonic() - self.saved > 60 * settings.checkpoint_minutes
        loss_sum, count, stops, saves = others.sum(torch.cat([sums, sums.new_tensor([stop, save])])).tolist()
        norm = 0.0
        if self._unscale():
            norm = float(clip(self.parameters, settings.clip))
            self._check(loss_sum / max(1, count), norm)
            self.optimizer.update(state.update + 1)
        state.update += 1
        state.epoch, state.done = self.batches.epoch, self.batches.done
        for name, number in (("loss", loss_sum), ("words", count), ("norm", norm), ("updates", 1)):
            state.since[name] = state.since.get(name, 0.0) + number
        return "stop" if stops else "save" if saves else None

    def _candidates(self, batches: list[Batch]) -> Tensor | None:
        """The large-vocabulary trick: the words of the whole update, so that every process has the same."""
        size = self.settings.large_vocabulary
        if size is None:
            return None
        chosen = [candidates(batch, size, len(self.corpus.lexicon.target), self.translations) for batch in batches]
        return (chosen[0] if len(chosen) == 1 else torch.cat(chosen).unique()).to(self.processes.device)

    def _unscale(self) -> bool:
        """With float16: takes the scale out of the gradients; False if it was too large for them, and they are gone."""
        if self.settings.precision != "float16":
            return True
        state, gradients = self.state, list(values(self.parameters))
        torch._foreach_mul_(gradients, 1 / state.scale)
        if all(bool(grad.isfinite().all()) for grad in gradients):
            state.steady += 1
            if state.steady == STEADY:
                state.scale, state.steady = state.scale * 2, 0
            return True
        state.scale, state.steady = state.scale / 2, 0
        if state.scale < 1:
            self._check(math.nan, math.nan)
        for p in self.parameters.values():
            p.grad = None
        return False

    def _check(self, loss: float, norm: float) -> None:
        """Stops a run that has gone astray before it costs the weights of the last checkpoint."""
        if math.isfinite(loss) and math.isfinite(norm) and (loss < 4 * self.guessing or self.state.update < NOTE_EVERY):
            return
        what = (
            f"is {loss:.1f} nats a word, far worse than guessing" if math.isfinite(loss + norm) else "is not a number"
        )
        kept = (self.folder / STATE).exists()
        last = f"The last good checkpoint is in {self.folder}" if kept else "There was no checkpoint yet"
        raise Failure(
            f"update {self.state.update + 1:,}: the loss {what}. {last}; start anew with a lower "
            "training.learning_rate or training.clip, or a longer training.warmup"
        )

    def _tell(self, bar: Progress) -> None:
        bar.advance()
        if self.state.update % NOTE_EVERY:
            return
        since, now = self.state.since, time.monotonic()
        numbers = {
            "loss_word": since["loss"] / max(1.0, since["words"]),
            "words_per_second": since["words"] / (now - self.noted),
            "gradient_norm": since["norm"] / since["updates"],
            "learning_rate": self.optimizer.rate(self.state.update),
            "epoch": self.state.epoch,
        }
        said = f"{numbers['words_per_second']:,.0f} words/s, loss {numbers['loss_word']:.3f} a word"
        if isinstance(self.model.output.switch, Switch):
            with torch.no_grad(), not_training(self.model):
                evidence, mask = self.seen
                numbers["pointing"] = float(1 - self.model.output.switch(evidence[mask]).sigmoid().mean())
            said += f", pointing {numbers['pointing']:.1%}"
        bar.note(said)
        if self.journal is not None:
            self.journal.note("training", self.state.update, numbers)
        self.state.since, self.noted = {}, now

    def _validate(self) -> None:
        start, state, settings = time.monotonic(), self.state, self.settings
        with not_training(self.model):
            numbers = validate(self.config, self.model, self.dev, self.processes)
            if not math.isfinite(numbers["nll"]):  # the update just made went astray
                self._check(numbers["nll"], 0.0)
            if self.processes.first:
                numbers |= self.samples.take()
        chosen_by = numbers["nll"] if settings.select == "nll" else -numbers.get(str(settings.score), 0.0)
        score = self.processes.gather(chosen_by)[0]
        better = score < state.best
        state.waited = 0 if better else state.waited + 1
        if better:
            state.best, state.best_update = score, state.update
        seconds = time.monotonic() - start
        if self.journal is not None:
            if better:
                about = {"update": state.update, "dev": numbers}
                write_tensors(self.folder / MODEL, self.parameters, about)
            self.journal.note("validation", state.update, {**numbers, "best": better, "seconds": seconds})
            self.samples.show(self.journal, state.update)
            say(_line(state.update, numbers, better))
        self.noted += seconds  # no part of the rate

    def _tensors(self) -> dict[str, Tensor]:
        """Every tensor that the next update depends on."""
        tensors = {f"model.{name}": p for name, p in self.parameters.items()}
        return tensors | {f"optimizer.{name}": slot for name, slot in self.optimizer.slots.items()}

    def _save(self) -> None:
        self.saved = time.monotonic()
        self.state.seconds, self.clock = self.state.seconds + self.saved - self.clock, self.saved
        resuming.save(self.folder, self.state, self._tensors(), self.corpus.about["made_from"], self.processes)


@torch.no_grad()
def _start_from_vectors(model: Seq2Seq, corpus: Corpus) -> None:
    """Pre-trained embeddings, where the corpus has them; a word without a vector keeps its random one."""
    for side, table in (("source", model.encoder.embedding.weight), ("target", model.embedding.weight)):
        path = corpus.folder / f"{side}.vectors.npy"
        if path.exists():
            vectors = torch.from_numpy(load_vectors(path))
            if vectors.shape != table.shape:
                widths = f"vectors of width {vectors.shape[1]}, but model.embedding is {table.shape[1]}"
                raise Misuse(f"{widths}: make them equal", path)
            table.copy_(torch.where(vectors.isnan(), table, vectors))


def _in_turn(others: Processes, work: Callable[[], Corpus]) -> Corpus:
    """The first process does the work, the others find it done."""
    if others.first:
        done = work()
    others.gather(None)
    return done if others.first else work()


def _dtype(precision: str) -> torch.dtype:
    return torch.float16 if precision == "float16" else torch.bfloat16


@contextmanager
def _signals() -> Iterator[list[int]]:
    """A list that gets SIGINT and SIGTERM as they come; the second one of a kind does what it always does."""
    seen: list[int] = []
    before: dict[int, Any] = {}

    def note(number: int, frame: object) -> None:
        seen.append(number)
        signal.signal(number, before[number])

    for kind in (signal.SIGINT, signal.SIGTERM):
        before[kind] = signal.signal(kind, note)
    try:
        yield seen
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _line(update: int, numbers: dict[str, Any], better: bool) -> str:
    """A validation in one line."""
    parts = [f"update {update:,}: dev NLL {numbers['nll']:.2f} a sentence, {numbers['nll_word']:.3f} a word"]
    if numbers["comparable_nll_word"] is not None:  # a pointer network has no shortlist to compare
        parts.append(f"comparable {numbers['comparable_nll_word']:.3f}")
    if numbers["pointer_accuracy"] is not None:
        parts.append(f"pointers {numbers['pointer_accuracy']:.1%} right")
    if "switch" in numbers:
        parts.append(f"switch {numbers['switch']['accuracy']:.1f} % right")
    parts += [f"{name.upper()} {numbers[name]:.2f}" for name in ("bleu", "rouge") if name in numbers]
    return ", ".join(parts) + (" (best)" if better else "")
