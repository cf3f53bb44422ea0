"""`make site`: the documentation as web pages in site/, from the Markdown files and docstrings, with mkdocs.

The pages are laid out as in the repository, so that links between files lead to the same places in both. A link that
leads nowhere, a page that is not in the navigation, or a page that asks another host ends it with exit code 1.
"""

from __future__ import annotations

import ast
import logging
import os
import re
import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parent.parent
PAGES = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "CITATION.cff", "LICENSE")
FOLDERS = {"docs": (".md", ".png", ".svg"), "recipes": (".yaml",), "results": (".png",)}
REFERENCE = {  # pages of the API reference: a package whose names are taken, or a module with all it has
    "The package `pointing`": "pointing/__init__.py",
    "On top of transformers": "pointing/huggingface/__init__.py",
    "Settings": "pointing.config",
    "The door of decoders": "pointing.model.decoder",
    "Errors": "pointing.errors",
}
# What a browser fetches by itself: no such address may lead to another host. Links that people click may.
FETCHED = re.compile(
    r"""<(?:script|img|iframe|source|video|audio)\b[^>]*?\bsrc\s*=\s*["']?\s*((?:https?:)?//[^"'\s>]+)"""
    r"""|<link\b(?![^>]*\brel=["']?canonical)[^>]*?\bhref\s*=\s*["']?\s*((?:https?:)?//[^"'\s>]+)"""
    r"""|(?:@import\s+["']?|url\(\s*["']?)\s*((?:https?:)?//[^"'\s)]+)""",
    re.IGNORECASE,
)


def lay_out(folder: Path) -> None:
    """The files that are shown, in the repository's own places, and the pages of the reference."""
    for name in PAGES:
        shutil.copyfile(ROOT / name, folder / name)
    for name, suffixes in FOLDERS.items():
        for path in sorted((ROOT / name).rglob("*")):
            if path.suffix in suffixes:
                copy = folder / path.relative_to(ROOT)
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, copy)
    (folder / "api").mkdir()
    (folder / "api" / "index.md").write_text(reference(), encoding="utf-8")


def reference() -> str:
    """The API reference, from docstrings. Nothing is imported for it: it needs neither torch nor this package."""
    parts = ["# API reference"]
    for title, what in REFERENCE.items():
        parts.append(f"## {title}")
        names = public_names(ROOT / what) if what.endswith(".py") else [what]
        root = "" if what.endswith(".py") else "      show_root_heading: false\n"
        parts += [f"::: {name}\n    options:\n      heading_level: 3\n{root}" for name in names]
    return "\n\n".join(parts) + "\n"


def public_names(path: Path) -> list[str]:
    """Where the names that a package lists in its __all__ are defined, as it imports or defines them."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    package = ".".join(path.parent.relative_to(ROOT).parts)
    found, listed = {}, []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("pointing"):
            found.update({name.asname or name.name: f"{node.module}.{name.name}" for name in node.names})
        elif isinstance(node, ast.FunctionDef):
            found[node.name] = f"{package}.{node.name}"
        elif isinstance(node, ast.Assign) and any(
            isinstance(to, ast.Name) and to.id == "__all__" for to in node.targets
        ):
            listed = list(ast.literal_eval(node.value))
    return [found[name] for name in listed]


def asked_hosts(folder: Path) -> list[str]:
    """Addresses of other hosts that the pages, their styles and scripts would fetch by themselves."""
    asked = []
    for path in sorted(folder.rglob("*")):
        if path.suffix in (".html", ".css"):
            text = re.sub(r"<!--.*?-->", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
            asked += [f"{path.relative_to(folder)}: {''.join(found)}" for found in FETCHED.findall(text)]
    return asked


def main(out: Path) -> None:
    os.environ.setdefault("NO_MKDOCS_2_WARNING", "true")  # an advertisement of a theme
    from mkdocs.commands.build import build
    from mkdocs.config import load_config
    from pymdownx.slugs import slugify

    logging.basicConfig(format="%(levelname)s %(name)s: %(message)s", level=logging.WARNING)
    with TemporaryDirectory(prefix="pointing-site-") as name:
        folder = Path(name)
        lay_out(folder)
        config = load_config(str(ROOT / "docs" / "mkdocs.yml"), docs_dir=str(folder), site_dir=str(out))
        config.mdx_configs["toc"] = {"slugify": slugify(case="lower"), "permalink": False}  # as in the repository
        config.plugins["mkdocstrings"].config.handlers["python"]["paths"] = [str(ROOT)]
        build(config)
    if asked := asked_hosts(out):
        sys.exit("these pages ask other hosts:\n" + "\n".join(asked))
    print(f"{out}/index.html")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "site").resolve())
