"""What became of a file, counted: for people, and as JSON for programs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pointing.system.terminal import visible
from pointing.translation.filling import Result

MOST_LISTED = 20  # failed entries that are listed; --json has all


@dataclass(frozen=True)
class Summary:
    """Of one file."""

    file: Path
    output: Path
    kind: str
    results: list[Result]
    notes: list[str]
    msgfmt: str | None = None  # its verdict; None for files that are no PO

    @property
    def failed(self) -> list[Result]:
        return [result for result in self.results if result.status == "failed"]

    def counts(self) -> dict[str, int]:
        """Units and words by what became of them."""
        statuses = [result.status for result in self.results]
        origins = [each for result in self.results for form in result.origins for each in form]
        return {
            "entries": len(statuses),
            "filled": statuses.count("filled"),
            "left": statuses.count("left"),
            "failed": statuses.count("failed"),
            "review": sum(result.review for result in self.results if result.status == "filled"),
            "copied_names": sum(each.origin == "copied" and each.is_name for each in origins),
            "placeholders": sum(each.is_span for each in origins),
            "translated_words": sum(each.origin == "translated" for each in origins),
            "glossary_terms": sum(each.origin == "glossary" for each in origins),
        }

    def json(self) -> dict[str, Any]:
        return {
            "file": str(self.file),
            "output": str(self.output),
            "kind": self.kind,
            "msgfmt": self.msgfmt,
            "notes": self.notes,
            **self.counts(),
            "units": [result.json() for result in self.results],
        }

    def text(self) -> str:
        """A few lines for a terminal."""
        counts = self.counts()
        parts = [
            f"{counts['entries']:,} entries",
            f"{counts['filled']:,} filled",
            f"{counts['left']:,} left as they were",
        ]
        parts += [f"{counts['failed']:,} failed"] if counts["failed"] else []
        parts += [f"{counts['review']:,} of the filled ones flagged for review"] if counts["review"] else []
        words = [
            f"{counts['copied_names']:,} copied names",
            f"{counts['placeholders']:,} placeholders",
            f"{counts['glossary_terms']:,} glossary terms",
        ]
        lines = [f"{self.file} → {self.output}", f"  {', '.join(parts)}", f"  {', '.join(words)}"]
        lines += [f"  msgfmt --check-format: {self.msgfmt}"] if self.msgfmt is not None else []
        for result in self.failed[:MOST_LISTED]:
            lines.append(f"  {self.file}:{result.unit.line}: left, {result.reason}")
        if len(self.failed) > MOST_LISTED:
            lines.append(f"  … and {len(self.failed) - MOST_LISTED:,} more (--json lists all)")
        return "\n".join(map(visible, lines))
