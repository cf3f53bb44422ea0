"""A run's folder: the settings, the vocabularies, the best weights, and all that is needed to go on training.

Weights and training state are safetensors files, each written whole or not at all. No pickle is read or written.
"""

from __future__ import annotations

import errno
import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import torch
import yaml
from pydantic import BaseModel, ConfigDict, Field
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from pointing.config import Config, checked
from pointing.corpus.examples import PREPARED, Corpus
from pointing.corpus.lexicon import LEXICON, VOCABULARIES, Lexicon
from pointing.corpus.sources import HELD_OUT_FILES
from pointing.corpus.training_words import TRAINING_WORDS
from pointing.errors import Misuse, shown
from pointing.model.encoder import Reads
from pointing.model.encoder_decoder import EncoderDecoder
from pointing.model.exported import folder_of, is_exported
from pointing.model.seq2seq import Seq2Seq
from pointing.model.transformer import Transformer
from pointing.model.unfilled import Unfilled
from pointing.settings_file import found_files, read_settings
from pointing.system.border import MANIFEST, check_file, check_regular, entering
from pointing.system.files import resolved, whole_file, write_text
from pointing.system.manifest import announce, describe
from pointing.text.vocabulary import MOST_PLACEHOLDERS, Vocabulary

FORMAT = "pointing-1"  # raised when older files cannot be read any more
SETTINGS, MODEL, STATE = "config.yaml", "model.safetensors", "training.safetensors"
METRICS, TENSORBOARD = "metrics.jsonl", "tensorboard"
# That a run copies.
OF_THE_CORPUS = (*LEXICON, TRAINING_WORDS, *(name for names in HELD_OUT_FILES.values() for name in names))
CONFIDENCE = "confidence.json"  # how sure to be of its outputs
STARTED_FROM = "started_from.json"  # of a run that began with the weights of another one


class Header(BaseModel):
    """What the header of a run's weights says, as far as it is read. Scores of the dev part may be of any kind."""

    model_config = ConfigDict(strict=True)
    update: Annotated[int, Field(ge=0)] | None = None
    placeholders: Annotated[int, Field(ge=0, le=MOST_PLACEHOLDERS)] = 0
    dev: dict[str, Any] = {}


class Run(NamedTuple):
    """A trained model and what it needs to read and write words."""

    lexicon: Lexicon
    model: EncoderDecoder
    about: dict[str, Any]  # of its weights: the update, the dev scores

    @property
    def config(self) -> Config:
        return self.lexicon.config

    def with_dictionary(self, path: str | Path) -> Run:
        """The same model; what it copies, or puts in an UNK's place, is written as this dictionary translates it."""
        return self._replace(lexicon=self.lexicon.with_dictionary(path))


def make_model(lexicon: Lexicon, sparse: bool = False) -> EncoderDecoder:
    """The model that the settings describe, with its first weights. The only place that knows which kinds there are."""
    config = lexicon.config
    kind = Seq2Seq if config.model.kind.decoder == "gru" else Transformer
    reads = Reads(config.text.forms, config.pointers.familiarity)
    return kind(config.model, len(lexicon.source), len(lexicon.target), sparse, reads)


def word_tensors(lexicon: Lexicon) -> dict[str, Vocabulary]:
    """The names of the model's parameters that have a row for each word, and the vocabularies of these words."""
    of_target = "embedding.weight", "output.shortlist.weight", "output.shortlist.bias"
    return {"encoder.embedding.weight": lexicon.source, **dict.fromkeys(of_target, lexicon.target)}


def load_lexicon(folder: Path) -> Lexicon:
    """What a run reads and writes words with. Its settings name files as they are found from here."""
    folder = folder_of(folder)
    config = found_files(run_settings(folder), _places_of_files(folder))
    # Runs made before vocabulary files listed the placeholders have their number in the header of their weights.
    header = checked(Header, read_header(folder / MODEL), folder / MODEL)
    return Lexicon.load(folder, config, header.placeholders)


