"""What the README shows is run."""

import re
from pathlib import Path

import tiny

README = (Path(__file__).parent.parent / "README.md").read_text()
EXAMPLES = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


def test_the_layers_example_names_a_word_that_it_has_never_seen(capsys):
    import torch

    torch.manual_seed(0)
    example = next(one for one in EXAMPLES if "class Greeter" in one)
    exec(compile(example, "README.md", "exec"), {"__name__": "readme"})
    assert capsys.readouterr().out == "['word 3', 'zorblatt', 'word 0']\n"


def test_a_model_is_used_as_the_readme_says(tmp_path, monkeypatch, capsys):
    tiny.untrained(tmp_path, name="runs/debian-en-fr")
    monkeypatch.chdir(tmp_path)
    example = next(one for one in EXAMPLES if "pointing.load" in one)
    exec(compile(example, "README.md", "exec"), {"__name__": "readme"})
    text, copied = capsys.readouterr().out.splitlines()
    assert text
    assert copied.startswith("[")


def test_the_two_commands_are_targets_of_the_makefile():
    makefile = (Path(__file__).parent.parent / "Makefile").read_text()
    for command in ("demo", "test"):
        assert f"make {command} " in README
        assert f"\n{command}: " in makefile


def test_every_file_that_the_readme_links_is_there():
    for link in re.findall(r"\]\(([^)]+)\)", README):
        if not link.startswith("http"):
            assert (Path(__file__).parent.parent / link).exists(), link
