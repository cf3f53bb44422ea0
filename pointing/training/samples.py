"""Greedy outputs of the dev part while a model is trained: a few to look at, or all of them to be scored."""

from __future__ import annotations

from itertools import chain, islice
from typing import Any

from pointing.config import Config, Search
from pointing.corpus.examples import Corpus, Split
from pointing.evaluation import plots
from pointing.evaluation.measures import words
from pointing.evaluation.metrics import rouge, tokenised_bleu
from pointing.generation.generator import Generator
from pointing.generation.output import Output
from pointing.generation.reader import Line
from pointing.model.run import Run
from pointing.model.seq2seq import Seq2Seq
from pointing.system.progress import say
from pointing.text.tokenizer import visible
from pointing.training.journal import Journal


class Samples:
    """The first dev examples with something to copy, or just the first ones."""

    def __init__(self, config: Config, corpus: Corpus, dev: Split, model: Seq2Seq) -> None:
        self.config, self.dev = config, dev
        self.generator = Generator(Run(corpus.lexicon, model, {}))
        count = config.training.samples
        wanted = chain(dev.rows_with_pointers(len(corpus.lexicon.target)), range(len(dev)))
        self.rows = list(islice(dict.fromkeys(islice(wanted, 2 * count)), count))
        self.shown: list[Output] = []

    def take(self) -> dict[str, Any]:
        """Outputs of the model as it is, for `show`; returned: BLEU or ROUGE of the whole dev part, if asked for."""
        self.generator.weights_changed()
        self.shown = self._greedy(self.rows, locations=True)
        score = self.config.training.score
        return {} if score is None else {score: self._score(score == "bleu")}

    def show(self, journal: Journal, update: int) -> None:
        """Where people look: stderr and TensorBoard, copied words ⟦in brackets⟧."""
        texts = []
        for output, row in zip(self.shown, self.rows, strict=True):
            reference = self.dev[row]["target_text"]
            texts.append(f"{visible(output.source.text)}\n  → {marked(output)}\n  = {visible(reference)}")
        for text in texts:
            say(f"  {text}")
        journal.samples(update, [text.replace("\n", "\n\n") for text in texts])
        if journal.board is not None and self.shown and plots.installed():
            journal.picture("attention", update, plots.attention(self.shown[0]))

    def _score(self, bleu: bool) -> float:
        """Of words as the model sees them, since copied ones come out as they were written."""
        rows, target = range(len(self.dev)), self.generator.lexicon.tokenization.target
        said = [" ".join(words(output, target)) for output in self._greedy(rows)]
        meant = [" ".join(words(self.dev[row]["target_text"], target)) for row in rows]
        measure = tokenised_bleu(said, [meant]) if bleu else rouge(said, [meant])[6]  # ROUGE-L F1
        return measure.score or 0.0

    def _greedy(self, rows: range | list[int], locations: bool = False) -> list[Output]:
        lines: list[Line] = self.generator.read.prepared(self.dev, rows)
        size = self.config.training.large_vocabulary
        settings = Search(beam=1, large_vocabulary=size, allow_unk=True)
        return self.generator.run(lines, settings, locations=locations)


def marked(output: Output) -> str:
    """An output's words, those that were copied ⟦in brackets⟧."""
    return " ".join(
        visible(token.text) if token.origin == "shortlist" else f"⟦{visible(token.text)}⟧" for token in output.tokens
    )
