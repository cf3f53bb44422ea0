"""How the words of an output are written: a small network beside the output layer, with `text.forms`."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from pointing.text.forms import FORMS

HIDDEN = 64  # units


class FormHead(nn.Module):
    """p(form of y_t | readout_t, y_t): what stands before the word and its case, known as soon as the word is."""

    def __init__(self, readout: int, embedding: int) -> None:
        super().__init__()
        self.from_readout, self.from_word = nn.Linear(readout, HIDDEN), nn.Linear(embedding, HIDDEN, bias=False)
        self.last = nn.Linear(HIDDEN, FORMS)

    def forward(self, readout: Tensor, y: Tensor) -> Tensor:
        """Logits (…, FORMS) from readouts (…, R) and words as the decoder reads them, (…, E)."""
        logits: Tensor = self.last(torch.tanh(self.from_readout(readout) + self.from_word(y)))
        return logits
