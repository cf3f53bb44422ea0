"""What the README shows is run."""

import re
from pathlib import Path

import pytest
import tiny

from pointing.demo import run_demo

README = (Path(__file__).parent.parent / "README.md").read_text()
EXAMPLES = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


def test_the_layers_example_learns_from_its_target():
    example = {"__name__": "readme"}
    exec(compile(next(one for one in EXAMPLES if "PointerSoftmax(" in one), "README.md", "exec"), example)
    example["loss"].backward()
    assert example["layer"].shortlist.weight.grad.abs().sum() > 0
    assert example["choice"].shape == (2, 3, 1)
    assert example["choice"].max() < example["V"] + example["J"]


def test_a_model_is_used_as_the_readme_says(tmp_path, monkeypatch, capsys):
    tiny.untrained(tmp_path, name="runs/strings")
    monkeypatch.chdir(tmp_path)
    example = next(one for one in EXAMPLES if "pointing.load" in one)
    exec(compile(example, "README.md", "exec"), {"__name__": "readme"})
    text, copied = capsys.readouterr().out.splitlines()
    assert text
    assert copied.startswith("[")


def test_the_readme_is_a_first_page():
    assert len(README.splitlines()) <= 150


def test_the_two_commands_are_targets_of_the_makefile():
    makefile = (Path(__file__).parent.parent / "Makefile").read_text()
    for command in ("demo", "test"):
        assert f"make {command} " in README
        assert f"\n{command}: " in makefile


def test_every_file_that_the_readme_links_is_there():
    for link in re.findall(r"\]\(([^)]+)\)", README):
        if not link.startswith("http"):
            assert (Path(__file__).parent.parent / link).exists(), link


@pytest.mark.slow
def test_the_demos_table_is_what_the_command_prints(tmp_path):
    table, _ = run_demo(tmp_path / "demo")
    printed = {row[0]: [float(cell.split()[0]) for cell in row[1:]] for row in table.rows}
    shown = re.findall(r"^\| ([^|]+) \| ([\d.]+) \| ([\d.]+) \|$", README, re.MULTILINE)
    for name, softmax, pointer_softmax in shown[:3]:  # the first table
        assert float(softmax) == pytest.approx(printed[name][0], abs=8)  # the processor decides what it says of names
        assert float(pointer_softmax) == pytest.approx(printed[name][1], abs=2)
