"""Training: one loop over updates, in one process or several; validated, saved, and resumed to the same bit."""

from __future__ import annotations

import math
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any

from pointing.config import Config, Training
from pointing.corpus.batches import Batches
from pointing.corpus.examples import Corpus, Split
from pointing.corpus.preparation import prepare
from pointing.corpus.statistics import corpus_warnings
from pointing.errors import Failure, Misuse, Stopped
from pointing.evaluation.calibration import calibrate_trained
from pointing.model.decoder import not_training
from pointing.model.run import (
    MODEL,
    OF_THE_CORPUS,
    SETTINGS,
    STATE,
    check_free,
    check_words,
    read_header,
    start_run,
    write_tensors,
)
from pointing.settings_file import named_files
from pointing.system.files import keep_apart, resolved
from pointing.system.locks import Lock, sole_writer
from pointing.system.progress import Progress, progress, say
from pointing.system.world import Processes, processes
from pointing.training.journal import Journal
from pointing.training.learner import Learner, Update
from pointing.training.samples import Samples
from pointing.training.start import Start, check_one_of, lines, read_record, read_start, resumed_vocabularies
from pointing.training.state import State, load_checkpoint, save_checkpoint
from pointing.training.taken import take_weights
from pointing.training.validation import validate

NOTE_EVERY = 50  # updates between two notes in the journal


def train(
    config: Config,
    corpus: Path,
    folder: Path,
    resume: bool = False,
    start: Path | None = None,
    keep_vocabulary: bool = False,
) -> dict[str, Any] | None:
    """Trains a run, or the rest of one, and prepares the corpus if needed. The first process returns the last state.

    `start` is the folder of another run, whose vocabularies and best weights a new run begins with.
    """
    check_one_of(start, resume)
    if resume and not (folder / SETTINGS).exists():
        raise Misuse("there is no run to resume in this folder", folder)
    keep_apart(named_files(config), [] if resume else [folder / name for name in OF_THE_CORPUS])
    with processes(config.training.device) as world, _lock(world, folder) as lock:
        begins_with = read_start(start, keep_vocabulary, folder, config)
        if not resume:
            check_free(folder)
        if resolved(folder) == resolved(corpus):
            raise Misuse("a run and its corpus need a folder each: choose others with --out and --corpus", folder)
        base = begins_with.base if begins_with is not None else resumed_vocabularies(folder) if resume else None
        prepared = _first_process_first(world, lambda: prepare(config, corpus, base=base)[0])
        for warning in corpus_warnings(prepared, config) if world.first else ():
            say(f"warning: {warning}")
        state = Trainer(config, prepared, folder, world, resume, begins_with, lock).run()
        world.gather(None)
        if world.first:  # the other processes are done
            calibrate_trained(folder, config, world.device)
            check_still_there(folder, lock)
    return _summary(state, config.training, folder) if world.first else None


def _lock(world: Processes, folder: Path) -> AbstractContextManager[Lock | None]:
    """The right to write into the run's folder, which the first process holds for all."""
    return sole_writer(folder) if world.first else nullcontext()


def check_still_there(folder: Path, lock: Lock | None) -> None:
    """Stops a run whose folder somebody has taken away: what it writes now would be in no run."""
    if lock is not None and not lock.holds():
        what = f"the run's folder, or {lock.path.name} in it, was removed or moved while the run was training"
        raise Failure(f"{folder}: {what}: it stops here, and what it has learned since its last checkpoint is lost")


def _summary(state: State, settings: Training, folder: Path) -> dict[str, Any]:
    """How a run ended; `best_by` says which number of the dev part `best` is: NLL, or a score with its sign turned."""
    summary = asdict(state) | {"folder": str(folder), "best_by": "score" if settings.select == "score" else "nll"}
    best = read_header(folder / MODEL)["dev"] if (folder / MODEL).exists() else {}
    return summary | {"dev": {name: best[name] for name in ("nll", "bleu", "rouge") if name in best}}


def sentence(summary: dict[str, Any]) -> str:
    """What `train` returned, in one sentence."""
    names = {"nll": "NLL {:.2f} a sentence", "bleu": "BLEU {:.1f}", "rouge": "ROUGE-L F1 {:.1f}"}
    dev = ", ".join(names[name].format(number) for name, number in summary["dev"].items())
    return (
        f"{summary['folder']}: {summary['update']:,} updates in {summary['seconds'] / 60:.1f} minutes, the best at "
        f"update {summary['best_update']:,}; its dev scores: {dev}"
    )


