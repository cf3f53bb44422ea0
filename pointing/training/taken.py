"""The weights of another run in a new model: the rows of words by their words, everything else by its name."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import NamedTuple

import torch
from torch import Tensor

from pointing.corpus.lexicon import Lexicon
from pointing.model.run import Run, word_tensors
from pointing.model.seq2seq import Seq2Seq
from pointing.text.entities import placeholder
from pointing.text.vocabulary import EOS, UNK, Vocabulary


class Taken(NamedTuple):
    """What a new model has of another run's."""

    taken: int  # tensors that have its values
    fresh: list[str]  # tensors, or whole modules, that it does not have: they have their first values
    unused: list[str]  # tensors, or whole modules, that only it has
    source_words: tuple[int, int]  # of the new vocabulary: all, and those that are new
    target_words: tuple[int, int]


@torch.no_grad()
def take_weights(model: Seq2Seq, lexicon: Lexicon, run: Run) -> Taken:
    """Copies all weights of a run that have a place in the model.

    A new word begins as the unknown word, as which the run has read and written it. The unknown word's probability is
    shared out among it and the new target words, so that no other probability changes.
    """
    given = dict(run.model.named_parameters(remove_duplicate=False))  # tied ones under both their names
    before, now = word_tensors(run.lexicon), word_tensors(lexicon)
    rows = {name: _rows(before[name], now[name]) for name in now}
    taken, fresh = [], []
    for name, place in model.named_parameters():
        if name not in given:
            fresh.append(name)
            continue
        place.copy_(given[name][rows[name]] if name in rows else given[name])
        taken.append(name)
    if "output.shortlist.bias" in taken and model.output.shortlist is not None:
        unknown = rows["output.shortlist.bias"] == UNK
        model.output.shortlist.bias[unknown] -= math.log(int(unknown.sum()))
    unused = [name for name, _ in run.model.named_parameters() if name not in taken]
    words = (
        (len(vocabulary.words), sum(word not in old for word in vocabulary.words))
        for old, vocabulary in ((run.lexicon.source, lexicon.source), (run.lexicon.target, lexicon.target))
    )
    return Taken(len(taken), _modules(fresh, taken), _modules(unused, taken), *words)


def _rows(old: Vocabulary, new: Vocabulary) -> Tensor:
    """For each id of the new vocabulary the same word's id in the old one; UNK for a word that it does not have."""
    placeholders = map(placeholder, range(1, new.placeholders + 1))
    return torch.tensor([EOS, UNK, *(old[word] for word in (*placeholders, *new.words))])


def _modules(names: Collection[str], others: Collection[str]) -> list[str]:
    """The names, but a module's own in their place where none of the others is in it."""

    def shortest(name: str) -> str:
        parts = name.split(".")
        prefixes = (".".join(parts[:length]) for length in range(1, len(parts)))
        return next((p for p in prefixes if not any(other.startswith(f"{p}.") for other in others)), name)

    return list(dict.fromkeys(map(shortest, names)))
