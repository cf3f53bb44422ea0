"""A proposal as a settings file with comments, for people to read and change."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import yaml

from pointing.init.proposal import Proposal

COMMENT_COLUMN = 44


def settings_text(proposal: Proposal, head: str, folder: Path) -> str:
    """The file's text; paths lead from `folder`, where the file will be."""
    lines = [f"# {line}" for line in head.splitlines()]
    for section, values in proposal.values.items():
        lines.append(f"{section}:")
        for key, value in values.items():
            is_files = section == "data" and key in ("train", "dev", "test")
            text = f"  {key}: {_flow(_files(value, folder) if is_files else value)}"
            reason = proposal.reasons.get(f"{section}.{key}")
            lines.append(text if reason is None else f"{text:<{COMMENT_COLUMN}}  # {reason}")
    return "\n".join(lines) + "\n"


def _files(split: dict[str, Any], folder: Path) -> Any:
    """The files of a split with paths from the folder; one file without more settings is just its name."""
    if "files" not in split:
        return {side: _relative(path, folder) for side, path in split.items()}
    files = [_relative(path, folder) for path in split["files"]]
    return files[0] if len(split) == len(files) == 1 else split | {"files": files}


def _relative(path: str, folder: Path) -> str:
    """The path from the folder; as it was if it is absolute."""
    return path if Path(path).is_absolute() else os.path.relpath(path, folder)


def _flow(value: Any) -> str:
    """A value on one line of YAML."""
    text = yaml.safe_dump(value, default_flow_style=True, width=10_000, sort_keys=False, allow_unicode=True)
    return text.removesuffix("\n...\n").strip()