class Trainer:
    """One run. Each of its processes has a Trainer; the first process writes the files."""

    def __init__(
        self,
        config: Config,
        corpus: Corpus,
        folder: Path,
        processes: Processes,
        resume: bool,
        start: Start | None = None,
        lock: Lock | None = None,
    ) -> None:
        self.lock = lock
        settings = self.settings = config.training
        self.config, self.corpus, self.folder, self.processes = config, corpus, folder, processes
        train, self.dev = _splits(corpus)
        self.highest_loss = 4 * _loss_of_guessing(corpus, train)
        self.learner = Learner(config, corpus, processes)
        self.made_from = corpus.about["made_from"]
        state = load_checkpoint(folder, config, self.learner, self.made_from, processes) if resume else None
        self.state = state or State()
        self.has_start = start is not None
        if state is None:
            self._begin(start)
        else:
            check_words(folder, corpus.lexicon)
        # Weights of another run are measured before the first update; once more if that was cut off.
        self.measure_first = self.has_start or (state is not None and state.is_unmeasured)
        position = {"epoch": self.state.epoch, "done": self.state.done}
        self.batches = Batches(train, settings.batch, settings.batch_by, seed=settings.seed, **position)
        self.samples = Samples(config, corpus, self.dev, self.learner.model)
        last = -1 if self.measure_first else self.state.update
        self.journal = Journal(folder, last) if processes.first else None
        self.last_save = self.last_note = time.monotonic()
        self.core_seconds_before = self.state.core_seconds - time.process_time()

    def _begin(self, start: Start | None) -> None:
        """A new run's folder, and if it begins with another run's weights, these as its first checkpoint."""
        record = None
        if start is not None:
            taken = take_weights(self.learner.model, self.corpus.lexicon, start.run)
            record = start.record(self.config, taken)
        if self.processes.first:
            start_run(self.folder, self.config, self.corpus, record)
        if record is not None:
            save_checkpoint(self.folder, self.state, self.learner, self.made_from, self.processes)

    def run(self) -> State:
        """Makes updates until the settings say that it is enough, or until a signal; then writes a last checkpoint."""
        state, settings = self.state, self.settings
        try:
            with _signals() as signals, progress("training", settings.updates, "updates", state.update) as bar:
                if self.measure_first:
                    self._measure_start()
                batches = iter(self.batches)
                while not state.is_finished(settings):
                    flags = bool(signals), self._should_save()
                    accumulated = list(islice(batches, settings.accumulate))
                    update = self.learner.learn(accumulated, state.update + 1, flags)
                    check_still_there(self.folder, self.lock)
                    self._count(update)
                    self._note(update, bar)
                    stop, save = update.flags
                    if state.update % settings.validate_every == 0 or state.is_finished(settings):
                        self._validate()
                        save = True
                    if save or stop:
                        self._save()
                    if stop:
                        again = "--resume instead of --from" if self.has_start else "--resume"
                        raise Stopped(f"stopped at update {state.update:,}; to go on, run the same with {again}")
        finally:
            if self.journal is not None:
                self.journal.close()
        return state

    def _measure_start(self) -> None:
        """Says what the run begins with, and how good that is on the dev part."""
        if self.journal is not None:
            record = read_record(self.folder)
            self.journal.note("start", 0, record)
            for line in lines(record):
                say(line)
        self._validate()
        self._save()

    def _should_save(self) -> bool:
        """True in the first process if its last checkpoint is too old."""
        return self.processes.first and time.monotonic() - self.last_save > 60 * self.settings.checkpoint_minutes

    def _count(self, update: Update) -> None:
        """Adds an update to the state, unless its loss shows that the run has gone wrong."""
        state = self.state
        state.update += 1
        if update.norm is not None:
            self._check(update.loss / max(1, update.words), update.norm)
        state.epoch, state.done = self.batches.epoch, self.batches.done
        numbers = {"loss": update.loss, "words": update.words, "norm": update.norm or 0.0, "updates": 1}
        state.since = {name: state.since.get(name, 0.0) + number for name, number in numbers.items()}

    def _check(self, loss: float, norm: float) -> None:
        """Stops a run whose loss, in nats per word, is no number or hopeless, before it writes another checkpoint."""
        finite, early = math.isfinite(loss) and math.isfinite(norm), self.state.update <= NOTE_EVERY
        if finite and (loss < self.highest_loss or early):
            return
        problem = f"is {loss:.1f} nats a word, far worse than guessing" if finite else "is not a number"
        saved = (self.folder / STATE).exists()
        last = f"The last good checkpoint is in {self.folder}" if saved else "There was no checkpoint yet"
        raise Failure(
            f"update {self.state.update:,}: the loss {problem}. {last}; start anew with a lower "
            "training.learning_rate or training.clip, or a longer training.warmup"
        )

    def _note(self, update: Update, bar: Progress) -> None:
        """Advances the progress bar; every NOTE_EVERY updates, writes the averages since the last note."""
        bar.advance()
        if self.state.update % NOTE_EVERY:
            return
        since, now = self.state.since, time.monotonic()
        numbers = {
            "loss_word": since["loss"] / max(1.0, since["words"]),
            "words_per_second": since["words"] / (now - self.last_note),
            "gradient_norm": since["norm"] / since["updates"],
            "learning_rate": self.learner.optimizer.param_groups[0]["lr"],
            "epoch": self.state.epoch,
        }
        text = f"{numbers['words_per_second']:,.0f} words/s, loss {numbers['loss_word']:.3f} a word"
        pointing = self.learner.pointing(update)
        if pointing is not None:
            numbers["pointing"] = pointing
            text += f", pointing {pointing:.1%}"
        bar.note(text)
        if self.journal is not None:
            self.journal.note("training", self.state.update, numbers)
        self.state.since, self.last_note = {}, now

    def _validate(self) -> None:
        """Measures the model on the dev part; keeps its weights as the run's model if they are the best so far."""
        start, state, settings = time.monotonic(), self.state, self.settings
        with not_training(self.learner.model), self.learner.averaged():
            numbers = validate(self.config, self.learner.model, self.dev, self.processes)
            if not math.isfinite(numbers["nll"]):
                self._check(numbers["nll"], 0.0)
            if self.processes.first:
                outputs = self.samples.outputs()
                numbers |= self.samples.scores()
            loss = numbers["nll"] if settings.select == "nll" else -numbers.get(str(settings.score), 0.0)
            loss = self.processes.gather(loss)[0]  # only the first process knows the score
            better = loss < state.best
            if self.processes.first:
                check_still_there(self.folder, self.lock)
                if better:
                    about = {"update": state.update, "dev": numbers}
                    write_tensors(self.folder / MODEL, self.learner.parameters, about)
        state.waited = 0 if better else state.waited + 1
        if better:
            state.best, state.best_update = loss, state.update
        seconds = time.monotonic() - start
        if self.journal is not None:
            numbers |= {"best": better, "seconds": seconds, "core_minutes": self._core_seconds() / 60}
            self.journal.note("validation", state.update, numbers)
            self.samples.show(outputs, self.journal, state.update)
            say(_validation_line(state.update, numbers, better))
        self.last_note += seconds  # words per second are of training alone

    def _core_seconds(self) -> float:
        """Processor time of this and all earlier parts of the run; other work on the machine does not add to it."""
        return self.core_seconds_before + time.process_time()

    def _save(self) -> None:
        check_still_there(self.folder, self.lock)
        if self.journal is not None:
            self.journal.keep()
        now = time.monotonic()
        self.state.seconds, self.last_save = self.state.seconds + now - self.last_save, now
        self.state.core_seconds = self._core_seconds()
        save_checkpoint(self.folder, self.state, self.learner, self.made_from, self.processes)


