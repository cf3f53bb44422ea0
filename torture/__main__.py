"""The campaign: tries to break the program, and says what it found.

    python -m torture [kills disks writers files inputs code] [--seed 0] [--share 1.0] [--workers N] [--out FOLDER]

Each part can be run alone. After each part the summary is written to FOLDER as summary.md and summary.json, and in the
end printed. Exit code 1 if anything was found; the folder of a trial that found something stays. docs/reliability.md
says what the parts do.
"""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from torture.damaged import damaged_files
from torture.full_disks import can_mount, full_disks
from torture.jobs import undisturbed, undisturbed_by_torchrun
from torture.kills import kills
from torture.noticed import broken_code
from torture.place import make_place
from torture.properties import made_up_inputs
from torture.summary import write_summary
from torture.trials import Part, run_trials
from torture.two_writers import two_writers

PARTS = {
    "kills": "SIGKILL at random moments, then the same bits as undisturbed",
    "disks": "no room for what is written, then room",
    "writers": "two at once in one place",
    "files": "damaged files, each used rightly or refused in one line",
    "inputs": "texts, files and HTTP requests made up by hypothesis",
    "code": "small mistakes in the core modules, which tests have to notice",
}
NUMBERS = {"kills": 150, "torchrun": 8, "disks": 84, "writers": 42, "files": 2400}  # trials of a whole campaign
MUTANTS = 40  # of each module at the core
SECONDS = 240  # for made-up inputs; one round is made in any case


def campaign(names: list[str], seed: int, share: float, workers: int) -> Iterator[Part]:
    """Each part when it is over."""
    number = {name: max(1, round(share * most)) for name, most in NUMBERS.items()}
    with TemporaryDirectory(prefix="pointing-torture-") as name:
        folder = Path(name)
        if set(names) - {"inputs", "code"}:
            place = make_place(folder / "place")
        if set(names) - {"files", "inputs", "code"}:
            done = undisturbed(place, folder / "results")
        for part in (Part(name, PARTS[name]) for name in names):
            if part.name == "kills":
                undisturbed_by_torchrun(done)
                run_trials(part, kills(done, seed, number["kills"], number["torchrun"]), workers)
            elif part.name == "disks":
                run_trials(part, full_disks(done, seed, number["disks"], can_mount(folder)), workers)
            elif part.name == "writers":
                run_trials(part, two_writers(done, seed, number["writers"]), workers)
            elif part.name == "files":
                run_trials(part, damaged_files(place, seed, number["files"]), workers)
            elif part.name == "inputs":
                made_up_inputs(part, seed, share * SECONDS)
            else:
                broken_code(part, seed, max(1, round(share * MUTANTS)))
            yield part


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"{', '.join(PARTS)} (default: all)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--share", type=float, default=1.0, help="of all trials")
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="trials at a time (default: one a core)")
    parser.add_argument("--out", type=Path, default=Path("runs/torture"))
    args = parser.parse_args()
    if unknown := set(args.parts) - PARTS.keys():
        parser.error(f"there is no part {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    command = shlex.join(["python", "-m", "torture", *sys.argv[1:]])
    parts, text = [], ""
    for part in campaign(args.parts or list(PARTS), args.seed, args.share, args.workers):
        parts.append(part)
        text = write_summary(args.out, parts, args.seed, command)  # so far: a campaign is long
    print(text)
    sys.exit(any(part.found for part in parts))


if __name__ == "__main__":
    main()
