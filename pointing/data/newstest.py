"""WMT's newstest sets, and all other test sets of sacreBLEU, fetched by sacreBLEU's own downloader."""

from __future__ import annotations

import difflib
import re
from pathlib import Path
from typing import Any

from pointing.data.parallel import CorpusWriter, Summary, writing
from pointing.errors import Failure, Misuse
from pointing.system.files import read_text


def bring(out: str | Path, test: str, languages: tuple[str, str] = ("en", "fr"), *, dev: str | None = None) -> Summary:
    """Writes `test.en` and `test.fr`, and `dev.en` and `dev.fr` from another set, with the lines that sacreBLEU scores.

    A set has sacreBLEU's name (wmt14, wmt14/full), WMT's name (newstest2014), or its year. If a set has more than one
    reference, the others are in `test.fr.2` and so on.
    """
    chosen = {split: _find(name, languages) for split, name in (("dev", dev), ("test", test)) if name is not None}
    pair = "-".join(languages)
    sides = {split: _fetch(dataset, pair) for split, dataset in chosen.items()}
    references = min(len(files) - 1 for files in sides.values())
    extra = [f"{languages[1]}.{number}" for number in range(2, references + 1)]
    names = ", ".join(f"{split} {dataset.name}" for split, dataset in chosen.items())
    with writing(f"{pair} test sets by sacreBLEU: {names}", out, [*languages, *extra]) as corpus:
        for split, files in sides.items():
            _copy(split, files[: references + 1], corpus)
    return corpus.summary()


def _find(name: str, languages: tuple[str, str]) -> Any:
    """sacreBLEU's data set of this name, which must have the pair of languages."""
    from sacrebleu.dataset import DATASETS

    year = re.fullmatch(r"(?:newstest|wmt)?(?:20)?(\d\d)(/\w+)?", name)
    key = name if name in DATASETS else f"wmt{year[1]}{year[2] or ''}" if year else name
    if key not in DATASETS:
        aliases = [f"newstest20{test_set[3:]}" for test_set in DATASETS if re.fullmatch(r"wmt\d\d", test_set)]
        near = difflib.get_close_matches(name, [*DATASETS, *aliases], n=5, cutoff=0.5)
        raise Misuse(f"sacreBLEU has no test set {name!r}: the nearest are {', '.join(near or sorted(DATASETS))}")
    pair = "-".join(languages)
    if pair not in DATASETS[key].langpairs:
        available = ", ".join(sorted(DATASETS[key].langpairs))
        with_pair = ", ".join(test_set for test_set in DATASETS if pair in DATASETS[test_set].langpairs)
        raise Misuse(f"{key} has no {pair}: it has {available}; {pair} is in {with_pair or 'no other set'}")
    return DATASETS[key]


def _fetch(dataset: Any, pair: str) -> list[Path]:
    """The files of the source and of the references, downloaded if they are not on this machine yet."""
    try:
        files = [Path(dataset.get_source_file(pair)), *map(Path, dataset.get_reference_files(pair))]
    except (Exception, SystemExit) as error:  # sacreBLEU exits if a download's md5 is wrong, and keeps the file
        reason = "the download is not what it should be" if isinstance(error, SystemExit) else error
        raise Failure(
            f"sacreBLEU could not fetch {dataset.name} ({reason}); if the network is there, "
            f"remove {dataset._outdir} and try again"
        ) from error
    if len(files) < 2:
        raise Failure(f"{dataset.name} has no reference for {pair}")
    return files


def _copy(split: str, files: list[Path], corpus: CorpusWriter) -> None:
    columns = [[text for _, text in read_text(file)] for file in files]
    if len({len(column) for column in columns}) > 1:
        raise Failure(f"{files[0]}: source and references differ in length; remove {files[0].parent} and try again")
    for row in zip(*columns, strict=True):
        corpus.add(split, *row)
