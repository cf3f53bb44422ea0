"""A run → what is given to others, a file or a folder: weights, words, settings, a model card; no line of the data."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import yaml

from pointing.config import Config
from pointing.corpus.lexicon import LEXICON
from pointing.errors import Misuse
from pointing.evaluation.report import read_scores
from pointing.generation.confidence import confidence_for
from pointing.model.exported import folder_of, pack
from pointing.model.run import CONFIDENCE, MODEL, SETTINGS, load_run, own_files, run_settings
from pointing.sharing.card import Known, card
from pointing.system.border import MANIFEST
from pointing.system.files import check_folder, keep_apart, resolved, whole_folder
from pointing.system.manifest import describe, problems

CARD, SCORES = "README.md", "results.json"
FILES = (CARD, SETTINGS, MODEL, CONFIDENCE, SCORES, *LEXICON, MANIFEST)  # some may be missing


def export(run: str | Path, file: str | Path, name: str | None = None) -> Path:
    """Writes a run as one file, which `pointing.load` and all commands take in the place of a run's folder."""
    from tempfile import TemporaryDirectory

    path = Path(file)
    keep_apart(own_files(Path(run)), [path])
    check_folder(path)
    if path.is_dir():
        raise Misuse("this is a folder: give a name for the file", path)
    with TemporaryDirectory(prefix="pointing-") as temporary:
        folder = Path(temporary)
        fill(Path(run), folder, name or path.stem)
        pack(folder, [each.name for each in folder.iterdir()], path)
    return path


def save_pretrained(run: str | Path, folder: str | Path, name: str | None = None) -> Path:
    """Writes what `export` packs as a folder of its own, which is a run's folder too."""
    out = Path(folder)
    keep_apart(own_files(Path(run)), [out])
    if out.exists() and (not out.is_dir() or any(each.name not in FILES for each in out.iterdir())):
        raise Misuse("there is something else in this place: give a new folder, or one that was exported before", out)
    with whole_folder(out) as part:
        fill(Path(run), part, name or resolved(out).name)
    return out


def fill(run: Path, folder: Path, name: str) -> None:
    """Puts all that is given away into an empty folder."""
    origin = folder_of(run)
    if damaged := problems(origin):
        raise Misuse(damaged[0])
    loaded = load_run(run)
    confidence = confidence_for(run, loaded.about)
    names = [MODEL, *LEXICON, *([] if confidence is None else [CONFIDENCE])]
    for each in names:
        if (origin / each).exists():
            shutil.copyfile(origin / each, folder / each)
    scores = read_scores(origin)
    settings = yaml.safe_dump(_without_places(run_settings(run)), sort_keys=False, allow_unicode=True)
    (folder / SETTINGS).write_text(settings, encoding="utf-8")
    if scores:
        told = {"systems": [{"name": name, "scores": scores}]}
        (folder / SCORES).write_text(json.dumps(told, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    (folder / CARD).write_text(card(Known(name, loaded, confidence, scores)), encoding="utf-8")
    describe(folder, [each for each in FILES if each not in (MANIFEST, CARD, SETTINGS)])  # these people may change


def _without_places(config: Config) -> dict[str, Any]:
    """Settings in which files are named without their folders: where they are is nobody else's affair."""

    def bare(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: bare(part) for key, part in value.items()}
        if isinstance(value, tuple):
            return tuple(map(bare, value))
        return Path(value.name) if isinstance(value, Path) else value

    return Config.model_validate(bare(config.model_dump())).model_dump(mode="json")
