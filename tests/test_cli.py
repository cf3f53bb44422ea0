"""The command as users meet it: exit codes, one clear line on stderr, nothing but JSON with --json."""

import json
import os
import subprocess
import sys

import forked
import pytest


def pointing(*arguments, folder=None, **environment):
    return forked.run(*arguments, cwd=folder, env={**os.environ, **environment})


def test_every_verb_explains_itself():
    listed = pointing("--help").stdout
    verbs = ("demo", "init", "prepare", "train", "generate", "evaluate", "plot", "dictionary", "data", "reproduce")
    for verb in (*verbs, "check"):
        assert verb in listed
        result = pointing(verb, "--help")
        assert result.returncode == 0
        assert "Usage" in result.stdout
    assert pointing("--version").stdout.startswith("pointing 0.")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["prepare", "nothing.yaml"], "nothing.yaml: there is no such file"),
        (["dictionary", "a.en", "a.fr", "--out", "x.tsv"], "a.en: there is no such file"),
        (["data", "newstest", "wmt1l", "--out", "x"], "the nearest are wmt"),
        (["data", "debian", "--languages", "en", "xx", "--out", "x"], "apt"),
    ],
)
def test_misuse_is_exit_code_2_and_one_line(tmp_path, arguments, message):
    result = pointing(*arguments, folder=tmp_path, PATH="/nonexistent")
    assert result.returncode == 2, result.stderr
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert "Traceback" not in result.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("arguments", [["fly"], ["prepare"], ["prepare", "--fly"], ["reproduce", "nothing"]])
def test_unknown_verbs_and_options_are_exit_code_2(arguments):
    assert pointing(*arguments).returncode == 2


def test_a_dictionary_is_induced_from_two_files(tmp_path):
    english = ["the cat sleeps", "the dog sleeps", "the cat eats", "a dog eats", "Zorblatt eats", "the bird sings"]
    french = ["le chat dort", "le chien dort", "le chat mange", "un chien mange", "Zorblatt mange", "l'oiseau chante"]
    (tmp_path / "x.en").write_text("\n".join(english * 5) + "\n")
    (tmp_path / "x.fr").write_text("\n".join(french * 5) + "\n")
    result = pointing("dictionary", "x.en", "x.fr", "--out", "x.tsv", "--json", folder=tmp_path)
    assert result.returncode == 0, result.stderr
    lines = (tmp_path / "x.tsv").read_text().splitlines()
    assert json.loads(result.stdout) == {"file": "x.tsv", "pairs": len(lines)}
    pairs = {tuple(line.split("\t")[:2]) for line in lines}
    assert {("cat", "chat"), ("dog", "chien"), ("zorblatt", "zorblatt"), ("sleeps", "dort")} <= pairs
    (tmp_path / "x.fr").write_text("le chat\n")
    assert pointing("dictionary", "x.en", "x.fr", "--out", "y.tsv", folder=tmp_path).returncode == 2


def test_a_local_data_set_comes_through_the_huggingface_verb(tmp_path):
    pytest.importorskip("datasets")
    (tmp_path / "set").mkdir()
    rows = [{"translation": {"en": f"word {n}", "fr": f"mot {n}"}} for n in range(5)]
    (tmp_path / "set" / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    arguments = ["huggingface", "set", "translation.en", "translation.fr", "--out", "plain", "--json"]
    result = pointing("data", *arguments, folder=tmp_path, HF_HUB_OFFLINE="1", HF_HOME=str(tmp_path / "cache"))
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["pairs"]
    made = sorted((tmp_path / "plain").glob("train.*"))
    assert [path.read_text().splitlines()[0] for path in made if path.suffix != ".package"] == ["word 0", "mot 0"]


def test_a_closed_pipe_is_no_traceback(tmp_path):
    command = f"{sys.executable} -m pointing --help | head -1"
    result = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert "Traceback" not in result.stderr
