"""Everything that commands read, whole: corpora, runs, texts, tables, catalogs. Trials work on copies of it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable
from pathlib import Path

import tiny
import yaml

from torture import ROOT

DATA = {
    split: {side: f"{split}.{side}" for side in ("source", "target")} for split in ("train", "dev")
}  # beside the settings
DATA_FILES = tuple(name for sides in DATA.values() for name in sides.values())
FEW = {"training": {"updates": 4, "validate_every": 2}}
DICTIONARY = {"pointers": {"policy": "dictionary", "dictionary": "induced"}, "embeddings": {"source": "glove.txt"}}
SCRATCH = ["--set", "embeddings.source=null"]  # with --from every word has an embedding already
MORE = {"training": {"updates": 6, "validate_every": 2}}  # for going on
PIECES = {
    "text": {"tokenizer": "regex", "subwords": "bpe", "forms": True, "protect": "software"},
    "vocabulary": {"source": 80, "target": 80, "min_count": 1},
    "pointers": {"places": "words"},
}
OFTEN = {"training": {"updates": 60, "validate_every": 20, "checkpoint_minutes": 0.001}}
STRINGS = [
    *(
        ("open the file", "ouvre le fichier"),
        ("close the file %s", "ferme le fichier %s"),
        ("see name17", "voir name17"),
    ),
    *(("the <b>file</b>, please", ""), ("save {count} files", ""), ("open name3 --force", "")),
]
REPEATED = [(source, target) for source, target in STRINGS if target]


def settings_file(folder: Path, name: str, *changes: dict[str, object], data: object = DATA) -> Path:
    settings = tiny.SETTINGS | {"data": data}
    for change in changes:
        settings = tiny.merged(settings, change)
    path = folder / name
    path.write_text(yaml.safe_dump(settings))
    return path


def make_place(folder: Path) -> Path:
    """The whole of it, in a folder; the commands are the real ones."""
    folder.mkdir(parents=True, exist_ok=True)
    for seed, (split, pairs) in enumerate([("train", 200), ("dev", 60)]):
        tiny.write_pairs(folder, split, pairs, seed)
    (folder / "lines.txt").write_text("".join((folder / "dev.source").read_text().splitlines(True)[:12]))
    (folder / "glove.txt").write_text("".join(f"{word} {' '.join(['0.1'] * 8)}\n" for word in "abcdef"))
    _write_texts(folder)
    _write_documents(folder)
    (folder / "many.txt").write_text("".join(f"{source} {n}\n" for n in range(40) for source, _ in STRINGS))
    (folder / "many.csv").write_text(
        "source,target\n" + "".join(f'"{source} {n}",\n' for n in range(25) for source, _ in STRINGS)
    )
    settings_file(folder, "tiny.yaml", FEW, DICTIONARY)
    settings_file(folder, "more.yaml", FEW, DICTIONARY, MORE)
    settings_file(folder, "pieces.yaml", FEW, PIECES)
    settings_file(folder, "often.yaml", OFTEN)
    for kind in ("csv", "tsv", "jsonl", "po", "xlf"):
        settings_file(folder, f"from-{kind}.yaml", FEW, data={"train": f"pairs.{kind}", "languages": ["en", "fr"]})
    shutil.copytree(ROOT / "tests" / "frozen" / "entities", folder / "entities", ignore=shutil.ignore_patterns("*.gz"))
    shutil.copytree(ROOT / "results" / "rarest-word", folder / "results")
    shutil.copytree(ROOT / "results" / "translation-debian-en-fr", folder / "results-2")
    for arguments in (
        ["train", "tiny.yaml", "--out", "run", "--corpus", "corpus"],
        ["train", "tiny.yaml", "--from", "run", "--out", "grown", "--corpus", "grown-corpus", *SCRATCH],
        ["train", "pieces.yaml", "--out", "pieces", "--corpus", "pieces-corpus"],
        ["prepare", "often.yaml", "--out", "often-corpus"],
        ["calibrate", "run", "--source", "dev.source", "--reference", "dev.target"],
        ["export", "run", "run.pointing"],
    ):
        made = tiny.pointing(*arguments, folder=folder)
        if made.returncode:
            raise SystemExit(f"pointing {' '.join(arguments)}: {made.stderr}")
    shutil.copytree(folder / "run", folder / "resumed")
    made = tiny.pointing("train", "more.yaml", "--out", "resumed", "--corpus", "corpus", "--resume", folder=folder)
    assert made.returncode == 0, made.stderr
    return folder


def _write_texts(folder: Path) -> None:
    (folder / "terms.tsv").write_text("a b\tc d\n# a comment\nx\ty\nfile\tfichier\n")
    (folder / "keep.txt").write_text("name17\nname3\n")
    (folder / "words.tsv").write_text("a\tA\t0.9\nb\tB\t0.8\nname17\tNAME17\t0.7\n")
    (folder / "tags.txt").write_text("a￨O name17￨B-NAME\nb￨O c￨O\n")
    (folder / "tagged.txt").write_text("a name17\nb c\n")
    (folder / "tags.conll").write_text("a O\nname17 B-NAME\n\nb O\nc O\n")
    (folder / "keys.txt").write_text("0123456789abcdef0123\n")


def _write_documents(folder: Path) -> None:
    """Translators' files: `strings` have untranslated entries, `pairs` are many that have none."""
    many = [(f"{source} {number}", f"{target} {number}") for number in range(40) for source, target in REPEATED]
    for name, rows in (("strings", STRINGS), ("pairs", many)):
        lines = [f'{number},"{source}","{target}"\n' for number, (source, target) in enumerate(rows)]
        (folder / f"{name}.csv").write_text("id,source,target\n" + "".join(lines))
        (folder / f"{name}.tsv").write_text("source\ttarget\n" + "".join(f"{s}\t{t}\n" for s, t in rows))
        (folder / f"{name}.jsonl").write_text(
            "".join(json.dumps({"id": n, "source": s, "target": t}) + "\n" for n, (s, t) in enumerate(rows))
        )
        entries = [f'#: a.c:{n}\nmsgid "{s}"\nmsgstr "{t}"\n' for n, (s, t) in enumerate(rows)]
        (folder / f"{name}.po").write_text(
            'msgid ""\nmsgstr ""\n"Language: fr\\n"\n"Content-Type: text/plain; charset=UTF-8\\n"\n'
            '"Plural-Forms: nplurals=2; plural=(n > 1);\\n"\n\n' + "\n".join(entries)
        )
        units = "".join(
            f'<trans-unit id="{n}"><source>{_escaped(s)}</source><target>{_escaped(t)}</target></trans-unit>\n'
            for n, (s, t) in enumerate(rows)
        )
        (folder / f"{name}.xlf").write_text(
            '<?xml version="1.0"?>\n<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">'
            f'<file source-language="en" target-language="fr" original="a" datatype="plaintext"><body>\n{units}'
            "</body></file></xliff>\n"
        )
        (folder / f"{name}.txt").write_text("".join(f"{source}\n" for source, _ in rows))


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;")


def copy_into(folder: Path, place: Path, names: Iterable[str]) -> None:
    for name in names:
        if (place / name).is_dir():
            shutil.copytree(place / name, folder / name)
        else:
            shutil.copy2(place / name, folder / name)


def contents(folder: Path, but: Iterable[str] = ()) -> dict[str, bytes]:
    """Every file below a folder, without those that hold times."""
    left_out = set(but)
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not left_out & set(path.relative_to(folder).parts)
    }
