"""A settings file: read, changed by `--set`, checked; its paths lead from the working folder, or from the file's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pointing.config import Config, Table, checked, idle_settings
from pointing.errors import Misuse


def read_config(path: str | Path, changes: Sequence[str] | Mapping[str, Any] = ()) -> Config:
    """Settings of a new experiment: a YAML file, with changes such as "model.hidden=256" or {"model.hidden": 256}.

    Settings that would do nothing are refused here. A run that was made with such settings can still be loaded.
    """
    values = _read_yaml(Path(path))
    for key, value in (changes if isinstance(changes, Mapping) else parse_changes(changes)).items():
        *outer, last = key.split(".")
        section = values
        for name in outer:
            section = section.setdefault(name, {})
            if not isinstance(section, dict):
                raise Misuse(f"--set {key}: {name} is not a section")
        section[last] = value
    config = checked(Config, values, path)
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


def _read_yaml(path: Path) -> dict[str, Any]:
    import yaml

    try:
        values = yaml.safe_load(path.read_bytes())
    except OSError as error:
        raise Misuse(f"cannot be read: {error.strerror}", path) from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or str(error)
        raise Misuse(f"not YAML: {problem}", path, None if mark is None else mark.line + 1) from None
    if not isinstance(values, dict):
        raise Misuse("settings are sections with keys; see docs/configuration.md", path)
    return values


def parse_changes(changes: Sequence[str]) -> dict[str, Any]:
    """The keys and values of `--set key=value` options; values are read as YAML."""
    import yaml

    values = {}
    for change in changes:
        key, equals, value = change.partition("=")
        if not equals:
            raise Misuse(f"--set {change}: write it as section.key=value")
        try:
            values[key] = yaml.safe_load(value)
        except yaml.YAMLError:
            raise Misuse(f"--set {change}: {value!r} is not a YAML value") from None
    return values
