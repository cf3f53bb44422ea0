"""Greedy outputs of the dev part during training: a few to look at, or all of them to be scored."""

from __future__ import annotations

from itertools import chain, islice

from pointing.config import Config, Search
from pointing.corpus.examples import Corpus, Split
from pointing.evaluation import plots
from pointing.evaluation.measures import words_in_form
from pointing.evaluation.metrics import rouge, tokenised_bleu
from pointing.generation.generator import Generator
from pointing.generation.output import Output
from pointing.model.encoder_decoder import EncoderDecoder
from pointing.model.run import Run
from pointing.system.progress import say
from pointing.system.terminal import visible
from pointing.training.journal import Journal


class Samples:
    """Makes outputs of the model as it is now. The examples shown are the first ones with a word to copy, if any."""

    def __init__(self, config: Config, corpus: Corpus, dev: Split, model: EncoderDecoder) -> None:
        self.config, self.dev = config, dev
        self.generator = Generator(Run(corpus.lexicon, model, {}))
        count = config.training.samples
        preferred = chain(dev.rows_with_pointers(len(corpus.lexicon.target)), range(len(dev)))
        self.rows = list(islice(dict.fromkeys(islice(preferred, 2 * count)), count))

    def outputs(self) -> list[Output]:
        """Outputs of the examples that are shown."""
        return self._greedy(self.rows, locations=True)

    def scores(self) -> dict[str, float]:
        """BLEU or ROUGE-L F1 of the whole dev part, if the settings ask for one.

        Words are compared as the model reads them, for instance in lower case; copied words come out as written.
        """
        score = self.config.training.score
        if score is None:
            return {}
        rows, target = range(len(self.dev)), self.generator.lexicon.tokenization.target
        hypotheses = [" ".join(words_in_form(output, target)) for output in self._greedy(rows)]
        references = [" ".join(words_in_form(self.dev[row]["target_text"], target)) for row in rows]
        if score == "bleu":
            measure = tokenised_bleu(hypotheses, [references])
        else:
            measure = next(m for m in rouge(hypotheses, [references]) if m.name == "ROUGE-L F1")
        return {score: measure.score or 0.0}

    def show(self, outputs: list[Output], journal: Journal, update: int) -> None:
        """Writes the outputs of `outputs()` to stderr and TensorBoard, copied words ⟦in brackets⟧."""
        for number, (output, row) in enumerate(zip(outputs, self.rows, strict=True), 1):
            reference = self.dev[row]["target_text"]
            text = f"{visible(output.source.text)}\n  → {marked(output)}\n  = {visible(reference)}"
            say(f"  {text}")
            if journal.board is not None:
                journal.board.add_text(f"sample {number}", text.replace("\n", "\n\n"), update)
        if journal.board is not None and outputs and plots.installed():
            journal.board.add_figure("attention", plots.attention(outputs[0]), update)

    def _greedy(self, rows: range | list[int], locations: bool = False) -> list[Output]:
        self.generator.weights_changed()  # since the last validation
        lines = self.generator.read.prepared(self.dev, rows)
        search = Search(beam=1, large_vocabulary=self.config.training.large_vocabulary, allow_unk=True)
        return self.generator.run(lines, search, locations=locations)


def marked(output: Output) -> str:
    """The words of an output, copied ones ⟦in brackets⟧."""
    return " ".join(
        visible(token.text) if token.origin == "shortlist" else f"⟦{visible(token.text)}⟧" for token in output.tokens
    )