def _splits(corpus: Corpus) -> tuple[Split, Split]:
    """The training and dev parts; neither may be empty."""
    train, dev = corpus.split("train"), corpus.split("dev")
    if not len(train) or not len(dev):
        raise Misuse("there is nothing to learn from: the training or dev part is empty", corpus.folder)
    return train, dev


def _loss_of_guessing(corpus: Corpus, train: Split) -> float:
    """Nats per word if all target words and all positions of the longest source were equally probable."""
    return math.log(len(corpus.lexicon.target) + int(train.source_lengths.max()) + 1)


def _first_process_first(world: Processes, work: Callable[[], Corpus]) -> Corpus:
    """Does some work in the first process; the others wait, and then find it done."""
    if world.first:
        result = work()
    world.gather(None)
    return result if world.first else work()


@contextmanager
def _signals() -> Iterator[list[int]]:
    """A list that SIGINT and SIGTERM are added to. The second signal of a kind has its usual effect."""
    received: list[int] = []
    handlers: dict[int, Any] = {}

    def receive(number: int, frame: object) -> None:
        received.append(number)
        signal.signal(number, handlers[number])

    for kind in (signal.SIGINT, signal.SIGTERM):
        handlers[kind] = signal.signal(kind, receive)
    try:
        yield received
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def _validation_line(update: int, numbers: dict[str, Any], better: bool) -> str:
    parts = [f"update {update:,}: dev NLL {numbers['nll']:.2f} a sentence, {numbers['nll_word']:.3f} a word"]
    if numbers["comparable_nll_word"] is not None:  # a pointer network has no shortlist to compare
        parts.append(f"comparable {numbers['comparable_nll_word']:.3f}")
    if numbers["pointer_accuracy"] is not None:
        parts.append(f"pointers {numbers['pointer_accuracy']:.1%} right")
    if "switch" in numbers:
        parts.append(f"switch {numbers['switch']['accuracy']:.1f} % right")
    parts += [f"{name.upper()} {numbers[name]:.2f}" for name in ("bleu", "rouge") if name in numbers]
    return ", ".join(parts) + (" (best)" if better else "")
