"""One update of the weights: the gradient of some batches, added up over all processes, and the optimiser's step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from torch import Tensor

from pointing.config import Config
from pointing.corpus.batches import CandidateTranslations, candidates
from pointing.corpus.examples import Batch, Corpus
from pointing.corpus.vectors import load_vectors
from pointing.errors import Misuse
from pointing.model.decoder import not_training
from pointing.model.encoder_decoder import EncoderDecoder
from pointing.model.loss import objective
from pointing.model.run import make_model
from pointing.system.processor import keep_freed_memory, use_wide_products
from pointing.system.world import Processes
from pointing.training.optimizers import build_optimizer, clip_gradients, learning_rate

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


class Update(NamedTuple):
    """What one update measured; all but the last two fields are sums over all processes."""

    loss: float  # negative log-likelihood in nats
    words: float  # target words
    norm: float | None  # of the gradient, before clipping; None: a float16 gradient overflowed, and no weight changed
    flags: list[bool]
    evidence: Tensor  # what the switch saw in this process's part of the last batch
    mask: Tensor  # which of these steps are not padding


class Learner:
    """The model, its optimiser, and the scale of float16 gradients: all that an update changes."""

    def __init__(self, config: Config, corpus: Corpus, processes: Processes) -> None:
        self.config, self.settings, self.processes = config, config.training, processes
        self.model = _first_model(config, corpus, processes)
        self.parameters: dict[str, Tensor] = dict(self.model.named_parameters())
        self.optimizer = build_optimizer(self.parameters.values(), config.training)
        self.averages = _copies(self.parameters) if config.training.average else {}  # of weights, with training.average
        self.scaler = torch.amp.GradScaler(processes.device.type, enabled=config.training.precision == "float16")
        self.target_size = len(corpus.lexicon.target)
        self.translations = CandidateTranslations.of_lexicon(corpus.lexicon)

    def learn(self, batches: list[Batch], update: int, flags: Sequence[bool] = ()) -> Update:
        """One update from the batches of all processes. A flag is returned as True if any process raised it.

        The loss is the negative objective of an example, averaged over all examples of the batches.
        """
        precision, device = self.settings.precision, self.processes.device
        examples = sum(len(batch.rows) for batch in batches)
        words = self._candidates(batches)
        sums = torch.zeros(2, dtype=torch.float64, device=device)
        for batch in batches:
            part = batch.part(self.processes.rank, self.processes.world_size).to(device)
            with torch.autocast(device.type, DTYPES[precision], enabled=precision != "float32"):
                predicted = self.model(part.x, part.x_mask, part.y, part.x_form, part.place)
                log_p, others = objective(self.config, self.model, predicted, part, words)
            loss = -log_p.sum() / examples
            for other in others:
                loss = loss - other.sum() / examples
            self.scaler.scale(loss).backward()
            sums += torch.stack([loss.detach().double() * examples, part.mask.sum().double()])
        self.processes.sum_gradients(self.parameters)
        totals = self.processes.sum(torch.cat([sums, sums.new_tensor(flags)]))  # one message for all
        loss_sum, word_count, *raised = totals.tolist()
        norm = self._step(learning_rate(self.settings, update))
        return Update(loss_sum, word_count, norm, [n > 0 for n in raised], predicted[1].detach(), part.mask)

    def pointing(self, update: Update) -> float | None:
        """The mean probability of pointing at the steps of an update; None without a switch."""
        if not self.model.output.has_switch:
            return None
        with torch.no_grad(), not_training(self.model):
            return float(1 - self.model.output.switch(update.evidence[update.mask]).sigmoid().mean())

    def tensors(self) -> dict[str, Tensor]:
        """Every tensor that the next update depends on, by its name in a checkpoint."""
        statistics = {
            f"optimizer.{statistic}.{name}": tensor
            for name, p in self.parameters.items()
            for statistic, tensor in self.optimizer.state[p].items()
        }
        averages = {f"average.{name}": tensor for name, tensor in self.averages.items()}
        return {f"model.{name}": p for name, p in self.parameters.items()} | statistics | averages

    @contextmanager
    def averaged(self) -> Iterator[None]:
        """The model has its averaged weights, if it has any; afterwards those that it learns on with."""
        learned = _copies(self.parameters) if self.averages else {}
        _put(self.averages, self.parameters)
        try:
            yield
        finally:
            _put(learned, self.parameters)

    def counters(self) -> dict[str, Any]:
        """What else the next update depends on: the optimiser's steps, and the scale of float16 gradients."""
        return {"steps": self.optimizer.param_groups[0]["step"], "scaler": self.scaler.state_dict()}

    def set_counters(self, steps: int, scaler: dict[str, Any]) -> None:
        self.optimizer.param_groups[0]["step"] = steps
        if self.scaler.is_enabled():
            self.scaler.load_state_dict(self.scaler.state_dict() | scaler)

    def _candidates(self, batches: list[Batch]) -> Tensor | None:
        """The words that compete in this update, with the large-vocabulary trick; the same in every process."""
        size = self.settings.large_vocabulary
        if size is None:
            return None
        each = [candidates(batch, size, self.target_size, self.translations) for batch in batches]
        return (each[0] if len(each) == 1 else torch.cat(each).unique()).to(self.processes.device)

    @torch.no_grad()
    def _average(self) -> None:
        """Moves the averages towards the weights; by more in the first updates, to forget where they began."""
        if self.averages:
            steps = self.optimizer.param_groups[0]["step"]
            kept = min(self.settings.average, (1 + steps) / (10 + steps))
            torch._foreach_lerp_(list(self.averages.values()), list(self.parameters.values()), 1 - kept)

    def _step(self, rate: float) -> float | None:
        """Clips the gradient, changes the weights by it and forgets it. Returns its norm; None if it overflowed."""
        self.optimizer.param_groups[0]["lr"] = rate
        self.scaler.unscale_(self.optimizer)
        norm = float(clip_gradients(self.parameters.values(), self.settings.clip))
        scale = self.scaler.get_scale()
        self.scaler.step(self.optimizer)  # does nothing if a float16 gradient overflowed
        self.scaler.update()
        self.optimizer.zero_grad()
        self._average()
        overflowed = self.scaler.get_scale() < scale
        return None if overflowed and scale > 1 else norm  # a scale of 1 cannot be the reason


