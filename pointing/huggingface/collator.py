"""Pairs of lines → a batch that a `PointerModel` learns from, for `Trainer` and `DataLoader`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from pointing.errors import Misuse
from pointing.huggingface.model import IGNORED, PointerModel
from pointing.huggingface.pieces import PieceTokenizer
from pointing.huggingface.reading import pad_sources
from pointing.huggingface.targets import Policy, TargetWriter


class PointerCollator:
    """`Trainer(data_collator=PointerCollator(model), …)`: examples have their lines as `source` and `target`.

    `source` and `target` are the names of these columns. `policy` says which words are taught as pointers
    (`TargetWriter`); lines of more than `longest` pieces are cut there.
    """

    def __init__(
        self,
        model: PointerModel,
        source: str = "source",
        target: str = "target",
        *,
        policy: Policy = "cut",
        counts: Mapping[str, int] | None = None,
        min_count: int = 5,
        longest: int | None = None,
    ) -> None:
        self.columns = source, target
        self.pieces = PieceTokenizer(model.tokenizer, model.config.prefix, longest or model.longest)
        self.write = TargetWriter(self.pieces, model.V, policy, counts, min_count)
        self.pad = model.pad

    def __call__(self, examples: Sequence[Mapping[str, Any]]) -> dict[str, Tensor]:
        sources, labels = [], []
        for example in examples:
            source = self.pieces.source(self._column(example, 0))
            sources.append(source)
            labels.append(torch.tensor(self.write(source, self._column(example, 1))))
        return {
            **pad_sources(sources, self.pad),
            "labels": pad_sequence(labels, batch_first=True, padding_value=IGNORED),  # (B, T)
        }

    def _column(self, example: Mapping[str, Any], side: int) -> str:
        name = self.columns[side]
        if name not in example:
            raise Misuse(
                f"an example has no column {name!r}, only {', '.join(map(repr, example)) or 'none'}: name the columns, "
                "PointerCollator(model, source=..., target=...), and give remove_unused_columns=False to "
                "TrainingArguments, as Trainer leaves out columns that the model does not read"
            )
        return str(example[name])
