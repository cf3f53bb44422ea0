"""A settings file: read, changed by `--set`, checked; its paths lead from the working folder, or from the file's."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pointing.config import Config, Table, checked
from pointing.errors import Misuse, shown
from pointing.idle_settings import idle_settings
from pointing.system.border import parse_yaml, read_bytes


def read_config(path: str | Path, changes: Sequence[str] | Mapping[str, Any] = ()) -> Config:
    """Settings of a new experiment: a YAML file, with changes such as "model.hidden=256" or {"model.hidden": 256}.

    Settings that would do nothing are refused here. A run that was made with such settings can still be loaded.
    """
    values = read_settings(Path(path))
    for key, value in (changes if isinstance(changes, Mapping) else parse_changes(changes)).items():
        *outer, last = key.split(".")
        section = values
        for name in outer:
            section = section.setdefault(name, {})
            if not isinstance(section, dict):
                raise Misuse(f"--set {key}: {name} is not a section")
        section[last] = value
    config = checked(Config, values, path)
    check_names(named_files(config))
    if idle := [f"{key} does nothing: {reason}" for key, reason in idle_settings(config).items()]:
        raise Misuse("; ".join(idle), path)
    _check_places(config, Path(path))
    return found_files(config, [Path(), Path(path).parent])


def found_files(config: Config, folders: Sequence[Path]) -> Config:
    """The settings with paths as they lead from here: each begins in the first of `folders` in which its file is."""

    def found(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: found(part) for key, part in value.items()}
        if isinstance(value, tuple):
            return tuple(map(found, value))
        if isinstance(value, Path):
            return next((folder / value for folder in folders if (folder / value).exists()), value)
        return value

    values = config.model_dump()
    return config if (elsewhere := found(values)) == values else Config.model_validate(elsewhere)


def _check_places(config: Config, settings: Path) -> None:
    """Refuses a path that leads to one file from the working folder and to another one from the settings file."""
    for files in config.data.given().values():
        paths = files.files if isinstance(files, Table) else (files.source, files.target)
        for path in paths:
            beside = settings.parent / path
            if path.exists() and beside.exists() and not path.samefile(beside):
                what = f"{path} may be {path.absolute()} or {beside.absolute()}: write the whole path"
                raise Misuse(what, settings)


def named_files(config: Config) -> list[Path]:
    """All files that the settings name."""

    def paths(value: Any) -> Iterator[Path]:
        if isinstance(value, Path):
            yield value
        elif isinstance(value, dict | tuple):
            for part in value.values() if isinstance(value, dict) else value:
                yield from paths(part)

    return list(paths(config.model_dump()))


def check_names(files: Iterable[Path]) -> None:
    """Refuses names that settings, which are text, cannot hold."""
    for name in map(str, files):
        if name.encode(errors="replace") != name.encode(errors="surrogatepass"):
            raise Misuse(f"the name {name!a} is not UTF-8, which settings are written in: rename the file")


def read_settings(path: Path) -> dict[str, Any]:
    """The sections of a settings file, unchecked."""
    values = parse_yaml(read_bytes(path), path)
    if not isinstance(values, dict) or not all(isinstance(key, str) for key in values):
        raise Misuse("settings are sections with keys; see docs/configuration.md", path)
    return values


def parse_changes(changes: Sequence[str]) -> dict[str, Any]:
    """The keys and values of `--set key=value` options; values are read as YAML."""
    values = {}
    for change in changes:
        key, equals, value = change.partition("=")
        if not equals:
            raise Misuse(f"--set {change}: write it as section.key=value")
        try:
            values[key] = parse_yaml(value, None)
        except Misuse as problem:
            raise Misuse(f"--set {change[:200]}: {shown(value)} is not a YAML value ({problem})") from None
    return values