def load_run(folder: str | Path) -> Run:
    """The run's best model so far, ready to generate."""
    folder = folder_of(folder)
    lexicon = load_lexicon(folder)
    tensors, about = read_tensors(folder / MODEL)
    with torch.device("meta"), Unfilled():  # costs nothing: a wrong width in the settings must not take all memory
        check_tensors(tensors, dict(make_model(lexicon).named_parameters()), folder / MODEL)
    with Unfilled():
        model = make_model(lexicon)
    put_tensors(tensors, dict(model.named_parameters()), folder / MODEL)
    if odd := [name for name, weight in model.named_parameters() if not weight.isfinite().all()]:
        raise Misuse(f"{odd[0]} has weights that are not numbers: train it again", folder / MODEL)
    return Run(lexicon, model.eval(), about)


def run_settings(folder: Path) -> Config:
    """The settings that a run was made with."""
    folder = folder_of(folder)
    check_is_run(folder)
    path = folder / SETTINGS
    return checked(Config, read_settings(path), path)


def check_is_run(folder: Path) -> None:
    """Says in which way a folder is none of a run."""
    if (folder / SETTINGS).is_file():
        return
    if not folder.exists():
        reason = ": there is no such folder"
    elif not folder.is_dir():
        reason = ": it is a file, and a run is a folder, or a file that `pointing export` wrote"
    elif (folder / PREPARED).exists():
        reason = ": it is a prepared corpus"
    elif runs := sorted(path.parent for path in folder.glob(f"*/{SETTINGS}")):
        reason = f" itself, but in {runs[0]}" + (f" and {len(runs) - 1} more folders" if len(runs) > 1 else "")
    else:
        reason = f": it has no {SETTINGS}"
    raise Misuse(f"there is no run in {folder}{reason}; `pointing train` makes runs")


def _places_of_files(folder: Path) -> list[Path]:
    """Folders that a run's relative paths may start from, the most likely one first.

    They were written where the run was trained: here, or in a folder above the run's own, as in `runs/name`.
    """
    here, above = Path(), list(resolved(folder).parents)[:-1]
    return [here, *above] if Path.cwd() in above else [*above, here]


def own_files(folder: Path) -> list[Path]:
    """The files of a run, which nothing else may take the place of; an exported one is one file."""
    if is_exported(folder):
        return [folder]
    names = (SETTINGS, MODEL, STATE, METRICS, STARTED_FROM, MANIFEST, CONFIDENCE, *OF_THE_CORPUS)
    return [folder / name for name in names if (folder / name).exists()]


def check_free(folder: Path) -> None:
    """A new run takes the place of nothing but what a run left that was killed before its first checkpoint."""
    if (folder / PREPARED).exists():
        raise Misuse("this is a prepared corpus: give another folder for the run with --out", folder)
    if (folder / STATE).exists() or (folder / MODEL).exists():
        raise Misuse("there is a run in this folder: go on with --resume, or choose another with --out", folder)
    files = (SETTINGS, METRICS, TENSORBOARD, STARTED_FROM, *OF_THE_CORPUS)
    there = [name for name in files if (folder / name).exists()]
    if there and not (folder / "source.vocabulary").exists():
        what = f"there is a {there[0]} in this folder, and no run: a run would write its own in its place"
        raise Misuse(f"{what}; choose another folder with --out", folder)


