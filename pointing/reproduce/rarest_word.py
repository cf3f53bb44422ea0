"""The rarest-word task (paper §5.1): which word of a short sequence is the least frequent? Task, model, one run.

A word's id is its rank, 0 for the most frequent word, so the answer is the largest id of the sequence. The rarest words
are outside the shortlist: the model points at them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Annotated, Literal

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn

from pointing.config import Positive, Settings
from pointing.pointer_softmax import Annotations, NeverPoint, PointerNetwork, PointerSoftmax, Switch

VALIDATION_SEED, TEST_SEED = 2016, 2017  # the same validation and test sequences for every run


class RarestWord(Settings):
    """One run of the rarest-word task (paper §5.1). The defaults are the paper's, where the paper gives them."""

    head: Literal["softmax", "summary", "annotations"] = "summary"
    """softmax: a softmax over all words. summary: pointer softmax with l_t from the last state alone, as the paper
    describes it. annotations: pointer softmax with l_t from attention to all states."""
    words: Positive = 600  # different words
    rare: Positive = 60  # how many of them, the rarest ones, are outside the shortlist and can only be pointed at
    length: Positive = 7  # words in a sequence
    p: Annotated[float, Field(gt=0, lt=1)] = (
        0.001  # a word of rank k is drawn with weight (1 - p)^k; the paper does not give p
    )
    training: Positive | None = None  # fixed training sequences; null: new ones for every update, as in the paper
    min_count: Positive = 5  # words seen less often in a fixed training set are read as unknown (paper §5.2)
    validation: Positive = 5_000  # sequences
    test: Positive = 50_000  # sequences
    hidden: Positive = 1000
    batch: Positive = 250
    learning_rate: Annotated[float, Field(gt=0)] = 8e-4
    inverse_temperature: Annotated[float, Field(gt=0)] = 2.0
    updates: Positive = 2_000
    validate_every: Positive = 100
    seed: int = 1

    @model_validator(mode="after")
    def _rare_words_are_some_of_the_words(self) -> RarestWord:
        if self.rare >= self.words:
            raise ValueError(f"rare ({self.rare}) must be below words ({self.words})")
        return self


def _seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


class RarestWordTask:
    """Draws sequences; says what the model reads of a sequence, and which output is right for it."""

    def __init__(self, settings: RarestWord) -> None:
        self.settings = settings
        self.cumulative = self.unigram().cumsum(0).float()
        self.shortlist = settings.words - (0 if settings.head == "softmax" else settings.rare)
        self.training = None if settings.training is None else self.draw(settings.training, _seeded(settings.seed))
        self.count = torch.full((settings.words,), settings.min_count)
        if self.training is not None:
            self.count = self.training.flatten().bincount(minlength=settings.words)

    def unigram(self) -> Tensor:
        """The truncated geometric distribution over ranks."""
        weight = (1 - self.settings.p) ** torch.arange(self.settings.words, dtype=torch.float64)
        return weight / weight.sum()

    def draw(self, sequences: int, generator: torch.Generator) -> Tensor:
        """Random sequences of word ids (B, J)."""
        u = torch.rand(sequences, self.settings.length, generator=generator)
        return torch.searchsorted(self.cumulative, u).clamp(max=self.settings.words - 1)

    def batches(self, generator: torch.Generator) -> Iterator[Tensor]:
        """Training sequences (B, J), without end: new ones each time, or the fixed ones in a new order every epoch."""
        batch = self.settings.batch
        while self.training is None:
            yield self.draw(batch, generator)
        while True:
            order = torch.randperm(len(self.training), generator=generator)
            for rows in order.split(batch):
                yield self.training[rows]

    def as_read(self, x: Tensor) -> Tensor:
        """What the model reads (B, J): words too rare in a fixed training set become one unknown word, id |V|."""
        return x.masked_fill(self.count[x] < self.settings.min_count, self.settings.words)

    def target(self, x: Tensor) -> Tensor:
        """(B, 1): the rarest word's id if it is in the shortlist, else V + the first position that holds the word."""
        word, _ = x.max(1)
        position = (x == word.unsqueeze(1)).int().argmax(1)
        return torch.where(word < self.shortlist, word, self.shortlist + position).unsqueeze(1)

    def answer(self, x: Tensor, choice: Tensor) -> Tensor:
        """The words (B,) that the model's choices (B,) write: a pointer writes the word at its position."""
        position = (choice - self.shortlist).clamp(min=0).unsqueeze(1)
        return torch.where(choice < self.shortlist, choice, x.gather(1, position).squeeze(1))

    def held_out(self) -> tuple[Tensor, Tensor]:
        """The validation and test sequences."""
        validation, test = _seeded(VALIDATION_SEED), _seeded(TEST_SEED)
        return self.draw(self.settings.validation, validation), self.draw(self.settings.test, test)


