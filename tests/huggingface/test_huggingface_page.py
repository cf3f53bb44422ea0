"""What docs/huggingface.md shows is run, on a small random model in place of the user's."""

import csv
import re
from pathlib import Path

import pytest
import small

PAGE = (Path(__file__).parents[2] / "docs" / "huggingface.md").read_text(encoding="utf-8")
TRAIN, USE, GENERATE = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
SHOWN = re.search(r"says, for a model.*?```\n(.*?)```", PAGE, re.DOTALL)[1]


def follow(folder, monkeypatch, name, pairs, width, learning_rate, epochs, longest=60):
    """Runs the page where `my-model`, `train.csv` and `dev.csv` are; what its code has defined."""
    monkeypatch.chdir(folder)
    below, tokenizer = small.build(name, width)
    below.save_pretrained("my-model")
    tokenizer.save_pretrained("my-model")
    for part, some in (("train", pairs), ("dev", pairs[:32])):
        with Path(f"{part}.csv").open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([("source", "target"), *some])
    monkeypatch.setenv("HF_DATASETS_CACHE", str(folder / "cache"))
    train = TRAIN.replace("3e-4", str(learning_rate)).replace("num_train_epochs=3", f"num_train_epochs={epochs}")
    train = train.replace('"checkpoints",', '"checkpoints", report_to="none", disable_tqdm=True, use_cpu=True,')
    page = {"__name__": "page"}
    for code in (train, USE, GENERATE):
        exec(compile(code.replace("=60", f"={longest}"), "docs/huggingface.md", "exec"), page)
    return page


def test_the_pages_code_runs(tmp_path, monkeypatch):
    page = follow(tmp_path, monkeypatch, "BART", small.text()[0][:40], 16, 0.001, 1, longest=6)
    assert len(page["texts"]) == 4
    assert [output.source.text for output in page["outputs"]] == page["lines"]
    assert page["texts"][::2] == [output.text for output in page["outputs"]]
    assert (tmp_path / "my-pointer" / "model.safetensors").exists()


@pytest.mark.slow
def test_a_model_that_follows_the_page_says_what_the_page_shows(tmp_path, monkeypatch, capsys):
    follow(tmp_path, monkeypatch, "BART", small.text()[0], 64, 0.003, 5)
    said = capsys.readouterr().out.splitlines()[-6:]
    assert [line.rsplit(" ", 1)[0] for line in said[1:]] == [line.rsplit(" ", 1)[0] for line in SHOWN.splitlines()[1:]]
    assert said[0] == SHOWN.splitlines()[0]
