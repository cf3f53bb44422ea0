"""The documentation holds together: links lead somewhere, the navigation has all pages, the site asks no other host."""

import re
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "docs"))
import build_site  # noqa: E402

import pointing  # noqa: E402

PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
LINK = re.compile(r"\]\(([^()\s]+(?:\([^()]*\))?)\)")


def prose(page):
    """A page without what is shown as code."""
    text = re.sub(r"^( *)```.*?^ *```$", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"`[^`\n]+`", lambda code: re.sub(r"[\[\]]", "", code[0]), text)


def anchors(page):
    """Of its headings, as GitHub and the site make them."""
    found = {}
    for heading in re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE):
        text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
        slug = re.sub(r"[^\w\- ]", "", text).replace(" ", "-")
        number = found[slug] = found.get(slug, -1) + 1
        yield slug if number == 0 else f"{slug}-{number}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_to_a_file_and_a_heading(page):
    for link in LINK.findall(prose(page)):
        if not re.match(r"https?://", link):
            name, _, heading = link.partition("#")
            target = page.parent / name if name else page
            assert target.is_file(), link
            if heading:
                assert heading in set(anchors(target)), link


def test_links_are_found_and_anchors_made_by_hand(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "# Where would I *add* …\n\n[a](b.md#c) `[no](x.md)` ![d](e.png)\n```\n[no](f.md)\n```\n## A – b\n## A – b\n"
    )
    assert LINK.findall(prose(page)) == ["b.md#c", "e.png"]
    assert list(anchors(page)) == ["where-would-i-add-", "a--b", "a--b-1"]


def entries(nav):
    for entry in nav:
        for value in entry.values():
            yield from [value] if isinstance(value, str) else entries(value)


def test_the_navigation_has_every_page_once():
    nav = list(entries(yaml.safe_load((ROOT / "docs" / "mkdocs.yml").read_text())["nav"]))
    pages = {str(page.relative_to(ROOT)) for page in PAGES}
    assert sorted(nav) == sorted(pages | {"api/index.md"})


def test_the_site_is_laid_out_as_the_repository(tmp_path):
    build_site.lay_out(tmp_path)
    laid_out = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.md")}
    assert laid_out == {str(page.relative_to(ROOT)) for page in PAGES} | {"api/index.md"}
    for page in PAGES:
        for link in LINK.findall(prose(page)):
            if not link.startswith("http"):
                name = link.partition("#")[0]
                assert not name or (tmp_path / page.parent.relative_to(ROOT) / name).is_file(), link


def test_the_reference_has_all_public_names():
    named = {name.rpartition(".")[2] for name in build_site.public_names(ROOT / "pointing" / "__init__.py")}
    assert named == set(pointing.__all__)
    assert "::: pointing.load\n" in build_site.reference()
    assert "::: pointing.huggingface.adding.add_pointer\n" in build_site.reference()


@pytest.mark.parametrize(
    ("page", "asks"),
    [
        ('<script src="https://cdn.example.org/a.js"></script>', True),
        ("<script async src=//cdn.example.org/a.js></script>", True),
        ('<link rel="stylesheet" href="https://fonts.example.org/css">', True),
        ('<style>@import "https://fonts.example.org/a.css"</style>', True),
        ("<style>a { background: url( 'https://example.org/a.png') }</style>", True),
        ('<img alt="x" src="http://example.org/a.png">', True),
        ('<script src="js/theme.js"></script><img src="../a.png"><link href="css/theme.css" rel="stylesheet">', False),
        ('<a href="https://example.org">read more</a><link rel="canonical" href="https://example.org/">', False),
        ('<!-- <script src="https://example.org/old.js"></script> -->', False),
    ],
)
def test_what_a_page_fetches_by_itself_is_found(tmp_path, page, asks):
    (tmp_path / "index.html").write_text(page)
    assert bool(build_site.asked_hosts(tmp_path)) == asks


def test_what_contributors_are_told_to_run_is_there():
    makefile = (ROOT / "Makefile").read_text()
    for page in ("CONTRIBUTING.md", "docs/releasing.md"):
        text = (ROOT / page).read_text()
        assert re.findall(r"\bmake ([a-z-]+)", text)
        for target in re.findall(r"(?:`|^|&& )make ([a-z-]+)", text, re.MULTILINE):
            assert f"\n{target}:" in makefile, target
    for path in re.findall(
        r"`((?:pointing|tests|docs|release|torture)/[\w/.-]+)`", (ROOT / "CONTRIBUTING.md").read_text()
    ):
        assert (ROOT / path).exists(), path