class RarestWordModel(nn.Module):
    """A GRU, whose last state is the summary c. One hidden layer over c gives w, another gives l, both give d."""

    def __init__(self, settings: RarestWord, shortlist: int) -> None:
        super().__init__()
        hidden = settings.hidden
        self.head = settings.head
        self.embedding = nn.Embedding(settings.words + 1, hidden)  # the last row is for the unknown word
        self.gru = nn.GRU(hidden, hidden, batch_first=True)
        self.for_word, self.for_place = nn.Linear(hidden, hidden), nn.Linear(hidden, hidden)
        if self.head == "softmax":
            self.output = PointerSoftmax(shortlist, hidden, NeverPoint())
            return
        switch = Switch(
            2 * hidden, hidden, layers=1, activation="tanh", bias=0, inverse_temperature=settings.inverse_temperature
        )
        if self.head == "summary":
            self.place = nn.Linear(hidden, settings.length)
        network = PointerNetwork(hidden, hidden) if self.head == "annotations" else None
        self.output = PointerSoftmax(shortlist, hidden, switch, network)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor | Annotations]:
        """The output layer's inputs for the only step: readout, evidence, and l_t or what it is computed from."""
        h, last = self.gru(self.embedding(x))  # (B, J, H), (1, B, H)
        c = last.transpose(0, 1)  # (B, 1, H)
        readout, query = torch.tanh(self.for_word(c)), torch.tanh(self.for_place(c))
        if self.head == "softmax":
            return readout, readout, readout.new_zeros(len(x), 1, 0)  # no positions to point at
        evidence = torch.cat([readout, query], -1)
        if self.head == "summary":
            return readout, evidence, self.place(query).log_softmax(-1)
        return readout, evidence, Annotations(query, h, torch.ones_like(x, dtype=torch.bool))


@dataclass
class Errors:
    """Error rates in percent, by the kind of answer; None if no sequence has such an answer."""

    all: float
    rare: float | None
    unseen: float | None  # rare words that do not occur in a fixed training set
    other: float | None
    counts: dict[str, int]  # sequences of each kind


@dataclass
class RarestWordResult:
    """What one run gave; the fields are the keys of its JSON file."""

    settings: RarestWord
    curve: list[dict[str, float]]  # update, then validation errors: all, rare, other
    best_update: int
    test: Errors  # of the weights with the least validation error
    seconds: float  # of training
    drawing_share: float  # share of the training time that was spent on drawing batches


def train_and_test(settings: RarestWord, on_update: Callable[[], None] = lambda: None) -> RarestWordResult:
    """Trains one model and tests it; `on_update` is called after every update."""
    torch.manual_seed(settings.seed)
    task = RarestWordTask(settings)
    validation, test = task.held_out()
    model = RarestWordModel(settings, task.shortlist)
    optimizer = torch.optim.Adam(model.parameters(), lr=settings.learning_rate)
    batches = task.batches(_seeded(settings.seed))
    curve: list[dict[str, float]] = []
    best: dict[str, Tensor] = {}
    best_update, best_error = 0, float("inf")
    start, drawing = time.perf_counter(), 0.0
    for update in range(1, settings.updates + 1):
        before = time.perf_counter()
        x = next(batches)
        read, target = task.as_read(x), task.target(x)
        drawing += time.perf_counter() - before
        readout, evidence, log_l = model(read)
        loss = -model.output.log_likelihood(readout, evidence, log_l, target).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if update % settings.validate_every == 0 or update == settings.updates:
            errors = error_rates(model, task, validation)
            point = {"update": update, "all": errors.all, "rare": errors.rare, "other": errors.other}
            curve.append({name: value for name, value in point.items() if value is not None})
            if errors.all < best_error:
                best_update, best_error = update, errors.all
                best = {name: weight.clone() for name, weight in model.state_dict().items()}
        on_update()
    seconds = time.perf_counter() - start
    model.load_state_dict(best)
    return RarestWordResult(settings, curve, best_update, error_rates(model, task, test), seconds, drawing / seconds)


@torch.no_grad()
def error_rates(model: RarestWordModel, task: RarestWordTask, sequences: Tensor) -> Errors:
    model.eval()
    wrong = torch.cat([_wrong(model, task, x) for x in sequences.split(1000)])
    model.train()
    answer = sequences.max(1).values
    rare = answer >= task.settings.words - task.settings.rare
    unseen = rare & (task.count[answer] == 0)
    groups = {"rare": rare & ~unseen, "unseen": unseen, "other": ~rare}
    rates = {name: 100 * wrong[group].float().mean().item() if group.any() else None for name, group in groups.items()}
    counts = {name: int(group.sum()) for name, group in groups.items()}
    return Errors(all=100 * wrong.float().mean().item(), counts=counts, **rates)


def _wrong(model: RarestWordModel, task: RarestWordTask, x: Tensor) -> Tensor:
    """(B,) True where the most probable output is not the rarest word."""
    _, choice = model.output.top(1, *model(task.as_read(x)))
    return task.answer(x, choice.flatten()) != x.max(1).values
