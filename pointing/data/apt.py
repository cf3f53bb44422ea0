"""Fetches Debian's translated package descriptions with the machine's own apt client.

This needs no root and does not change the system's lists: apt reads the system's sources and keys, but writes to a
temporary folder, which is removed at the end.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pointing.errors import Failure, Misuse
from pointing.system.progress import progress

# apt reads these settings after the system's own. They switch off the system's hooks, which are not for this folder,
# and the package lists, which are not needed.
SETTINGS = """
Dir::State "{folder}";
Dir::State::lists "{folder}/lists";
Dir::State::status "{folder}/status";
Dir::Cache "{folder}/cache";
#clear Acquire::Languages;
Acquire::Languages {{ {languages} }};
Acquire::IndexTargets::deb::Packages::DefaultEnabled "false";
Acquire::IndexTargets::deb::Translations::KeepCompressed "false";
#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
APT::Status-Fd "1";
"""
LANGUAGE = re.compile(r"[a-z]{2,3}(_[A-Z]{2})?")
STATUS = re.compile(r"dlstatus:\d+:([\d.]+):(.*)")


@dataclass(frozen=True)
class Translations:
    """The fetched files, and what apt warned of."""

    files: dict[str, list[Path]]  # by language
    suites: list[str]
    warnings: list[str]


@contextmanager
def translations(languages: Sequence[str], suite: str | None = None) -> Iterator[Translations]:
    """The Translation files of all suites and components in the machine's sources, or of one suite.

    The files exist until the block ends.
    """
    apt_get = shutil.which("apt-get")
    if apt_get is None:
        raise Misuse(
            "this machine has no apt, through which Debian's descriptions come: "
            "use `pointing data newstest`, `pointing data huggingface`, or files of your own"
        )
    for language in languages:
        if not LANGUAGE.fullmatch(language):
            raise Misuse(f"{language!r} is not a language code such as fr, de or pt_BR")
    with tempfile.TemporaryDirectory(prefix="pointing-apt-") as temporary:
        folder = Path(temporary)
        settings = _prepare(folder, languages)
        messages = _update([apt_get, "-c", str(settings)])
        targets = _targets([apt_get, "-c", str(settings)])
        if suite is not None:
            suites = sorted({name for target in targets for name in target.suites})
            targets = [target for target in targets if suite in target.suites]
            if suites and not targets:
                raise Misuse(
                    f"there is no suite {suite!r} in this machine's apt sources: they have {', '.join(suites)}"
                )
        files: dict[str, list[Path]] = defaultdict(list)
        for target in targets:
            files[target.language].append(target.file)
        for language in languages:
            if language not in files:
                raise _missing_language(language, _offered(folder / "lists"), messages)
        yield Translations(dict(files), sorted({target.suites[0] for target in targets}), _warnings(messages))


def _prepare(folder: Path, languages: Sequence[str]) -> Path:
    """Makes the folders that apt needs; returns the file of its settings."""
    folder.chmod(0o755)  # if root starts apt, apt fetches as the user _apt, who needs access to this folder
    for path in ("lists/partial", "cache/archives/partial"):
        (folder / path).mkdir(parents=True)
    (folder / "status").touch()
    settings = folder / "apt.conf"
    quoted = " ".join(f'"{language}";' for language in languages)
    settings.write_text(SETTINGS.format(folder=folder, languages=quoted), encoding="utf-8")
    return settings


def _update(apt_get: list[str]) -> list[str]:
    """Runs apt-get update and returns its messages. Its exit code is ignored: one source may fail, others suffice."""
    messages: list[str] = []
    environment = {**os.environ, "LC_ALL": "C.UTF-8"}
    with (
        progress("fetching descriptions with apt", 100, "%") as bar,
        subprocess.Popen(
            [*apt_get, "-q", "update"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            env=environment,
        ) as apt,
    ):
        assert apt.stdout is not None
        percent = 0
        try:
            for line in apt.stdout:
                if status := STATUS.match(line):
                    bar.note(status[2])
                    bar.advance(max(0, int(float(status[1])) - percent))
                    percent = max(percent, int(float(status[1])))
                else:
                    messages.append(line.strip())
        except BaseException:
            apt.terminate()
            raise
    return messages


def _warnings(messages: list[str]) -> list[str]:
    return [line for line in messages if line.startswith(("E:", "W:"))]


@dataclass(frozen=True)
class _Target:
    """A Translation file."""

    language: str
    suites: list[str]  # its suite's names: as in the sources, suite, codename
    file: Path


def _targets(apt_get: list[str]) -> list[_Target]:
    """The Translation files that apt has fetched."""
    fields = "$(LANGUAGE)\t$(RELEASE)\t$(SUITE)\t$(CODENAME)\t$(FILENAME)"
    result = subprocess.run(
        [*apt_get, "indextargets", "--format", fields, "Created-By: Translations"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    if result.returncode != 0:
        raise Failure(f"apt cannot say what it fetched: {' '.join(result.stderr.split())}")
    targets = []
    for line in result.stdout.splitlines():
        language, release, suite, codename, file = line.split("\t")
        targets.append(_Target(language, [release, suite, codename], Path(file)))
    return [target for target in targets if target.file.exists()]


def _offered(lists: Path) -> list[str]:
    """The languages that the sources' Release files name."""
    releases = [path for path in lists.iterdir() if path.name.endswith("Release")]
    text = "\n".join(path.read_text(encoding="utf-8", errors="replace") for path in releases)
    return sorted(set(re.findall(r"i18n/Translation-([a-zA-Z_]+)", text)))


def _missing_language(language: str, offered: list[str], messages: list[str]) -> Failure:
    """The error for a language that was not fetched: Debian does not have it, or apt has failed."""
    if offered and language not in offered:
        return Misuse(f"Debian has no descriptions in {language!r}: it has {', '.join(offered)}")
    last = " ".join((_warnings(messages) or messages)[-3:])
    return Failure(f"apt did not bring the descriptions in {language!r}; it said: {last or 'nothing'}")
