"""The summary of a campaign: a table, as Markdown and JSON."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pointing import __version__
from pointing.system.files import write_text
from torture.trials import Part

MARKDOWN, JSON = "summary.md", "summary.json"


def table(parts: Sequence[Mapping[str, Any]]) -> str:
    rows = ["| | trials | what happened | wrong |", "|---|---:|---|---:|"]
    for part in parts:
        counts = ", ".join(f"{number:,} {what}" for what, number in part["counts"].items())
        rows.append(f"| {part['name']}: {part['compared']} | {part['trials']:,} | {counts} | {len(part['found'])} |")
    return "\n".join(rows) + "\n"


def write_summary(folder: Path, parts: Sequence[Part], seed: int, command: str) -> str:
    """Writes both files; returns the Markdown."""
    folder.mkdir(parents=True, exist_ok=True)
    about = {"version": __version__, "seed": seed, "command": command, "machine": platform.platform()}
    whole = [asdict(part) for part in parts]
    minutes = sum(part.seconds for part in parts) / 60
    write_text(folder / JSON, json.dumps({**about, "minutes": round(minutes, 1), "parts": whole}, indent=1) + "\n")
    text = f"{table(whole)}\n`{command}`, seed {seed}, {minutes:.0f} minutes, pointing {__version__}.\n"
    for part in parts:
        text += "".join(f"\n- {part.name}: {told}" for told in (*part.found, *part.notes))
    write_text(folder / MARKDOWN, text)
    return text
