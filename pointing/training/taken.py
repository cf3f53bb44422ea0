"""The weights of another run in a new model: the rows of words by their words, everything else by its name."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import torch

from pointing.corpus.lexicon import Lexicon
from pointing.model.encoder_decoder import EncoderDecoder
from pointing.model.run import Run, word_tensors
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
def take_weights(model: EncoderDecoder, lexicon: Lexicon, run: Run) -> Taken:
    """Copies the weights of a run that have a place in the model; all others, and new words, keep first values."""
    given = dict(run.model.named_parameters(remove_duplicate=False))  # tied ones under both their names
    old_words, words = word_tensors(run.lexicon), word_tensors(lexicon)
    taken, fresh = [], []
    for name, place in model.named_parameters():
        if name not in given:
            fresh.append(name)
            continue
        if name in words:
            rows, old_rows = same_words(old_words[name], words[name])
            place[rows] = given[name][old_rows].to(place.device)
        else:
            place.copy_(given[name])
        taken.append(name)
    unused = [name for name, _ in run.model.named_parameters() if name not in taken]
    counts = (
        (len(vocabulary.words), sum(word not in old for word in vocabulary.words))
        for old, vocabulary in ((run.lexicon.source, lexicon.source), (run.lexicon.target, lexicon.target))
    )
    return Taken(len(taken), _modules(fresh, taken), _modules(unused, taken), *counts)


def same_words(old: Vocabulary, new: Vocabulary) -> tuple[list[int], list[int]]:
    """The ids of the new vocabulary whose words the old one has too, and their ids there."""
    named = [placeholder(number) for number in range(1, new.placeholders + 1)] + new.words
    words = [word for word in named if word in old]
    return [EOS, UNK, *(new[word] for word in words)], [EOS, UNK, *(old[word] for word in words)]


def _modules(names: Collection[str], others: Collection[str]) -> list[str]:
    """The names, but a module's own in their place where none of the others is in it."""

    def shortest(name: str) -> str:
        parts = name.split(".")
        prefixes = (".".join(parts[:length]) for length in range(1, len(parts)))
        return next((p for p in prefixes if not any(other.startswith(f"{p}.") for other in others)), name)

    return list(dict.fromkeys(map(shortest, names)))
