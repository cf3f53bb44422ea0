"""The data's way through the house: a module imports only from rows above its own (docs/architecture.md)."""

import ast
import importlib
import re
import subprocess
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "pointing"
ROWS = [  # the data's way: a row imports only from rows above it
    "errors",
    "system",
    "checking",
    "data_settings",
    "config",
    "idle_settings",
    "settings_file",
    "text",
    "documents",
    "kernels",
    "layer_checks",
    "pointer_softmax",
    "corpus",
    "model",
    "generation",
    "translation",
    "evaluation",
    "training",
    "init",
    "data",
    "reproduce",
    "server",
    "huggingface",
    "sharing",
    "demo",
    "cli",
]


def imports(path):
    """(row, module, line) of every import of ours; the module is the whole dotted name below `pointing`."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module is not None and node.module.startswith("pointing"):
            below = node.module.split(".")[1:]
            for name in node.names:
                inner = [*below, name.name]
                is_module = PACKAGE.joinpath(*inner).with_suffix(".py").exists() or PACKAGE.joinpath(*inner).is_dir()
                module = inner if is_module else below
                if module:
                    yield module[0], ".".join(module), node.lineno
        elif isinstance(node, ast.Import):
            for name in node.names:
                first, *below = name.name.split(".")
                if first == "pointing" and below:
                    yield below[0], ".".join(below), node.lineno


def modules():
    """(row, dotted name, path) of every module but the package's own two."""
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        if parts not in (("__init__",), ("__main__",)):
            yield parts[0], ".".join(parts), path


def test_every_module_is_in_a_row():
    assert {row for row, _, _ in modules()} == set(ROWS)


def test_a_row_imports_only_from_rows_above_its_own():
    wrong = [
        f"{path}:{line}: {row} imports {other}"
        for row, _, path in modules()
        for other, _, line in imports(path)
        if other != row and ROWS.index(other) >= ROWS.index(row)
    ]
    assert wrong == []


def test_modules_of_a_package_import_one_way():
    graph = {name: {other for _, other, _ in imports(path)} for _, name, path in modules()}
    try:
        list(TopologicalSorter(graph).static_order())
    except CycleError as error:
        pytest.fail(f"these import each other: {error.args[1]}")


def test_the_architectures_table_has_every_module():
    page = (PACKAGE.parent / "docs" / "architecture.md").read_text()
    assert [name for _, name, path in modules() if path.stem != "__init__" and f"`{path.stem}`" not in page] == []


def test_the_layer_stands_alone():
    assert {row for row, _, _ in imports(PACKAGE / "pointer_softmax.py")} == {"kernels", "layer_checks"}
    assert {row for row, _, _ in imports(PACKAGE / "layer_checks.py")} == {"kernels"}
    assert list(imports(PACKAGE / "kernels.py")) == []


def test_help_does_not_import_anything_heavy():
    heavy = "torch", "numpy", "pyarrow", "matplotlib", "sacrebleu", "pydantic"
    code = (
        "import sys; sys.argv = ['pointing', '--help']\n"
        "from pointing.cli import main\n"
        "try: main()\n"
        f"except SystemExit: print([name for name in {heavy} if name in sys.modules], file=sys.stderr)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "Usage: pointing" in result.stdout
    assert result.stderr.strip() == "[]"


def test_no_file_is_too_long_to_be_read_in_one_go():
    assert [str(path) for _, _, path in modules() if len(path.read_text().splitlines()) > 400] == []


def test_the_architectures_picture_is_up_to_date():
    docs = PACKAGE.parent / "docs"
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); import draw_architecture; print(draw_architecture.draw(), end='')"
    )
    drawn = subprocess.run([sys.executable, "-c", code, str(docs)], capture_output=True, text=True, check=True).stdout
    assert drawn == (docs / "architecture.svg").read_text(encoding="utf-8"), "run `python docs/draw_architecture.py`"


def test_the_architectures_page_names_only_files_that_are_there():
    page = (PACKAGE.parent / "docs" / "architecture.md").read_text()
    named = set(re.findall(r"`((?:[a-z_]+/)+[a-z_]+\.py)`", page))
    assert [name for name in named if not (PACKAGE / name).exists() and not (PACKAGE.parent / name).exists()] == []


def test_public_names_come_from_the_package_and_torch_waits():
    code = (
        "import sys, pointing; assert 'torch' not in sys.modules\n"
        "from pointing import Search; assert 'torch' not in sys.modules\n"
        "from pointing import AlwaysPoint, NeverPoint, PointerNetwork, PointerSoftmax, Search, Switch, load\n"
        "assert PointerSoftmax.__module__ == 'pointing.pointer_softmax'"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        getattr(importlib.import_module("pointing"), "nonsense")  # noqa: B009
