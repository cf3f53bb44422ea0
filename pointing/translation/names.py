"""Where a translated file is written: as told, or under a name that is free and that translators expect."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from pointing.errors import Misuse
from pointing.system.files import check_folder, keep_apart, resolved


def output_paths(
    files: Sequence[Path], out: Path | None, in_place: bool, languages: tuple[str, str]
) -> dict[Path, Path]:
    """Of each file where its translation goes. What cannot be written there is said before any work."""
    if in_place and out is not None:
        raise Misuse("--in-place writes into the files themselves: leave out -o, or leave out --in-place")
    if len(set(map(resolved, files))) < len(files):
        raise Misuse("the same file is given twice")
    if out == Path("-"):
        raise Misuse("files are not written to standard output: give a name or a folder with -o")
    outputs = {file: _output(file, out, in_place, languages, len(files) > 1) for file in files}
    for file, output in outputs.items():
        if file.suffix.lower() == ".pot" and output.exists() and not _same(output, file):
            advice = f"bring it up to date (msgmerge --update {output} {file}) and fill it with --in-place"
            raise Misuse(f"there is a {output} already, whose translations would be lost: {advice}", file)
        if (other := next((each for each in files if each != file and _same(output, each)), None)) is not None:
            raise Misuse(f"its translation would take the place of {other}, which is translated too: give -o", file)
        check_writable(output, out)
    if not in_place:
        keep_apart(files, outputs.values(), "give another name with -o, or write into the file itself with --in-place")
    first: dict[Path, Path] = {}
    for file, output in outputs.items():
        if (other := first.setdefault(resolved(output), file)) is not file:
            raise Misuse(f"{other} and {file} would both be written to {output}: translate them one by one")
    return outputs


def _output(file: Path, out: Path | None, in_place: bool, languages: tuple[str, str], several: bool) -> Path:
    if in_place:
        if file.suffix.lower() == ".pot":
            raise Misuse("a template stays as it is: leave out --in-place, and a .po file is written beside it", file)
        return file
    default = default_name(file, languages)
    if out is not None:
        if out.is_dir() or several or str(out).endswith(os.sep):
            if out.exists() and not out.is_dir():
                raise Misuse("this is a file: several files need a folder to be written to", out)
            return out / (file.name if default is None else default)
        return out
    if default is None:
        raise Misuse(f"its name says {languages[1]} already: fill it with --in-place, or give -o", file)
    output = file.with_name(default)
    if output.exists():
        raise Misuse(f"there is a {output} already: give -o, or fill that file with --in-place", file)
    return output


def default_name(file: Path, languages: tuple[str, str]) -> str | None:
    """app.pot → fr.po; strings.csv → strings.fr.csv; readme.en.txt → readme.fr.txt; fr.po and app.fr.po → None."""
    source, target = languages
    if file.suffix.lower() == ".pot":
        return f"{target}.po"
    words = re.split(r"[._-]", file.stem)
    code = re.escape(target).replace("_", "[_-]").replace(r"\-", "[_-]")
    if words[-1] == target or re.search(rf"(?:^|[._-]){code}$", file.stem):
        return None
    stem = file.stem
    if len(words) > 1 and words[-1] == source:
        stem = stem[: -len(source) - 1]
    return f"{stem}.{target}{file.suffix}"


def check_writable(path: Path, new_folder: Path | None = None) -> None:
    """Refuses what cannot be written, or what its owner has protected, before any work.

    Its folder must be there, or be the `new_folder` that the user asks for, in one that is there.
    """
    if path.is_dir():
        raise Misuse("this is a folder: give a file to write to", path)
    if path.exists():
        if not path.is_file():
            raise Misuse("this is a pipe or a device: give a file to write to", path)
        if not path.stat().st_mode & 0o222 or not os.access(path, os.W_OK):
            raise Misuse("this file is read-only: give another name with -o, or change its permissions", path)
    folder = path.absolute().parent
    is_new = new_folder is not None and folder == new_folder.absolute() and not folder.exists()
    check_folder(path, folder.parent if is_new else folder)


def _same(one: Path, other: Path) -> bool:
    return resolved(one) == resolved(other)
