"""Lines in, outputs out: what a `PointerModel` does beside `forward` and `generate()`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from pointing.errors import Misuse
from pointing.generation.output import Output
from pointing.huggingface.pieces import PieceTokenizer
from pointing.huggingface.reading import pad_sources
from pointing.huggingface.writing import Choices, with_alternatives, write
from pointing.model.decoder import not_training

NO_LIMIT = 10**6  # tokenizers without a limit say a very large one


class Translating:
    """The methods of a `PointerModel` that know its tokenizer."""

    tokenizer: Any
    config: Any
    generation_config: Any
    device: Any
    V: int
    pad: int
    generate: Any
    chosen: Any

    @property
    def longest(self) -> int | None:
        """How many pieces of a line are read at most, if the model or its tokenizer has a limit."""
        limits = [self.config.base.get("max_position_embeddings"), getattr(self.tokenizer, "model_max_length", None)]
        return min((limit for limit in limits if limit is not None and limit < NO_LIMIT), default=None)

    def encode(self, lines: str | Sequence[str]) -> dict[str, Tensor]:
        """Lines as the arguments of `generate()`: `input_ids`, `attention_mask`, and the `word_pieces` to copy from."""
        batch = pad_sources([self._pieces.source(line) for line in _listed(lines)], self.pad)
        return {name: x.to(self.device) for name, x in batch.items()}

    def translate(self, lines: str | Sequence[str], batch: int = 32, **options: Any) -> list[Output]:
        """The outputs of lines, in order, searched for by `generate(**options)`, such as num_beams=5.

        With num_return_sequences=N an output has its alternatives.
        """
        lines = _listed(lines)
        outputs: list[Output] = []
        with not_training(cast(nn.Module, self)):
            for start in range(0, len(lines), batch):
                some = lines[start : start + batch]
                wanted = {**options, "return_dict_in_generate": True, "output_scores": True}
                found = self.generate(**self.encode(some), **wanted)
                scores = getattr(found, "sequences_scores", None)  # of a beam search
                outputs += self.outputs(some, found.sequences, scores, start + 1)
        return outputs

    @torch.no_grad()
    def outputs(
        self, lines: str | Sequence[str], sequences: Tensor, scores: Tensor | None = None, first: int = 1
    ) -> list[Output]:
        """What `generate()` returned for these lines, as outputs whose words know their origin and probability.

        `sequences` (N · lines, T) are N for each line, best first. `scores` are those of a beam search; without, an
        output's score is its mean log-probability.
        """
        lines = _listed(lines)
        N = _number_for_each(lines, len(sequences))
        sources = [self._pieces.source(line) for line in lines]
        inputs = {name: x.to(self.device).repeat_interleave(N, 0) for name, x in pad_sources(sources, self.pad).items()}
        with not_training(cast(nn.Module, self)):
            rows = [self._trimmed(row) for row in sequences.tolist()]
            labels = pad_sequence([torch.tensor(row[1:]) for row in rows], batch_first=True, padding_value=-100)
            read = pad_sequence([torch.tensor(row[:-1]) for row in rows], batch_first=True, padding_value=self.pad)
            log_p, d = self.chosen(**inputs, decoder_input_ids=read.to(self.device), labels=labels.to(self.device))
        written = []
        for k, row in enumerate(rows):
            steps = len(row) - 1
            of_row = log_p[k, :steps].tolist()
            score = sum(of_row) / max(1, steps) if scores is None else float(scores[k])
            choices = Choices(row[1:], of_row, d[k, :steps].tolist(), score)
            written.append(write(choices, sources[k // N], self._pieces, self.V, first + k // N))
        return [with_alternatives(written[k : k + N]) for k in range(0, len(written), N)]

    def decode(self, lines: str | Sequence[str], sequences: Tensor | Sequence[Sequence[int]]) -> list[str]:
        """The texts of sequences, or of labels, N for each line: the tokenizer alone cannot know copied words."""
        lines = _listed(lines)
        rows = [[int(x) for x in row if x >= 0] for row in sequences]
        N = _number_for_each(lines, len(rows))
        sources = [self._pieces.source(line) for line in lines]
        none = [0.0] * max(map(len, rows), default=0)
        return [
            write(Choices(row, none, none, 0.0), sources[k // N], self._pieces, self.V, 1).text
            for k, row in enumerate(rows)
        ]

    @property
    def _pieces(self) -> PieceTokenizer:
        if self.tokenizer is None:
            raise Misuse("this model has no tokenizer: set model.tokenizer = AutoTokenizer.from_pretrained(...)")
        return PieceTokenizer(self.tokenizer, self.config.prefix, self.longest)

    def _trimmed(self, row: list[int]) -> list[int]:
        """A sequence as far as its end: `generate()` fills up what follows it."""
        eos = self.generation_config.eos_token_id
        ends = {eos} if isinstance(eos, int) else set(eos or ())
        end = next((t for t, choice in enumerate(row) if t > 0 and choice in ends), len(row) - 1)
        return row[: end + 1]


def _listed(lines: str | Sequence[str]) -> list[str]:
    return [lines] if isinstance(lines, str) else list(lines)


def _number_for_each(lines: Sequence[str], sequences: int) -> int:
    """How many sequences there are for each line."""
    if not lines or sequences % len(lines):
        raise Misuse(f"{sequences} sequences are not a whole number for each of {len(lines)} lines")
    return sequences // len(lines)
