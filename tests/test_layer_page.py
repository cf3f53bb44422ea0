"""What docs/layer.md shows is run, and what it says of the public names is so."""

import ast
import importlib
import inspect
import random
import re
from pathlib import Path

import pytest
import torch

import pointing

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "layer.md").read_text(encoding="utf-8")
GREETER, TRANSFORMER, *SHORT_EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
ERROR_TABLE = PAGE.split("what the layer says\n")[1].split("\n## ")[0]
ERRORS = re.findall(r"^\| `([^`]+)` \| (.+) \|$", ERROR_TABLE, re.MULTILINE)
NAME_TABLE = PAGE.split("## All public names")[1]


def test_the_smallest_model_names_a_word_that_it_has_never_seen(capsys):
    torch.manual_seed(0)
    exec(compile(GREETER, "docs/layer.md", "exec"), {"__name__": "page"})
    assert capsys.readouterr().out == "['word 3', 'zorblatt', 'word 0']\n"


def test_the_transformer_copies_names_that_it_has_never_seen(capsys):
    random.seed(0)
    torch.manual_seed(0)
    example = {"__name__": "page"}
    exec(compile(TRANSFORMER, "docs/layer.md", "exec"), example)
    counts, sentence = capsys.readouterr().out.splitlines()
    right, names = map(int, re.fullmatch(r"(\d+) of (\d+) unseen names are copied to their places", counts).groups())
    assert names > 200
    assert right / names >= 0.95
    assert sentence == " ".join([*example["test"][0], "→", *example["outputs"][0]])


def test_the_transformers_padding_changes_nothing():
    example = {"__name__": "page"}
    exec(compile(TRANSFORMER.split("\nmodel = ")[0], "docs/layer.md", "exec"), example)
    model, batch, as_read = example["Transformer"]().eval(), example["batch"], example["as_read"]
    short, long = ["a", "cat", "finds", "zorblatt"], ["the", "old", "cat", "likes", "a", "new", "zorblatt"]
    alone, together = batch([short]), batch([short, long])
    log_p = []
    for x, target in (alone, together):
        predicted = model(x, as_read(target[:, :-1]))
        log_p.append(model.output.log_likelihood(*predicted, target, mask=target != -100)[0, :5])
    torch.testing.assert_close(*log_p)


@pytest.fixture(scope="module")
def shown():
    """The names of the page's short examples."""
    names = {"__name__": "page"}
    exec(compile(SHORT_EXAMPLES[0], "docs/layer.md", "exec"), names)
    return names


@pytest.mark.filterwarnings("ignore:Sparse invariant checks")
def test_the_short_examples_run(shown):
    shown = dict(shown)
    before = [parameter.clone() for parameter in shown["layer"].parameters()]
    for example in SHORT_EXAMPLES[1:]:
        exec(compile(example, "docs/layer.md", "exec"), shown)
    assert shown["log_p"].dtype == torch.float32
    assert not any(torch.equal(old, new) for old, new in zip(before, shown["layer"].parameters(), strict=True))


@pytest.mark.parametrize(("call", "message"), ERRORS, ids=[call for call, _ in ERRORS])
def test_the_layer_says_what_the_page_says(call, message, shown):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        eval(call, shown)


def test_all_errors_on_the_page_are_tested():
    assert len(ERRORS) == ERROR_TABLE.count("\n| `") > 15


def test_every_public_name_is_there_with_a_docstring_and_in_the_pages_table():
    named = re.findall(r"`(\w+)", " ".join(re.findall(r"^\| (`[^|]+`) \|", NAME_TABLE, re.MULTILINE)))
    assert sorted(named) == sorted(pointing.__all__)
    for name in pointing.__all__:
        assert getattr(pointing, name).__doc__, name
        assert name in dir(pointing)


def test_signatures_on_the_page_are_those_of_the_code():
    signatures = re.findall(r"`(\w+)\((\w[^`…]*)\)`", NAME_TABLE)
    assert len(signatures) == 8
    for name, written in signatures:
        signature = inspect.signature(getattr(pointing, name))
        bare = [parameter.replace(annotation=inspect.Parameter.empty) for parameter in signature.parameters.values()]
        assert written.replace('"', "'") == str(inspect.Signature(bare))[1:-1]


def test_a_type_checker_sees_the_same_public_names():
    (block,) = (node for node in ast.parse((ROOT / "pointing/__init__.py").read_text()).body if is_type_checking(node))
    seen = {(node.module, name.name) for node in block.body for name in node.names}
    assert {name for _, name in seen} == {*pointing.__all__} - {"load"}
    for module, name in seen:
        assert getattr(importlib.import_module(module), name) is getattr(pointing, name)


def is_type_checking(node):
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def test_types_are_shipped():
    assert (ROOT / "pointing" / "py.typed").exists()
    assert 'packages = ["pointing"]' in (ROOT / "pyproject.toml").read_text()


def test_every_place_that_the_page_links_is_there():
    for link in re.findall(r"\]\(([^)]+)\)", PAGE):
        path, _, heading = link.partition("#")
        text = (ROOT / "docs" / path).read_text(encoding="utf-8") if path else PAGE
        headings = [
            re.sub(r"[^\w -]", "", line.lower()).strip().replace(" ", "-")
            for line in re.findall(r"^#+ (.*)", text, re.M)
        ]
        assert not heading or heading in headings, link
