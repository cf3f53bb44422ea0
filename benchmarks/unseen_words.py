"""Words of the source that the training text has on neither side: how many a model brings over, and how many rightly.

    python benchmarks/unseen_words.py RUN data/debian --languages en fr

`pointing evaluate` asks for words that the target's training text has not, whatever the source's has: an English word
that is always translated is one of these, and copying it is wrong. Here are only words that nobody can have learned.
Recall is the share of those in the reference that the output has, precision the share of those in the output that the
reference has; a word counts once in a line. A model that points is also drawn to these words, by a glossary that
encourages to keep them; of a plain softmax UNK is also replaced.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import sacrebleu

import pointing
from pointing.generation.generator import Generator
from pointing.system.files import read_text
from pointing.system.tables import Table
from pointing.text.tokenizer import Tokenizer

Words = set[str]


def lines_of(path: Path) -> list[str]:
    return [line for _, line in read_text(path)]


def words_of(lines: Sequence[str], tokenizer: Tokenizer) -> list[Words]:
    """The different words of each line that have a letter or a digit."""
    return [{word for word in tokenizer.words(line) if any(map(str.isalnum, word))} for line in lines]


def row(
    name: str, outputs: Sequence[str], references: Sequence[str], unseen: Sequence[Words], of: Tokenizer
) -> list[str]:
    """BLEU, chrF2, recall and precision."""
    there, due = words_of(outputs, of), words_of(references, of)
    right = sum(len(a & b & c) for a, b, c in zip(unseen, there, due, strict=True))
    recall = right / sum(len(a & c) for a, c in zip(unseen, due, strict=True))
    precision = right / max(1, sum(len(a & b) for a, b in zip(unseen, there, strict=True)))
    bleu, chrf = (measure(outputs, [references]).score for measure in (sacrebleu.corpus_bleu, sacrebleu.corpus_chrf))
    return [name, f"{bleu:.2f}", f"{chrf:.2f}", f"{recall:.1%}", f"{precision:.1%}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("data", type=Path, help="folder of train, dev and test")
    parser.add_argument("--languages", nargs=2, default=("en", "fr"))
    args = parser.parse_args()
    model: Generator = pointing.load(args.run)
    both = model.lexicon.tokenization.both
    texts = {
        (part, side): lines_of(args.data / f"{part}.{language}")
        for part in ("train", "test")
        for side, language in enumerate(args.languages)
    }
    seen = set[str]().union(*(words for side in (0, 1) for words in words_of(texts["train", side], both[side])))
    source, references = texts["test", 0], texts["test", 1]
    unseen = [words - seen for words in words_of(source, both[0])]
    ways: dict[str, dict[str, Any]] = {"alone": {}}
    if model.model.output.can_point:
        new = sorted(set[str]().union(*unseen))
        ways["drawn to them"] = {"glossary": model.glossary(keep=new, mode="encouraged")}
    else:
        ways["UNK replaced"] = {"unk_replace": True}
    rows = []
    for name, options in ways.items():
        outputs = [output.text for output in model.generate(source, **options)]
        rows.append(row(name, outputs, references, unseen, both[1]))
    kept = sum(len(words & due) for words, due in zip(unseen, words_of(references, both[1]), strict=True))
    title = f"{sum(map(len, unseen)):,} words that are new, of which {kept:,} stay in the reference"
    Table(title, ["", "BLEU", "chrF2", "recall", "precision"], rows).show()


if __name__ == "__main__":
    main()
