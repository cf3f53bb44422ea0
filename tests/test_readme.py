"""What the README shows is run."""

import re
from pathlib import Path

README = (Path(__file__).parent.parent / "README.md").read_text()


def test_the_layers_example_names_a_word_that_it_has_never_seen(capsys):
    import torch

    torch.manual_seed(0)
    (example,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    exec(compile(example, "README.md", "exec"), {"__name__": "readme"})
    assert capsys.readouterr().out == "['word 3', 'zorblatt', 'word 0']\n"


def test_the_two_commands_are_targets_of_the_makefile():
    makefile = (Path(__file__).parent.parent / "Makefile").read_text()
    for command in ("demo", "test"):
        assert f"make {command} " in README
        assert f"\n{command}: " in makefile


def test_every_file_that_the_readme_links_is_there():
    for link in re.findall(r"\]\(([^)]+)\)", README):
        if not link.startswith("http"):
            assert (Path(__file__).parent.parent / link).exists(), link
