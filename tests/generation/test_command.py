"""`pointing generate` as users meet it: pipes, files, closed ends."""

import io
import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import forked
import pytest
import tiny
import torch

from pointing.config import Search
from pointing.corpus.preparation import prepare
from pointing.generation import command
from pointing.model.run import MODEL, load_run, start_run, write_tensors
from pointing.model.seq2seq import Seq2Seq
from pointing.settings_file import read_config
from pointing.text.vocabulary import UNK


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A model that has learned nothing, which writes all the same."""
    folder = tmp_path_factory.mktemp("generating")
    config = read_config(tiny.write(folder))
    corpus, _ = prepare(config, folder / "prepared", workers=1)
    torch.manual_seed(0)
    start_run(folder / "run", config, corpus)
    model = Seq2Seq(config.model, len(corpus.lexicon.source), len(corpus.lexicon.target))
    write_tensors(folder / "run" / MODEL, dict(model.named_parameters()), {"placeholders": 0})
    return folder / "run"


def generate(run, arguments="", lines=b"", **environment):
    """Standard output and error as bytes. By a shell if arguments hold redirections; else by a forked process."""
    if not (environment or set(arguments) & set("<>|&")):
        return forked.run("generate", run, "--beam", 1, *shlex.split(arguments), lines=lines, text=False)
    command = f"'{sys.executable}' -m pointing generate '{run}' --beam 1 {arguments}"
    return subprocess.run(
        ["bash", "-c", command], input=lines, capture_output=True, check=False, env={**os.environ, **environment}
    )


def test_pipes_are_as_good_as_files(run, tmp_path):
    text = b"a name1 b\nname2\n"
    (tmp_path / "text").write_bytes(text)
    expected = generate(run, f"'{tmp_path}/text'").stdout
    assert expected.count(b"\n") == 2
    for arguments, lines in [("", text), ("-", text), ("/dev/stdin", text), (f"<(cat '{tmp_path}/text')", b"")]:
        result = generate(run, arguments, lines)
        assert (result.returncode, result.stdout) == (0, expected), result.stderr


def test_a_byte_order_mark_of_standard_input_is_no_part_of_the_first_word(run):
    with_mark, without = (generate(run, "--json", mark + b"name1\nb\n") for mark in (b"\xef\xbb\xbf", b""))
    assert with_mark.stdout == without.stdout
    assert [json.loads(line)["line"] for line in without.stdout.splitlines()] == [1, 2]


def test_a_line_of_standard_input_that_would_fill_the_memory_is_refused(run):
    result = generate(run, "", b"name1\n" + b"a" * (1 << 24))
    assert (result.returncode, result.stderr) == (
        2,
        b"pointing: standard input:2: this line has 16,777,216 bytes or more: is this text?\n",
    )


def test_tags_for_a_run_without_entities_are_refused_and_all_outputs_are_shown(run, tmp_path):
    (tmp_path / "tags").write_text("name1￨B\n")
    wrong = generate(run, f"--tags '{tmp_path}/tags'", b"name1\n")
    assert (wrong.returncode, wrong.stderr.count(b"\n"), b"leave out --tags" in wrong.stderr) == (2, 1, True)
    assert generate(run, "--show --beam 3 --nbest 3", b"name1\n").stdout.count("→".encode()) == 3


def test_a_dictionary_translates_what_is_copied(run, tmp_path):
    (tmp_path / "dictionary").write_text("Name1\tnom1\nelsewhere\tailleurs\n")
    shutil.copytree(run, tmp_path / "run")
    model = load_run(run).model
    with torch.no_grad():
        model.output.shortlist.bias[UNK] = 50.0
    write_tensors(tmp_path / "run" / MODEL, dict(model.named_parameters()), {"placeholders": 0})
    asked = "--json --set unk_replace=true --set max_length=3"
    copied, translated = (
        json.loads(generate(tmp_path / "run", f"{asked} {more}", b"name1 name1\n").stdout)
        for more in ("", f"--dictionary '{tmp_path}/dictionary'")
    )
    assert (copied["text"], translated["text"]) == ("name1 name1 name1", "nom1 nom1 nom1")
    assert {token["origin"] for token in translated["tokens"]} == {"translated"}
    places = [[token["source"] for token in told["tokens"]] for told in (copied, translated)]
    assert places[0] == places[1]
    wrong = generate(run, f"--dictionary '{tmp_path}/none'", b"name1\n")
    assert (wrong.returncode, b"none" in wrong.stderr, b"Traceback" in wrong.stderr) == (2, True, False)


@pytest.mark.parametrize("kind", ["", "--json", "--show"])
def test_output_is_utf8_whatever_the_locale(run, kind):
    lines = "näme 😀\n".encode() * 3
    plain = generate(run, kind, lines)
    odd = generate(run, kind, lines, PYTHONIOENCODING="ascii")
    assert (odd.returncode, odd.stdout) == (0, plain.stdout), odd.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("<&-", b"standard input is closed"),
        (">&-", b"standard output is closed"),
        ("nowhere.txt", b"nowhere.txt: there is no such file"),
        ("/", b"/: this is a folder"),
        ("--html /", b"/: this is a folder"),
        ("--html nope/page.html", b"nope/page.html: there is no folder"),
        (f"'{sys.executable}'", b"this is not text in UTF-8; it looks like a program"),
        (f"< '{sys.executable}'", b"standard input: this is not text in UTF-8"),
        ("--json --show", b"three ways to print: choose one"),
        (f"'{__file__}' --html '{__file__}'", b"this would be written over, which is read"),
    ],
)
def test_misuse_is_one_line_before_any_work(run, arguments, message):
    result = generate(run, arguments, b"a\n")
    assert (result.returncode, result.stdout) == (2, b"")
    assert message in result.stderr
    assert result.stderr.count(b"\n") == 1
    assert not Path("nope").exists()


def test_a_models_weights_are_no_lines_but_odd_bytes_in_a_text_are(run, tmp_path):
    result = generate(run, f"'{run}/{MODEL}'")
    assert (result.returncode, result.stdout) == (2, b"")
    assert b"model.safetensors: this is not text in UTF-8" in result.stderr
    (tmp_path / "text").write_bytes(b"a\0b \xff\xfe name1\n\0\n")
    for arguments in (f"'{tmp_path}/text'", f"< '{tmp_path}/text'"):
        assert generate(run, arguments).stdout.count(b"\n") == 2


def test_a_page_cut_off_by_a_closed_pipe_leaves_nothing(run, tmp_path):
    result = generate(run, f"--html '{tmp_path}/page.html' | head -1", b"a b name1\n" * 5000)
    assert result.stdout.count(b"\n") == 1
    assert result.stderr == b""
    assert not list(tmp_path.iterdir())


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize("kind", ["text", "tokenized", "json"])
def test_controls_in_copied_text_reach_a_file_and_no_terminal(monkeypatch, kind):
    text = "a\u009b2J\u202eb"
    output = SimpleNamespace(
        fallback=False, warning=None, alternatives=[], text=text, tokenized=text, json=lambda: {"text": text}
    )
    for out, shown in [(Terminal(), "a\ufffd2J\ufffdb"), (io.StringIO(), text)]:
        monkeypatch.setattr(sys, "stdout", out)
        list(command._printed([output], kind, Search()))
        assert shown in out.getvalue()
