"""Description translations through the machine's own apt client, in a state folder of its own.

Needs no root and leaves the system's lists alone: apt reads the system's sources and keys, and writes to a temporary
folder, which is gone afterwards.
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

# Read after the system's own settings. The hooks are the system's, and none of its business is done here;
# the package lists themselves are not needed.
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
    files: dict[str, list[Path]]  # by language, as far as there are any
    suites: list[str]
    warnings: list[str]


@contextmanager
def translations(languages: Sequence[str], suite: str | None = None) -> Iterator[Translations]:
    """The Translation files of all suites and components in the machine's sources (or of one suite), while inside."""
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
        said = _update([apt_get, "-c", str(settings)])
        targets = _targets([apt_get, "-c", str(settings)])
        if suite is not None:
            known = sorted({name for target in targets for name in target.suites})
            targets = [target for target in targets if suite in target.suites]
            if known and not targets:
                raise Misuse(f"there is no suite {suite!r} in this machine's apt sources: they have {', '.join(known)}")
        files: dict[str, list[Path]] = defaultdict(list)
        for target in targets:
            files[target.language].append(target.file)
        for language in languages:
            if language not in files:
                raise _not_there(language, _offered(folder / "lists"), said)
        yield Translations(dict(files), sorted({target.suites[0] for target in targets}), _complaints(said))


def _prepare(folder: Path, languages: Sequence[str]) -> Path:
    folder.chmod(0o755)  # apt started by root fetches as the user _apt, who must come in here
    for path in ("lists/partial", "cache/archives/partial"):
        (folder / path).mkdir(parents=True)
    (folder / "status").touch()
    settings = folder / "apt.conf"
    quoted = " ".join(f'"{language}";' for language in languages)
    settings.write_text(SETTINGS.format(folder=folder, languages=quoted), encoding="utf-8")
    return settings


def _update(apt_get: list[str]) -> list[str]:
    """apt-get update; returns what it said. Its exit code says little: one source may fail and the others suffice."""
    said: list[str] = []
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
                    said.append(line.strip())
        except BaseException:
            apt.terminate()
            raise
    return said


def _complaints(said: list[str]) -> list[str]:
    return [line for line in said if line.startswith(("E:", "W:"))]


@dataclass(frozen=True)
class _Target:
    language: str
    suites: list[str]  # its names: as in the sources, suite, codename
    file: Path


def _targets(apt_get: list[str]) -> list[_Target]:
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


def _not_there(language: str, offered: list[str], said: list[str]) -> Failure:
    if offered and language not in offered:
        return Misuse(f"Debian has no descriptions in {language!r}: it has {', '.join(offered)}")
    last = " ".join((_complaints(said) or said)[-3:])
    return Failure(f"apt did not bring the descriptions in {language!r}; it said: {last or 'nothing'}")