@torch.no_grad()
def _copies(parameters: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: p.detach().clone() for name, p in parameters.items()}


@torch.no_grad()
def _put(values: dict[str, Tensor], parameters: dict[str, Tensor]) -> None:
    for name, value in values.items():
        parameters[name].copy_(value)


def _first_model(config: Config, corpus: Corpus, processes: Processes) -> EncoderDecoder:
    """The untrained model: the same weights in every process, and different noise after that."""
    settings = config.training
    use_wide_products()
    keep_freed_memory()
    if settings.threads is not None:
        torch.set_num_threads(settings.threads)
    torch.manual_seed(settings.seed)
    lexicon = replace(corpus.lexicon, config=config)  # a corpus may serve models of several settings
    model = make_model(lexicon, sparse=settings.large_vocabulary is not None)
    _start_from_vectors(model, corpus)
    torch.manual_seed(settings.seed + 1_000_003 * processes.rank)
    return model.to(processes.device).train()


@torch.no_grad()
def _start_from_vectors(model: EncoderDecoder, corpus: Corpus) -> None:
    """Copies the corpus's pre-trained embeddings, if it has any; a word without a vector keeps its random one."""
    for side, table in (("source", model.encoder.embedding.weight), ("target", model.embedding.weight)):
        path = corpus.folder / f"{side}.vectors.npy"
        if path.exists():
            vectors = torch.from_numpy(load_vectors(path))
            if vectors.shape != table.shape:
                widths = f"vectors of width {vectors.shape[1]}, but model.embedding is {table.shape[1]}"
                raise Misuse(f"{widths}: make them equal", path)
            table.copy_(torch.where(vectors.isnan(), table, vectors))
