"""What `make release-check` looks at, as far as nothing has to be built or installed for it."""

import io
import json
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
import tiny

import pointing
from release.archives import check_archives, known_files
from release.extras import ELSEWHERE, NEEDS, is_named, sentence
from release.steps import Steps

ROOT = Path(__file__).parent.parent
# Runs commands in one process in which the extras' packages are not to be found. On one core there are no worker
# processes, which would find them.
WITHOUT = """
import contextlib, io, json, os, sys
from importlib.machinery import PathFinder

if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})

missing, commands = json.loads(sys.argv[1])
find_spec = PathFinder.find_spec

def find(name, path=None, target=None):
    return None if name.partition(".")[0] in missing else find_spec(name, path, target)

PathFinder.find_spec = staticmethod(find)
from pointing.cli import main

for command in commands:
    out, error, sys.argv = io.StringIO(), io.StringIO(), ["pointing", *command]
    code = None
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(error):
        try:
            main()
        except SystemExit as stopped:
            code = stopped.code
    print(json.dumps([code, out.getvalue(), error.getvalue()]))
"""


def test_the_version_is_the_same_everywhere():
    version = pointing.__version__
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text()
    assert re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)[1] == version
    assert '\ndynamic = ["version"]\n' in (ROOT / "pyproject.toml").read_text()


def test_every_extra_has_its_check():
    tomllib = pytest.importorskip("tomllib")  # Python 3.11 and later
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert set(extras) == NEEDS.keys() | ELSEWHERE.keys()


def test_without_its_extra_a_command_says_one_line_that_names_it(tmp_path):
    run, config = tiny.untrained(tmp_path / "text"), tmp_path / "text" / "tiny.yaml"
    places = {"RUN": str(run), "CONFIG": str(config)}
    commands = [[places.get(word, word) for word in need.arguments] for need in NEEDS.values()]
    missing = [package for need in NEEDS.values() for package in need.packages]
    work = tmp_path / "work"
    work.mkdir()
    program = [sys.executable, "-c", WITHOUT, json.dumps([missing, commands])]
    done = subprocess.run(
        program, cwd=work, env=tiny.environment(), capture_output=True, text=True, check=False, timeout=600
    )
    results = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(results) == len(NEEDS), done.stderr
    for extra, (code, out, error) in zip(NEEDS, results, strict=True):
        assert (code, out) == (2, ""), f"{extra}: {error}"
        assert is_named(error, extra), f"{extra}: {error}"
    assert not list(work.iterdir())


def test_what_does_not_name_the_extra_in_one_line_is_noticed():
    line = f"pointing: this needs gensim, {sentence('embeddings')}"
    assert is_named(f"{line}\n", "embeddings")
    assert not is_named(f"{line}\n", "moses")
    assert not is_named(f"a warning\n{line}\n", "embeddings")
    assert not is_named("Traceback\n", "embeddings")


def archives(folder, source, package):
    """An sdist and a wheel with these names, and nothing in their files."""
    folder.mkdir()
    sdist, wheel = folder / "it.tar.gz", folder / "it.whl"
    with tarfile.open(sdist, "w:gz") as archive:
        for name in [*source, "PKG-INFO"]:
            archive.addfile(tarfile.TarInfo(f"pointing-0/{name}"), io.BytesIO())
    with zipfile.ZipFile(wheel, "w") as archive:
        for name in [*package, "pointing-0.dist-info/licenses/LICENSE"]:
            archive.writestr(name, "")
    return sdist, wheel


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="not a clone")
def test_archives_with_too_much_or_too_little_are_noticed(tmp_path, capsys):
    known = known_files(ROOT)
    package = {name for name in known if name.startswith("pointing/")}
    assert {"pointing/cli.py", "pointing/server/page/index.html"} <= package
    assert not [name for name in known if name.startswith(("runs/", "corpora/", "data/", "dist/"))]
    page = "pointing/server/page/index.html"
    cases = {
        "whole": (known, package, []),
        "data": (known | {"runs/demo/model.safetensors"}, package, ["the sdist has nothing that git does not know"]),
        "less": (known - {"README.md"}, package, ["the sdist has all that is to be in it"]),
        "page": (
            known,
            package - {page},
            ["the wheel has the package's files, and no others", "the page is in the wheel"],
        ),
        "tests": (known, package | {"tests/tiny.py"}, ["the wheel has the package's files, and no others"]),
    }
    for name, (source, built, wrong) in cases.items():
        steps = Steps(tmp_path)
        check_archives(steps, ROOT, *archives(tmp_path / name, source, built))
        assert steps.wrong == wrong, name
    assert "runs/demo/model.safetensors" in capsys.readouterr().out


def test_a_command_that_must_end_well_ends_the_check_with_what_it_said(tmp_path, capsys):
    steps = Steps(tmp_path)
    assert steps.must("greets", [sys.executable, "-c", "print('hello')"]) == "hello\n"
    with pytest.raises(SystemExit, match="1 checks passed, 1 did not"):
        steps.must("fails", [sys.executable, "-c", "raise SystemExit('because of this')"])
    assert "because of this" in capsys.readouterr().out


def test_another_environments_packages_do_not_come_in(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    assert "PYTHONPATH" not in Steps(tmp_path).environment


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="not a clone")
def test_the_sdists_list_names_what_is_there():
    assert {"CHANGELOG.md", "release/__main__.py", "recipes/headlines.yaml"} <= known_files(ROOT)
    text = (ROOT / "pyproject.toml").read_text()
    for name in re.findall(r'"([^"]+)"', re.search(r"only-include = \[(.*?)\]", text, re.DOTALL)[1]):
        assert (ROOT / name).exists(), name
