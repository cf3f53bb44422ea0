"""Lines in, outputs out: in order, one for each, in windows, so that a pipe without end needs no more memory.

raw lines → what the model reads → search, batch by batch → words with their origin
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import chain, islice, starmap
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import torch
from torch import Tensor
from torch import distributed as dist

from pointing.config import Search
from pointing.corpus.batches import CandidateTranslations, candidates_by_source
from pointing.corpus.examples import Batch
from pointing.errors import Misuse
from pointing.generation.beam import Hypothesis, search
from pointing.generation.confidence import Confidence
from pointing.generation.glossary import Glossary, Kept, Mode, Terms, make_terms
from pointing.generation.options import SearchOptions, each_line, search_settings
from pointing.generation.output import Output
from pointing.generation.reader import Line, LineReader, as_batch, positions_of_spans
from pointing.generation.spans import Spans
from pointing.generation.writer import Writer
from pointing.model.decoder import SearchForm, not_training
from pointing.model.run import Run
from pointing.text.entities import Tagged

if TYPE_CHECKING:
    from typing_extensions import Unpack

WINDOW = 2048  # lines that are sorted by length together
FEWEST_TOKENS, MOST_TOKENS = 256, 2048  # source tokens of a batch, padding counted; more make it no faster
MULTIPLICATIONS_OF_A_TEAM = 10**8  # of a step, about; with fewer, threads that share the work wait for one another
MOST_SCORES = 1 << 24  # of one step: sources × hypotheses × shortlist words


class Generator:
    """A trained model with all that it takes to use it on raw lines."""

    def __init__(self, run: Run, confidence: Confidence | None = None) -> None:
        """`confidence` says how sure to be of an output."""
        self.lexicon, self.model = run.lexicon, run.model
        self.confidence = confidence
        self.read = LineReader(run.lexicon)
        self.translations = CandidateTranslations.of_lexicon(run.lexicon)
        self._for_search: SearchForm[Any] | None = None  # the model as search uses it, from the first search on

    def weights_changed(self) -> None:
        """The next search lays the weights out anew."""
        self._for_search = None

    def _laid_out(self) -> SearchForm[Any]:
        with not_training(self.model):
            self._for_search = self._for_search or self.model.for_search()
        return self._for_search

    def with_dictionary(self, path: str | Path) -> Generator:
        """The same model; what it copies is written as this dictionary of word pairs translates it."""
        if not isinstance(path, str | Path):
            raise Misuse("a dictionary is a file of word pairs; for your own terms give glossary={term: translation}")
        other = Generator(Run(self.lexicon.with_dictionary(path), self.model, {}), self.confidence)
        other._for_search = self._laid_out()
        return other

    def glossary(self, terms: Terms = None, keep: Kept = None, mode: Mode = "guaranteed") -> Glossary:
        """Terms for `generate`: how they are written, and which stay as they are. Both may be files."""
        return Glossary(make_terms(terms, keep), self.lexicon.tokenization.source, mode)

    @overload
    def generate(  # type: ignore[overload-overlap]  # a string is also an iterable of strings; this one comes first
        self,
        lines: str | bytes,
        settings: Search | None = None,
        *,
        locations: bool = False,
        choices: int = 0,
        tags: Iterable[Tagged] | None = None,
        glossary: Glossary | Terms = None,
        keep: Kept = None,
        dictionary: str | Path | None = None,
        min_confidence: float | None = None,
        **search: Unpack[SearchOptions],
    ) -> Output: ...

    @overload
    def generate(
        self,
        lines: Iterable[str | bytes],
        settings: Search | None = None,
        *,
        locations: bool = False,
        choices: int = 0,
        tags: Iterable[Tagged] | None = None,
        glossary: Glossary | Terms = None,
        keep: Kept = None,
        dictionary: str | Path | None = None,
        min_confidence: float | None = None,
        **search: Unpack[SearchOptions],
    ) -> list[Output]: ...

    def generate(self, lines: Any, settings: Search | None = None, **options: Any) -> Output | list[Output]:
        """An output for each line; of one line, given as a string, its output.

        `settings` say how to search; each of them may also be given by name: `beam=10`. A glossary (a mapping, a file,
        or what `glossary` made) says how terms are written, `keep` which terms stay as they are, a dictionary how
        copied words are translated. An output of less than `min_confidence` is replaced by its source line. With
        `locations` words know where the model looked, with `choices` so many of the best words of their step.
        """
        outputs = list(self.stream(lines, settings, **options))
        return outputs[0] if isinstance(lines, str | bytes | bytearray) else outputs

    def stream(
        self,
        lines: Iterable[str | bytes],
        settings: Search | None = None,
        *,
        locations: bool = False,
        choices: int = 0,
        tags: Iterable[Tagged] | None = None,
        glossary: Glossary | Terms = None,
        keep: Kept = None,
        dictionary: str | Path | None = None,
        min_confidence: float | None = None,
        window: int = WINDOW,
        on_all: bool = False,
        **search: Unpack[SearchOptions],
    ) -> Iterator[Output]:
        """The outputs one by one, in the lines' order, while they come in, `window` lines at a time.

        With `on_all`, by all processes of torchrun: the first reads the lines and gets all outputs, the others none.
        """
        generator = self if dictionary is None else self.with_dictionary(dictionary)
        settings, terms = search_settings(settings, search), generator._terms(glossary, keep)
        if min_confidence is not None:
            self.check_confidence(min_confidence)
        if self.read.needs_tags and tags is None:
            raise Misuse("this run was trained on tagged entities: the lines need tags too (generate --tags)")
        if terms is not None and not self.model.output.can_point:
            raise Misuse("a glossary's terms are pointed at, and this run has a plain softmax, which cannot point")
        if isinstance(choices, bool) or not isinstance(choices, int) or choices < 0:
            raise Misuse(f"choices: should be a number of words, not {choices!r}")
        if isinstance(window, bool) or not isinstance(window, int) or window < 1:
            raise Misuse(f"window: should be a number of lines, at least 1, not {window!r}")

        def work(first: int, lines: list[str | bytes], tags: list[Tagged] | None) -> list[Output]:
            outputs = generator.run(
                generator.read(lines, tags, terms), settings, locations=locations, choices=choices, first=first
            )
            return outputs if min_confidence is None else [kept_below(min_confidence, output) for output in outputs]

        windows = _windows(each_line(lines), tags, window)
        return chain.from_iterable(_on_all(work, windows) if on_all else starmap(work, windows))

    def check_confidence(self, least: float) -> None:
        """Refuses a confidence to be reached that is none, or that a run without confidences cannot tell."""
        if isinstance(least, bool) or not isinstance(least, int | float) or not 0 <= least <= 1:
            raise Misuse(f"min_confidence: should be a number from 0 to 1, not {least!r}")
        if self.confidence is None:
            raise Misuse("this run cannot tell how sure it is of its outputs: `pointing calibrate RUN` teaches it")

    def _terms(self, glossary: Glossary | Terms, keep: Kept) -> Glossary | None:
        if isinstance(glossary, Glossary):
            if keep is not None:
                raise Misuse("keep is part of a glossary that is made before: model.glossary(terms, keep=…)")
            return glossary
        for name, terms, form in (("glossary", glossary, "{term: translation}"), ("keep", keep, "[term]")):
            if isinstance(terms, str) and not Path(terms).exists():
                raise Misuse(f"there is no such file; terms themselves are given as {name}={form}", terms)
        return None if glossary is None and keep is None else self.glossary(glossary, keep)

    def run(
        self,
        lines: Sequence[Line],
        settings: Search | None = None,
        *,
        locations: bool = False,
        choices: int = 0,
        first: int = 1,
        abandoned: Callable[[int], bool] | None = None,
    ) -> list[Output]:
        """Outputs of lines that were read, numbered from `first`; lines of similar length are searched together.

        `abandoned` says of a line, by its index, at every step, whether nobody waits for it any more.
        """
        settings = settings or Search()
        target, forms = self.lexicon.tokenization.target, self.lexicon.config.text.forms
        writer = Writer(self.lexicon.target, target, settings.unk_replace, forms, self.confidence)
        outputs = [writer.write([], line, first + row) for row, line in enumerate(lines)]
        batches = list(self._batches(lines, settings))

        def work(rows: list[int]) -> list[list[Hypothesis]]:
            lines_of_batch = [lines[row] for row in rows]
            batch = as_batch(lines_of_batch)
            return search(
                model,
                batch,
                settings,
                candidates=self._candidates(batch, settings),
                placeholders=self.lexicon.target.placeholders,
                spans=self._spans(lines_of_batch, model.device),
                locations=locations,
                choices=choices,
                abandoned=None if abandoned is None else lambda: np.array([abandoned(row) for row in rows]),
            )

        with not_training(self.model), _side_by_side(len(batches), self._is_quick(batches, settings)) as each:
            model = self._laid_out()
            for rows, hypotheses_of_rows in zip(batches, each(work, batches), strict=True):
                for row, hypotheses in zip(rows, hypotheses_of_rows, strict=True):
                    outputs[row] = writer.write(hypotheses, lines[row], first + row)
        return outputs

    def _is_quick(self, batches: list[list[int]], settings: Search) -> bool:
        """True if the steps of every batch are so small that one thread is as quick as several."""
        rows = settings.beam * max(map(len, batches), default=0)
        return rows * sum(weight.numel() for weight in self.model.parameters()) < MULTIPLICATIONS_OF_A_TEAM

    def _batches(self, lines: Sequence[Line], settings: Search) -> Iterator[list[int]]:
        """Batches of rows of similar length that fit into memory at one step; empty lines are in no batch."""
        lengths = np.array([len(line.ids) for line in lines])
        order = np.argsort(lengths, kind="stable")
        order = order[lengths[order] > 0]
        share = -(-int(lengths.sum() + len(order)) // torch.get_num_threads())  # so that every thread has a batch
        budget = min(max(share, FEWEST_TOKENS), MOST_TOKENS)
        most = max(1, MOST_SCORES // (settings.beam * (settings.large_vocabulary or len(self.lexicon.target))))
        while len(order):
            padded = (lengths[order[:most]] + 1) * np.arange(1, len(order[:most]) + 1)
            taken = max(1, int(np.searchsorted(padded, budget, side="right")))
            yield order[:taken].tolist()
            order = order[taken:]

    def _spans(self, lines: Sequence[Line], device: torch.device) -> Spans | None:
        """What the outputs of these lines have to have, if the model can point."""
        if not self.model.output.can_point or not any(line.has_spans for line in lines):
            return None
        protected, aliases = (torch.from_numpy(array).to(device) for array in positions_of_spans(lines))
        return Spans(protected, aliases, len(self.lexicon.target))

    def _candidates(self, batch: Batch, settings: Search) -> Tensor | None:
        if settings.large_vocabulary is None:
            return None
        return candidates_by_source(batch, settings.large_vocabulary, len(self.lexicon.target), self.translations)


def kept_below(least: float, output: Output) -> Output:
    """The source line instead of an output that one cannot be sure enough of."""
    return output if output.confidence is None or output.confidence >= least else output.kept_as_source()


@contextmanager
def _side_by_side(jobs: int, quick: bool) -> Iterator[Callable[..., Iterator[Any]]]:
    """A `map` that runs as many jobs at a time as torch has threads, each job on one thread.

    The steps are small: threads that share the work of one step mostly wait for one another. So a single `quick` job
    has one thread too.
    """
    threads = torch.get_num_threads()
    if min(threads, jobs) < 2 and not (quick and threads > 1):
        yield map
        return
    if jobs < 2:
        torch.set_num_threads(1)
        try:
            yield map
        finally:
            torch.set_num_threads(threads)
        return
    with ThreadPoolExecutor(min(threads, jobs), initializer=torch.set_num_threads, initargs=(1,)) as pool:
        try:
            yield pool.map
        finally:
            torch.set_num_threads(threads)


def _on_all(work: Callable[..., list[Output]], windows: Iterator[Any]) -> Iterator[list[Output]]:
    """`starmap` by all processes: the first has the windows, and gets what comes of them, in order."""
    rank, world = dist.get_rank(), dist.get_world_size()
    while True:
        shares: list[Any] = list(islice(windows, world)) if rank == 0 else []
        shares += [(0, [], None) if shares else None] * (world - len(shares))
        share: list[Any] = [None]
        dist.scatter_object_list(share, shares if rank == 0 else None)
        if share[0] is None:
            return
        gathered: list[Any] | None = [None] * world if rank == 0 else None
        dist.gather_object(work(*share[0]), gathered)
        yield from gathered or []


def _windows(
    lines: Iterable[str | bytes], tags: Iterable[Tagged] | None, window: int
) -> Iterator[tuple[int, list[str | bytes], list[Tagged] | None]]:
    """`window` lines at a time, with the number of the first line and their tags if there are any."""
    first, all_lines, all_tags = 1, iter(lines), None if tags is None else iter(tags)
    while block := list(islice(all_lines, window)):
        block_tags = None if all_tags is None else list(islice(all_tags, len(block)))
        if block_tags is not None and len(block_tags) < len(block):
            raise Misuse(f"there are tags of {first - 1 + len(block_tags):,} lines only: every line needs its own")
        yield first, block, block_tags
        first += len(block)
    if all_tags is not None and next(all_tags, None) is not None:
        raise Misuse(f"there are {first - 1:,} lines, but tags of more: line n of both must be one example")
