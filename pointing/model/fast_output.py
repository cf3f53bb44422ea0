"""The fast twin of the output layer, for search: each word that f_t can write once, with its best route.

A shortlist word can be chosen from the shortlist, and by every source position that holds it. All these routes lead to
the same next state, so they are one candidate. Its probability is that of the best route in the paper's rule (joint),
and the sum over the routes in the marginal rule. Only words of the source have more than one route; of the other
shortlist words the best few are enough.

`PointerSoftmax.forward` and `PointerSoftmax.marginalize`, over the whole f_t, are the readable reference. A test holds
both together.

B sources, K hypotheses of each, J source positions, V shortlist words, C of them that compete, R the readout's width.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from pointing.config import Search
from pointing.kernels import exact
from pointing.model.products import FastSwitch, Products
from pointing.pointer_softmax import PointerSoftmax, Switch
from pointing.text.vocabulary import EOS, FIRST, UNK

NO_WORD = -1  # stands where there is no word
TOP_BLOCK = 32  # `top` first looks at the largest of so many numbers
FEW_NUMBERS = 2**17  # of which `top` finds the largest at once: looking at blocks first would take longer
# Where the model looks at a glossary's term, in proportion to l_t: the part of the shortlist's probability that goes to
# the position, of terms outside the shortlist and of its words; and what is added to the logit of such a word.
PULL, PULL_TO_KNOWN, FAVOUR = 0.5, 0.4, 4.0
LOGITS_IN_CACHE = 2**17  # numbers of the logits that are worked on at a time


class FastOutput:
    """An output layer with its weights laid out once, for as long as they stay as they are. It is read-only."""

    def __init__(self, output: PointerSoftmax) -> None:
        self.V, self.shortlist = output.words, output.shortlist
        self.switch = FastSwitch(output.switch) if isinstance(output.switch, Switch) else output.switch
        self.all_words = None if self.shortlist is None else Products.of(self.shortlist)

    def logits(self, words: Tensor | None) -> Products | None:
        """The product that gives the logits of these words (C,), or of all; None without a shortlist."""
        if words is None or self.shortlist is None:
            return self.all_words
        return Products((self.shortlist.weight[words], self.shortlist.bias[words]))


class Sources(NamedTuple):
    """What is known of the sources before the first step, for each hypothesis: (B, 1, …) or (B, K, …)."""

    word: Tensor  # (…, J) word id, or V + first position; EOS at the source's end, NO_WORD at padding
    copied: Tensor  # (…, J) V + position
    padding: Tensor  # (…, J)
    first: Tensor  # (…, J) the first position that holds the same word
    repeats: Tensor  # (…) True if any word stands at two positions
    column: Tensor  # (…, J) the word's column among the C competing words; 0 (EOS) if it has none
    no_column: Tensor  # (…, J) True if the word has none
    not_best: Tensor  # (…, N) columns that are not among the best words: those of the source, and what it rules out
    outside: Tensor  # (…, C) True for each competing word that is no candidate of this source; (…, 0) if all words are


class Terms(NamedTuple):
    """Positions of the source that are to be written in a given way (a user's glossary)."""

    open: Tensor  # (B, K, J) True for a term that is not written yet
    words: Tensor  # (B, J) the word of the shortlist that writes it, or NO_WORD


class Continuations(NamedTuple):
    """How each hypothesis can go on, (B, K, M) each: by the best words, then by J positions; -inf where it cannot."""

    log_p: Tensor
    choice: Tensor  # the best route: word id, or V + position
    word: Tensor  # what it writes: word id, or V + first position


class Routes:
    """The output layer of one search, for given sources: over all words, or over each source's `candidates` (B, C')."""

    def __init__(
        self,
        output: FastOutput,
        source_words: Tensor,
        x_mask: Tensor,
        settings: Search,
        candidates: Tensor | None = None,
        placeholders: int = 0,
        choices: int = 0,
    ) -> None:
        """Beside the words of the source, the `settings.beam` best words are found, or `choices` if these are more.

        UNK is one of them only if settings allow it.
        """
        self.V, self.switch, self.best = output.V, output.switch, max(settings.beam, choices)
        self.unk, self.marginal = settings.allow_unk or settings.unk_replace, settings.ranking == "marginal"
        self.ids: Tensor | None = None
        span = torch.tensor([FIRST, FIRST + placeholders])
        if candidates is not None:
            self.ids = torch.cat([candidates.flatten(), candidates.new_tensor([EOS, UNK])]).unique()
            span = torch.searchsorted(self.ids, span.to(self.ids.device))
        self.placeholders = torch.arange(*span.tolist(), device=source_words.device)  # their columns
        self.logits = output.logits(self.ids)
        self._set(self._sources(source_words, x_mask, candidates))

    def keep_sources(self, live: Tensor) -> None:
        """Goes on with some sources only; `live` (N,) are their rows."""
        self._set(Sources(*(part[live] for part in self.sources)))

    def _set(self, sources: Sources) -> None:
        self.sources, self.any_repeats = sources, bool(sources.repeats.any())

    def _for_hypotheses(self, K: int) -> Sources:
        """The sources for K hypotheses of each; nothing is copied."""
        if self.sources.word.shape[1] != K:
            self.sources = Sources(*(part[:, :1].expand(-1, K, *part.shape[2:]) for part in self.sources))
        return self.sources

    def __call__(
        self,
        readout: Tensor,
        evidence: Tensor,
        log_l: Tensor,
        blocked: Tensor | None = None,
        terms: Terms | None = None,
    ) -> tuple[Continuations, Tensor]:
        """The continuations, and d_t (B, K). Words `blocked` (B, K, N), some of them NO_WORD, are left out.

        Where the model looks at one of the `terms`, it is drawn to what this is to be written as.
        """
        B, K, J = log_l.shape
        sources = self._for_hypotheses(K)
        switch = self.switch(evidence.view(B * K, -1)).view(B, K)  # the logit of d_t
        by_position = F.logsigmoid(-switch).unsqueeze(-1) + exact(log_l)  # (B, K, J)
        log_d = F.logsigmoid(switch)
        known_terms = None
        if terms is not None:
            look = exact(log_l).exp().masked_fill(~terms.open, 0.0)  # (B, K, J)
            known = (terms.words != NO_WORD).unsqueeze(1)
            known_terms = self._column(terms.words).unsqueeze(1).expand(B, K, J), FAVOUR * look.masked_fill(~known, 0.0)
            pull = look * torch.where(known, PULL_TO_KNOWN, PULL)
            by_position = torch.logaddexp(by_position, log_d.unsqueeze(-1) + pull.log())
            log_d = log_d + torch.log1p(-pull.sum(-1))
        by_positions, out = self._by_positions(by_position, sources)
        if blocked is not None:
            out = out | (sources.word.unsqueeze(3) == blocked.unsqueeze(2)).any(3)
        if self.logits is None:
            ways = Continuations(by_positions.masked_fill(out, -math.inf), sources.copied, sources.word)
            return ways, torch.sigmoid(switch)
        flat = exact(self.logits.all(readout.view(B * K, -1)))
        logits = flat.view(B, K, -1)  # (B, K, C)
        if known_terms is not None:
            logits.scatter_add_(-1, *known_terms)  # and so in `flat`
        if self.ids is not None:
            logits.masked_fill_(sources.outside, -math.inf)  # and so in `flat`
        shift = (log_d - log_total(flat).view(B, K)).unsqueeze(-1)  # (B, K, 1)
        by_shortlist = (shift + logits.gather(-1, sources.column)).masked_fill_(sources.no_column, -math.inf)
        choice = torch.where(by_shortlist >= by_position, sources.word, sources.copied)
        joined = torch.logaddexp(by_shortlist, by_positions) if self.marginal else by_shortlist.maximum(by_position)
        log_w, best_word = self._best_words(logits, sources, blocked)
        log_p = torch.cat([shift + log_w, joined.masked_fill_(out, -math.inf)], -1)
        choice, word = torch.cat([best_word, choice], -1), torch.cat([best_word, sources.word], -1)
        return Continuations(log_p, choice, word), torch.sigmoid(switch)

    def _sources(self, source_words: Tensor, x_mask: Tensor, candidates: Tensor | None) -> Sources:
        padding = ~x_mask
        word = source_words.masked_fill(padding, NO_WORD)
        first = (word.unsqueeze(2) == word.unsqueeze(1)).to(torch.uint8).argmax(2)
        position = torch.arange(word.shape[1], device=word.device)
        repeats = ((first != position) & x_mask).any(1)
        column = self._column(word)
        no_column = padding | ((column == 0) & (source_words != EOS))
        held = (column.unsqueeze(2) == self.placeholders).any(1)  # (B, P) True for each that the source has
        unk = column.new_full((len(column), 1), UNK if not self.unk else 0)  # column 0 is never among the best words
        not_best = torch.cat([column, unk, self.placeholders.expand_as(held).masked_fill(held, 0)], 1)
        outside = x_mask.new_ones(len(x_mask), 0 if self.ids is None else len(self.ids))
        if self.ids is not None and candidates is not None:
            outside.scatter_(1, torch.searchsorted(self.ids, candidates), False)
            outside[:, [EOS, UNK]] = False  # the first two columns, always
        copied = (self.V + position).expand_as(word)
        parts = word, copied, padding, first, repeats, column, no_column, not_best, outside
        return Sources(*(part.unsqueeze(1) for part in parts))

    def _by_positions(self, by_position: Tensor, sources: Sources) -> tuple[Tensor, Tensor]:
        """The log-probability of all positions with the same word, (B, K, J), and the positions that are left out.

        Left out are padding and, of several positions with the same word, all but the most probable one.
        """
        padding, first = sources.padding, sources.first
        if not self.any_repeats:
            return by_position, padding
        J = by_position.shape[-1]
        position = torch.arange(J, device=by_position.device)
        largest = torch.full_like(by_position, -math.inf).scatter_reduce(-1, first, by_position, "amax")
        largest = largest.gather(-1, first)
        rank = torch.where((by_position == largest) & ~padding, position, J)  # of equal ones the first is taken
        winner = torch.full_like(first, J).scatter_reduce(-1, first, rank, "amin").gather(-1, first)
        if not self.marginal:
            return by_position, padding | (winner != position)
        finite = largest.masked_fill(largest == -math.inf, 0)
        total = torch.zeros_like(by_position).scatter_add(-1, first, (by_position - finite).exp()).gather(-1, first)
        return finite + total.log(), padding | (winner != position)

    def _best_words(self, logits: Tensor, sources: Sources, blocked: Tensor | None) -> tuple[Tensor, Tensor]:
        """The best words (B, K, best) that the source does not hold, by their logits, which are overwritten."""
        logits.scatter_(-1, sources.not_best, -math.inf)
        if blocked is not None:
            logits.scatter_(-1, self._column(blocked), -math.inf)
        value, word = top(logits, min(self.best, logits.shape[-1]))
        return value, word if self.ids is None else self.ids[word]

    def _column(self, word: Tensor) -> Tensor:
        """The column of each word among the competing words; 0 (EOS) for words that do not compete.

        Column 0 is always EOS, and it is always overwritten, as EOS stands at the end of every source.
        """
        word = word.masked_fill((word < 0) | (word >= self.V), EOS)
        if self.ids is None:
            return word
        column = torch.searchsorted(self.ids, word).clamp(max=len(self.ids) - 1)
        return column.masked_fill(self.ids[column] != word, 0)


def top(x: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k largest of the last axis and their positions, largest first; of equals the first, on every machine."""
    whole = x.shape[-1] // TOP_BLOCK * TOP_BLOCK
    if whole > 2 * k * TOP_BLOCK and x.numel() > FEW_NUMBERS:
        # The k largest lie in the k blocks with the largest maxima: only these are searched.
        largest = x[..., :whole].unflatten(-1, (-1, TOP_BLOCK)).amax(-1)
        block = top(largest, k)[1].sort(-1).values
        within = (block.unsqueeze(-1) * TOP_BLOCK + torch.arange(TOP_BLOCK, device=x.device)).flatten(-2)
        rest = torch.arange(whole, x.shape[-1], device=x.device).expand(*x.shape[:-1], -1)
        column = torch.cat([within, rest], -1)
        value, order = top(x.gather(-1, column), k)
        return value, column.gather(-1, order)
    value, order = x.topk(min(k + 1, x.shape[-1]), -1)  # one more than k, to see whether the last one has an equal
    best = value.cpu().numpy()  # quicker than torch with so few numbers
    if ((best[..., 1:] == best[..., :-1]) & (best[..., 1:] > -math.inf)).any():
        value, order = torch.sort(x, dim=-1, descending=True, stable=True)  # ten times as slow, and seldom needed
    return value[..., :k], order[..., :k]


def log_total(logits: Tensor) -> Tensor:
    """logsumexp over the last axis of (N, C); on a CPU a few rows at a time, in two thirds of the time of torch's.

    The largest probability is exp(largest logit - logsumexp). PyTorch's softmax computes exp four times faster than its
    exp does.
    """
    if logits.is_cuda:
        return logits.logsumexp(-1)
    at_a_time = max(1, LOGITS_IN_CACHE // logits.shape[1])
    if at_a_time < len(logits):
        return torch.cat([log_total(rows) for rows in logits.split(at_a_time)])
    return logits.amax(1).sub_(torch.softmax(logits, 1).amax(1).log_())
