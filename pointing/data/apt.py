"""Fetches Debian's translated package descriptions, or packages themselves, with the machine's own apt client.

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
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from pointing.errors import Failure, Misuse
from pointing.system.progress import progress

# apt reads these settings after the system's own. They switch off the system's hooks, which are not for this folder,
# and whatever lists are not needed.
SETTINGS = """
Dir::State "{folder}";
Dir::State::lists "{folder}/lists";
Dir::State::status "{folder}/status";
Dir::Cache "{folder}/cache";
#clear Acquire::Languages;
Acquire::Languages {{ {languages} }};
Acquire::IndexTargets::deb::Packages::DefaultEnabled "{packages}";
Acquire::IndexTargets::deb::Translations::KeepCompressed "false";
#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
APT::Status-Fd "1";
"""
LANGUAGE = re.compile(r"[a-z]{2,3}(_[A-Z]{2})?")
PACKAGE = re.compile(r"[a-z0-9][a-z0-9+.-]+")
STATUS = re.compile(r"dlstatus:\d+:([\d.]+):(.*)")


@dataclass(frozen=True)
class Translations:
    """The fetched files, and what apt warned of."""

    files: dict[str, list[Path]]  # by language
    suites: list[str]
    warnings: list[str]


@dataclass(frozen=True)
class Package:
    """A fetched package."""

    name: str
    source: str  # the source package, which builds this one and perhaps others
    file: Path  # the .deb


@dataclass(frozen=True)
class Packages:
    """The fetched packages in the order of their names, the names that no source has, and what apt warned of."""

    fetched: list[Package]
    missing: list[str]
    failed: list[str]  # apt knows them, but could not fetch them
    warnings: list[str]


@contextmanager
def translations(languages: Sequence[str], suite: str | None = None) -> Iterator[Translations]:
    """The Translation files of all suites and components in the machine's sources, or of one suite.

    The files exist until the block ends.
    """
    check_languages(languages)
    with _private_folder(languages, packages=False) as (folder, settings):
        messages = _run_apt(["apt-get", *settings, "-q", "update"], "fetching descriptions with apt")
        targets = _targets(settings)
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


@contextmanager
def packages(names: Sequence[str]) -> Iterator[Packages]:
    """The packages of these names, fetched and not installed. The files exist until the block ends."""
    for name in names:
        if not PACKAGE.fullmatch(name):
            raise Misuse(f"{name!r} is not the name of a package")
    with _private_folder(["none"], packages=True) as (folder, settings):
        messages = _run_apt(["apt-get", *settings, "-q", "update"], "fetching apt's lists")
        sources = _sources(settings, names)
        if not sources:
            last = " ".join(_warnings(messages)[-3:])
            raise Failure(f"apt knows none of the {len(names)} packages{f'; it said: {last}' if last else ''}")
        archives = folder / "archives"
        archives.mkdir()
        with suppress(LookupError, PermissionError):
            shutil.chown(archives, "_apt")  # if root starts apt, apt fetches as this user
        command = ["apt-get", *settings, "-q", "download", *sources]
        messages += _run_apt(command, f"fetching {len(sources)} packages with apt", archives)
        files = {path.name.split("_")[0]: path for path in archives.glob("*.deb")}
        yield Packages(
            [Package(name, source, files[name]) for name, source in sources.items() if name in files],
            [name for name in names if name not in sources],
            [name for name in sources if name not in files],
            _warnings(messages),
        )


def check_languages(languages: Sequence[str]) -> None:
    for language in languages:
        if not LANGUAGE.fullmatch(language):
            raise Misuse(f"{language!r} is not a language code such as fr, de or pt_BR")


@contextmanager
def _private_folder(languages: Sequence[str], packages: bool) -> Iterator[tuple[Path, list[str]]]:
    """A temporary folder in which apt may write, and the options that make it do so."""
    if shutil.which("apt-get") is None:
        raise Misuse(
            "this machine has no apt, through which Debian's texts come: "
            "use `pointing data newstest`, `pointing data huggingface`, or files of your own"
        )
    with tempfile.TemporaryDirectory(prefix="pointing-apt-") as temporary:
        folder = Path(temporary)
        yield folder, ["-c", str(_prepare(folder, languages, packages))]


def _prepare(folder: Path, languages: Sequence[str], packages: bool) -> Path:
    """Makes the folders that apt needs; returns the file of its settings."""
    folder.chmod(0o755)  # if root starts apt, apt fetches as the user _apt, who needs access to this folder
    for path in ("lists/partial", "cache/archives/partial"):
        (folder / path).mkdir(parents=True)
    (folder / "status").touch()
    settings = folder / "apt.conf"
    quoted = " ".join(f'"{language}";' for language in languages)
    text = SETTINGS.format(folder=folder, languages=quoted, packages=str(packages).lower())
    settings.write_text(text, encoding="utf-8")
    return settings


def _run_apt(command: list[str], title: str, folder: Path | None = None) -> list[str]:
    """Runs apt-get and returns its messages. Its exit code is ignored: one source may fail, others suffice."""
    messages: list[str] = []
    environment = {**os.environ, "LC_ALL": "C.UTF-8"}
    with (
        progress(title, 100, "%") as bar,
        subprocess.Popen(
            command,
            cwd=folder,
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


def _targets(settings: list[str]) -> list[_Target]:
    """The Translation files that apt has fetched."""
    fields = "$(LANGUAGE)\t$(RELEASE)\t$(SUITE)\t$(CODENAME)\t$(FILENAME)"
    command = ["apt-get", *settings, "indextargets", "--format", fields, "Created-By: Translations"]
    result = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if result.returncode != 0:
        raise Failure(f"apt cannot say what it fetched: {' '.join(result.stderr.split())}")
    targets = []
    for line in result.stdout.splitlines():
        language, release, suite, codename, file = line.split("\t")
        targets.append(_Target(language, [release, suite, codename], Path(file)))
    return [target for target in targets if target.file.exists()]


def _sources(settings: list[str], names: Sequence[str]) -> dict[str, str]:
    """The source package of each of the packages that apt knows, in the order of their names."""
    result = subprocess.run(
        ["apt-cache", *settings, "show", "--no-all-versions", *names],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
    )  # its exit code is not 0 if one of the names is unknown
    sources: dict[str, str] = {}
    name = ""
    for line in result.stdout.splitlines():
        field, _, value = line.partition(": ")
        if field == "Package":
            name = value.strip()
            sources.setdefault(name, name)
        elif field == "Source" and name:
            sources[name] = value.split()[0]
    return {name: sources[name] for name in sorted(set(names)) if name in sources}


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