def start_run(folder: Path, config: Config, corpus: Corpus, started_from: dict[str, Any] | None = None) -> None:
    """A new run's folder: settings, vocabularies, dictionary, and the parts of the data that were split off.

    What an older run left in it is removed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    remove_parts(folder)
    for old in (MANIFEST, SETTINGS, MODEL, STATE, METRICS, STARTED_FROM):  # without its settings it is no run any more
        (folder / old).unlink(missing_ok=True)
    shutil.rmtree(folder / TENSORBOARD, ignore_errors=True)
    for name in OF_THE_CORPUS:
        (folder / name).unlink(missing_ok=True)
        if (corpus.folder / name).exists():
            with whole_file(folder / name) as part:
                shutil.copyfile(corpus.folder / name, part)
    if started_from is not None:
        write_text(folder / STARTED_FROM, json.dumps(started_from, indent=1) + "\n")
    plain = config.model_dump(mode="json")
    describe(folder, (*OF_THE_CORPUS, STARTED_FROM))  # people may change the settings, of which each value is checked
    write_text(folder / SETTINGS, yaml.safe_dump(plain, sort_keys=False, allow_unicode=True))


def check_words(folder: Path, lexicon: Lexicon) -> None:
    """Refuses a run whose own words are not those of its corpus any more: nothing could be done with its weights."""
    own = Lexicon.load(folder, lexicon.config, lexicon.target.placeholders)
    for name, mine, prepared in zip(
        VOCABULARIES, (own.source, own.target), (lexicon.source, lexicon.target), strict=True
    ):
        if (mine.words, mine.placeholders) != (prepared.words, prepared.placeholders):
            raise Misuse(f"damaged: not the words that the run began with; take the corpus's {name}", folder / name)


def remove_parts(folder: Path) -> None:
    """Removes the files that a run was writing when it was killed."""
    for pattern in (
        *(f".{name}.*.part" for name in (MODEL, STATE, METRICS, STARTED_FROM)),
        ".tmp??????",
    ):  # the last: safetensors' own
        for part in folder.glob(pattern):
            part.unlink(missing_ok=True)


def write_tensors(path: Path, tensors: dict[str, Tensor], about: dict[str, Any]) -> None:
    """A safetensors file with `about` in its header; the same tensors and facts always give the same bytes."""
    with whole_file(path) as part:
        try:
            plain = {name: tensor.detach().contiguous().cpu() for name, tensor in tensors.items()}
            mode = part.stat().st_mode
            save_file(plain, part, {"format": "pt", "pointing": FORMAT, "about": json.dumps(about)})
            part.chmod(mode)  # safetensors puts a file of its own in the place, readable to nobody else
        except SafetensorError as error:
            raise OSError(None, str(error)) from None
        _order_header(part)
        announce(path, part)


def _order_header(path: Path) -> None:
    """Sorts the keys in the header of a safetensors file, which the library writes in an order of chance."""
    with path.open("r+b") as file:
        size = int.from_bytes(file.read(8), "little")
        header = json.dumps(json.loads(file.read(size)), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        ordered = header.encode().ljust(size)
        if len(ordered) == size:  # as long as before, if spaces fill it up
            file.seek(8)
            file.write(ordered)


def read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The tensors and what the header says about them; a file that is cut, or not ours, is refused."""
    with _opened(path) as (file, about):
        return {name: file.get_tensor(name) for name in file.keys()}, about  # noqa: SIM118


def read_header(path: Path) -> dict[str, Any]:
    """What the header says, without the tensors."""
    with _opened(path) as (_, header):
        return header


@contextmanager
def _opened(path: Path) -> Iterator[tuple[Any, dict[str, Any]]]:
    if not path.exists():
        raise Misuse("there is no such checkpoint; has the run reached its first one?", path)
    with entering(path, "a whole checkpoint; it was cut off, or is another program's"):
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, "it is a folder")
        check_regular(path)
        with safe_open(path, "pt") as file:
            header = file.metadata() or {}
            if header.get("pointing") != FORMAT:
                version = shown(header.get("pointing", "none of ours"))
                raise Misuse(f"this file is {version}; this version of pointing reads {FORMAT}", path)
            about = json.loads(header["about"])
            if not isinstance(about, dict):
                raise ValueError("its header is no object of JSON")
            check_file(path)
            yield file, about


def put_tensors(tensors: dict[str, Tensor], places: dict[str, Tensor], path: Path) -> None:
    """Copies tensors where they belong; what is missing, too much or of another shape is refused."""
    check_tensors(tensors, places, path)
    for name, place in places.items():
        place.data.copy_(tensors[name])


def check_tensors(tensors: dict[str, Tensor], places: dict[str, Tensor], path: Path) -> None:
    if tensors.keys() != places.keys():
        odd = ", ".join(sorted(tensors.keys() ^ places.keys())[:3])
        raise Misuse(f"these weights are of another model: {odd} only on one side", path)
    for name, place in places.items():
        if place.dtype != tensors[name].dtype:
            kinds = f"{tensors[name].dtype} in the file, {place.dtype} in the model"
            raise Misuse(f"these weights are of another model: {name} is {kinds}", path)
        if place.shape != tensors[name].shape:
            shapes = f"{tuple(tensors[name].shape)} in the file, {tuple(place.shape)} in the model"
            raise Misuse(f"these weights are of another model: {name} is {shapes}", path)
