"""What every output of a source has to have: its protected spans, and the terms of the user's glossary.

B sources, K hypotheses of each, J source positions, V shortlist words, M continuations of a hypothesis.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from pointing.generation.reader import ARGUMENT, HINT, TAG, TERM, UNDRAWN
from pointing.model.decoder import of_parents
from pointing.model.fast_output import NO_WORD, Terms


class Spans:
    """Which protected positions each hypothesis has copied, and what it may therefore write next.

    Each position is copied once, and no hypothesis ends before it has copied them all (but for a HINT). If one would
    rather end, or has no room for other words, only the positions that it lacks may follow. A term is also written
    where the model chooses the same word from the shortlist.
    """

    def __init__(self, protected: Tensor, aliases: Tensor, V: int) -> None:
        self.protected, self.aliases, self.V = protected, aliases, V  # (B, J) both
        self.missing = (protected > 0).unsqueeze(1)  # (B, K, J), the positions that are not copied yet
        self.has_terms = bool((protected >= TERM).any())

    @property
    def required(self) -> Tensor:
        """(B,) how many positions must be copied."""
        return ((self.protected > 0) & (self.protected != HINT)).sum(1)

    def terms(self) -> Terms | None:
        """The terms that the model is drawn to and has not written yet; None if no source has a term."""
        if not self.has_terms:
            return None
        drawn = (self.protected >= TERM) & (self.aliases != UNDRAWN)
        return Terms(self.missing & drawn.unsqueeze(1), self.aliases.clamp(min=NO_WORD))

    def allowed(self, log_p: Tensor, end: Tensor, room: Tensor) -> Tensor:
        """log p of the continuations (B, K, M) with -inf where one is not allowed; the last J are the positions.

        `end` (B, K, M) is True where a hypothesis would end; `room` (B,) is how many words may follow before that.
        """
        J = self.protected.shape[1]
        kind = self.protected.unsqueeze(1)
        next_ones = self.missing
        for ordered in (ARGUMENT, TAG):
            of_kind = self.missing & (kind == ordered)
            next_ones = next_ones & ~(of_kind & (of_kind.int().cumsum(-1) > 1))  # unless another one comes first
        count = (self.missing & (kind != HINT)).sum(-1, keepdim=True)  # (B, K, 1)
        best_end = log_p.masked_fill(~end, -math.inf).amax(-1, keepdim=True)
        only_spans = (count > 0) & ((count >= room[:, None, None]) | (best_end >= log_p.amax(-1, keepdim=True)))
        forbidden = (end & (count > 0)) | only_spans
        words, positions = forbidden[..., :-J], forbidden[..., -J:]
        of_spans = ~next_ones | (only_spans & (kind == HINT))
        positions = torch.where(kind == 0, positions, of_spans)
        return log_p.masked_fill(torch.cat([words, positions], -1), -math.inf)

    def advance(self, parent: Tensor, choice: Tensor) -> None:
        """The new hypotheses, each by its parent and its choice (B, K')."""
        missing, choice = of_parents(self.missing, parent), choice.unsqueeze(-1)
        position = torch.arange(self.protected.shape[1], device=choice.device)
        written = choice == self.V + position
        if self.has_terms:
            same = missing & (choice == self.aliases.unsqueeze(1))
            written = written | (same & (same.int().cumsum(-1) == 1))  # the first of several equal terms
        self.missing = missing & ~written

    def keep_sources(self, live: Tensor) -> None:
        self.protected, self.aliases, self.missing = (
            part[live] for part in (self.protected, self.aliases, self.missing)
        )
