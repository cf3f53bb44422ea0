"""The data's way through the house: a module imports only from rows above its own (docs/architecture.md)."""

import ast
import subprocess
import sys
from pathlib import Path

PACKAGE = Path(__file__).parent.parent / "pointing"
ROWS = [
    "errors",
    "files",
    "progress",
    "processes",
    "tables",
    "config",
    "text",
    "tokens",
    "subwords",
    "entities",
    "vocabulary",
    "dictionary",
    "pointers",
    "corpus",
    "blocks",
    "embeddings",
    "preparation",
    "kernels",
    "pointer_softmax",
    "recurrence",
    "model",
    "loss",
    "checkpoint",
    "routes",
    "stepping",
    "search",
    "lines",
    "output",
    "html",
    "generation",
    "significance",
    "metrics",
    "copying",
    "plots",
    "scoring",
    "comparison",
    "evaluation",
    "distributed",
    "optimizers",
    "journal",
    "generating",
    "validation",
    "samples",
    "resuming",
    "training",
    "rarest_word",
    "reproduce",
    "data",
    "demo",
    "server",
    "cli",
    "__main__",
]


def imports(path):
    """The rooms of the package that a file imports from, anywhere in it."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: a relative import"
            names = (
                [f"{node.module}.{alias.name}" for alias in node.names] if node.module == "pointing" else [node.module]
            )
        else:
            continue
        for name in names:
            parts = name.split(".")
            if parts[0] == "pointing" and len(parts) > 1 and not parts[1].startswith("__version"):
                yield parts[1], node.lineno


def rooms():
    for path in sorted(PACKAGE.rglob("*.py")):
        room = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        if room != "__init__":
            yield room, path


def test_every_module_has_its_row():
    assert {room for room, _ in rooms()} <= set(ROWS)


def test_modules_import_only_from_rows_above_their_own():
    wrong = [
        f"{path}:{line}: {room} imports {other}"
        for room, path in rooms()
        for other, line in imports(path)
        if other != room and ROWS.index(other) >= ROWS.index(room)
    ]
    assert wrong == []


def test_the_architectures_table_has_every_module():
    page = (PACKAGE.parent / "docs" / "architecture.md").read_text()
    assert {room for room, _ in rooms() if f"`{room}" not in page} <= {"__main__"}


def test_the_layer_stands_alone():
    assert {room for room, _ in imports(PACKAGE / "pointer_softmax.py")} == {"kernels"}
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
    assert [str(path) for _, path in rooms() if len(path.read_text().splitlines()) > 400] == []
