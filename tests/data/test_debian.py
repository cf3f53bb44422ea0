"""Debian's descriptions taken apart, paired, split without leaks; the real apt on packages that we invented."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from pointing.data import debian
from pointing.data.descriptions import Description, paired, read_descriptions, sections, unwrap
from pointing.data.parallel import writing
from pointing.data.split import deal, groups
from pointing.errors import Failure, Misuse

needs_apt = pytest.mark.skipif(shutil.which("apt-get") is None, reason="this machine has no apt")

PEELER_EN = """\
Package: pear-peeler
Description-md5: 11111111111111111111111111111111
Description-en: tool that peels pears
 Pear Peeler peels pears, also the cross-
 platform ones, and
 slices them.
 .
 It has:
  * one very sharp blade that you
    should not touch;
  * no mercy.
 It was written by Ada.
"""
PEELER_FR = """\
Package: pear-peeler
Description-md5: 11111111111111111111111111111111
Description-fr: outil qui épluche les poires –⋅éplucheur
 Pear Peeler épluche les poires, même multiplates-formes,
 et les coupe.
 .
 Il possède :
  – une lame très aiguisée à ne pas toucher ;
  – aucune pitié.
 Il a été écrit par Ada.
"""


def description(text: str, tmp_path: Path) -> Description:
    file = tmp_path / "Translation"
    file.write_text(text, encoding="utf-8")
    (only,) = read_descriptions(file)
    return only


def pairs(left: str, right: str) -> list[tuple[str, str]]:
    """The bodies' pairs, for the titles are always paired."""
    source, target = (Description("p", "0", "title", sections(text.splitlines())) for text in (left, right))
    return list(paired(source, target))[1:]


def pieces(text: str) -> list[list[tuple[str, str]]]:
    return [[(piece.kind, piece.text) for piece in section] for section in sections(text.splitlines())]


def test_a_description_is_taken_apart_and_paired_piece_by_piece(tmp_path: Path) -> None:
    english, french = description(PEELER_EN, tmp_path), description(PEELER_FR, tmp_path)
    assert (english.package, english.md5) == ("pear-peeler", "1" * 32)
    assert list(paired(english, french)) == [
        ("tool that peels pears", "outil qui épluche les poires – éplucheur"),
        (
            "Pear Peeler peels pears, also the cross-platform ones, and slices them.",
            "Pear Peeler épluche les poires, même multiplates-formes, et les coupe.",
        ),
        ("It has:", "Il possède :"),
        ("one very sharp blade that you should not touch;", "une lame très aiguisée à ne pas toucher ;"),
        ("no mercy.", "aucune pitié."),
        ("It was written by Ada.", "Il a été écrit par Ada."),
    ]


def test_a_long_description_is_one_line_with_its_bullets(tmp_path: Path) -> None:
    long = description(PEELER_EN, tmp_path).long()
    assert long.endswith("It has: * one very sharp blade that you should not touch; * no mercy. It was written by Ada.")


def test_a_file_of_several_descriptions_gives_them_all(tmp_path: Path) -> None:
    (tmp_path / "Translation").write_text(
        "Package: a\nDescription-md5: 1\nDescription-en: first\n\n"
        "Package: b\nDescription-md5: 2\n\n"  # without a text
        "Package: c\nDescription-md5: 3\nDescription-en: third\n body\n",
        encoding="utf-8",
    )
    assert [(d.package, d.title, d.long()) for d in read_descriptions(tmp_path / "Translation")] == [
        ("a", "first", ""),
        ("c", "third", "body"),
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("one\ntwo", [[("paragraph", "one two")]]),
        ("one\n.\ntwo", [[("paragraph", "one")], [("paragraph", "two")]]),
        ("one\n .\n.\ntwo\n.", [[("paragraph", "one")], [("paragraph", "two")]]),  # an indented or a doubled dot
        ("has:\n - a\n - b", [[("paragraph", "has:"), ("item", "a"), ("item", "b")]]),
        ("has:\n- a\n- b\nc", [[("paragraph", "has:"), ("item", "a"), ("item", "b c")]]),  # a list without indent
        ("a pear\n- peeled - in", [[("paragraph", "a pear - peeled - in")]]),  # a dash at a wrapped line's start
        (" 1. a\n    b\n 2. c\nd", [[("item", "a b"), ("item", "c"), ("paragraph", "d")]]),
        ("see:\n pear(1)\n apple(1)", [[("paragraph", "see:"), ("block", "pear(1) apple(1)")]]),
    ],
)
def test_lines_become_paragraphs_items_and_blocks(text: str, expected: list[list[tuple[str, str]]]) -> None:
    assert pieces(text) == expected


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["a", "b"], "a b"),
        (["cross-", "platform"], "cross-platform"),
        (["16-", "and 32-bit"], "16- and 32-bit"),
        (["a -", "b"], "a - b"),
        (["12 kg ", "  à  peu"], "12 kg à peu"),
        (["12⋅kg"], "12 kg"),
        (["12\u00a0kg", "exac\u00adtly\x1b"], "12 kg exactly"),
        (["梨を", "剥く"], "梨を剥く"),
        (["梨の", "pear"], "梨の pear"),
        (["배를", "깎다"], "배를 깎다"),
    ],
)
def test_wrapped_lines_become_one(lines: list[str], expected: str) -> None:
    assert unwrap(lines) == expected


def test_sections_that_are_made_differently_are_paired_as_wholes() -> None:
    assert pairs("Has:\n * a\n * b\n.\nEnd.", "Contient : a et b.\n.\nFin.") == [
        ("Has: * a * b", "Contient : a et b."),
        ("End.", "Fin."),
    ]


def test_a_list_in_another_order_is_paired_as_a_whole() -> None:
    assert pairs(" * peel: peels\n * core: cores", " * core : évide\n * peel : épluche") == [
        ("* peel: peels * core: cores", "* core : évide * peel : épluche")
    ]


def test_an_empty_line_on_one_side_only_does_not_keep_pieces_apart() -> None:
    assert pairs("Has:\n * a\n * b", "Contient :\n.\n * un\n * deux") == [
        ("Has:", "Contient :"),
        ("a", "un"),
        ("b", "deux"),
    ]


def test_bodies_that_do_not_match_are_not_paired() -> None:
    assert pairs("One.\n.\nTwo.\n.\nThree.", "Un et deux.\n.\nTrois.") == []


def test_documents_that_share_a_text_through_others_are_one_group() -> None:
    texts = [{"pear"}, {"plum", "apple 1"}, {"Pear!", "fig"}, {"FIG", "Apple 22"}, {"quince"}]
    assert groups(texts) == [[0, 1, 2, 3], [4]]


def test_whole_groups_are_dealt_and_none_too_large() -> None:
    # of 440 pairs wanted, a group may give 22; of 20 wanted, all 20
    linked = [[0, 1], *([number] for number in range(2, 100))]
    names = [f"p{number}" for number in range(100)]
    pairs = [12, 11, *[10] * 98]
    dealt = deal(linked, names, pairs, {"dev": 440, "test": 20}, seed=1)
    assert {split: len(documents) for split, documents in dealt.items()} == {"train": 54, "dev": 44, "test": 2}
    assert sorted(document for documents in dealt.values() for document in documents) == list(range(100))
    assert {0, 1} <= set(dealt["train"])  # 23 pairs together


def test_the_seed_decides_the_split_and_newcomers_change_little() -> None:
    def dev(seed: int, documents: int) -> set[int]:
        names = [f"p{number}" for number in range(documents)]
        dealt = deal([[number] for number in range(documents)], names, [1] * documents, {"dev": 100}, seed)
        return set(dealt["dev"])

    assert dev(1, 1000) == dev(1, 1000)
    assert len(dev(1, 1000) & dev(2, 1000)) < 30  # 10 by chance
    assert len(dev(1, 1000) & dev(1, 1010)) > 90


def test_a_folder_with_other_things_is_not_replaced(tmp_path: Path) -> None:
    out = tmp_path / "out"
    for text in ("first", "second"):
        with writing("ours", out, ["en", "fr"]) as corpus:
            corpus.add("train", text, text)
    assert (out / "train.fr").read_text() == "second\n"
    (out / "thesis.txt").write_text("ten years of work")
    with pytest.raises(Misuse, match="holds other things"), writing("ours", out, ["en", "fr"]):
        pass
    assert (out / "thesis.txt").exists()


def test_a_run_that_fails_leaves_nothing(tmp_path: Path) -> None:
    def interrupted() -> None:
        with writing("ours", tmp_path / "out", ["en", "fr"]) as corpus:
            corpus.add("train", "a", "b")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert list(tmp_path.iterdir()) == []


# ---------------------------------------------------------------- the real apt, on a repository that we write ourselves

Repository = Callable[[dict[str, str]], None]


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    """Makes Translation files the machine's only apt source: repository({"en": text, "fr": text})."""

    def make(translations: dict[str, str]) -> None:
        suite = tmp_path / "repository" / "dists" / "orchard"
        lines = ["Origin: Orchard", "Suite: ripe", "Codename: orchard", "Components: main"]
        lines += ["Date: Wed, 01 Jan 2020 00:00:00 UTC", "SHA256:"]
        for language, text in translations.items():
            file = suite / "main" / "i18n" / f"Translation-{language}"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
            data = file.read_bytes()
            lines.append(f" {hashlib.sha256(data).hexdigest()} {len(data)} main/i18n/{file.name}")
        suite.mkdir(parents=True, exist_ok=True)
        (suite / "Release").write_text("\n".join(lines) + "\n")
        sources = tmp_path / "sources.list"
        sources.write_text(f"deb [trusted=yes] file:{tmp_path}/repository orchard main\n")
        settings = tmp_path / "apt.conf"
        settings.write_text(
            f'Dir::Etc::sourcelist "{sources}";\nDir::Etc::sourceparts "/dev/null";\n'
            'APT::Sandbox::User "root";\n'  # _apt may not look into pytest's folders
            'Acquire::GzipIndexes "true";\nAcquire::Languages "none";\n'  # what a system may say, and we overrule
        )
        monkeypatch.setenv("APT_CONFIG", str(settings))

    return make


def orchard(language: str, trees: int = 40) -> str:
    """Trees 2n and 2n + 1 share a paragraph, as a library and its development files do."""
    words = {"en": ("tree", "It grows fruit of kind", "It stands at place"), "fr": ("arbre", "Fruit de sorte", "Lieu")}
    tree, fruit, place = words[language]
    number = ["", *"abcdefghijklmnopqrstuvwxyz"]
    names = [number[n // 26] + number[n % 26 + 1] for n in range(trees)]
    return "\n".join(
        f"Package: tree-{name}\nDescription-md5: {n:032x}\nDescription-{language}: {tree} {name}{name}\n"
        f" {fruit} {names[n // 2]}.\n .\n {place} {name}.\n"
        for n, name in enumerate(names)
    )


def lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


@needs_apt
def test_apt_brings_translations_and_nothing_leaks(repository: Repository, tmp_path: Path) -> None:
    repository({"en": orchard("en"), "fr": orchard("fr")})
    out = tmp_path / "out"
    summary = debian.bring(out, ("en", "fr"), dev=20, test=10)
    # two trees together give 5 pairs: 2 titles, 2 places, and the fruit of both once
    assert summary.pairs == summary.short == {"train": 70, "dev": 20, "test": 10}
    assert summary.left_out["pairs seen before"] == 20
    assert summary.warnings == ()
    for side in ("en", "fr"):
        of_split = [set(lines(out / f"{split}.{side}")) for split in ("train", "dev", "test")]
        assert len(set.union(*of_split)) == sum(map(len, of_split)) == 100
    english, french, package = (lines(out / f"train.{side}") for side in ("en", "fr", "package"))
    place = next(number for number, line in enumerate(english) if line.startswith("It stands"))
    name = package[place].removeprefix("tree-")
    assert (english[place], french[place]) == (f"It stands at place {name}.", f"Lieu {name}.")


@needs_apt
def test_the_same_again_gives_the_same_files(repository: Repository, tmp_path: Path) -> None:
    repository({"en": orchard("en"), "fr": orchard("fr")})
    first, second = (debian.bring(tmp_path / name, ("fr", "en"), dev=10, test=10) for name in ("one", "two"))
    assert first.files == second.files
    for name in first.files:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


@needs_apt
def test_apt_brings_synopses(repository: Repository, tmp_path: Path) -> None:
    repository({"en": orchard("en") + "\nPackage: stump\nDescription-md5: f\nDescription-en: only a title\n"})
    summary = debian.bring(tmp_path / "out", synopsis=True, dev=4, test=0, suite="ripe")
    assert summary.pairs == {"train": 36, "dev": 4}
    assert summary.left_out["descriptions that are a synopsis only"] == 1
    package, long, short = (
        lines(tmp_path / "out" / f"dev.{side}")[0] for side in ("package", "description", "synopsis")
    )
    name = package.removeprefix("tree-")
    assert short == f"tree {name}{name}"
    assert long.startswith("It grows fruit of kind ")
    assert long.endswith(f"It stands at place {name}.")


@needs_apt
def test_what_nobody_translated_or_only_in_part_is_left_out(repository: Repository, tmp_path: Path) -> None:
    long = "Every apple in this box was washed, dried, polished, weighed and packed by hand."
    repository(
        {
            "en": orchard("en") + f"\nPackage: x\nDescription-md5: a\nDescription-en: Apple\n {long}\n .\n Eat.\n",
            "fr": orchard("fr")
            + "\nPackage: x\nDescription-md5: a\nDescription-fr: apple.\n Une boîte.\n .\n \u200b\n",
        }
    )
    left_out = debian.bring(tmp_path / "out", dev=0, test=0).left_out
    assert left_out["pairs with an empty side"] == 1
    assert left_out["pairs with the same text on both sides"] == 1
    assert left_out["pairs of too different lengths"] == 1


@needs_apt
def test_a_language_or_suite_that_is_not_there_is_answered_with_those_that_are(
    repository: Repository, tmp_path: Path
) -> None:
    repository({"en": orchard("en"), "fr": orchard("fr")})
    with pytest.raises(Misuse, match="no descriptions in 'eo': it has en, fr"):
        debian.bring(tmp_path / "out", ("en", "eo"))
    with pytest.raises(Misuse, match=r"no suite 'rotten'.*orchard, ripe"):
        debian.bring(tmp_path / "out", suite="rotten")
    with pytest.raises(Misuse, match="only 100 pairs"):
        debian.bring(tmp_path / "out")
    assert not (tmp_path / "out").exists()


@needs_apt
def test_a_source_that_fails_is_told_in_apts_words(repository: Repository, tmp_path: Path) -> None:
    repository({})
    shutil.rmtree(tmp_path / "repository")
    with pytest.raises(Failure, match=r"did not bring .* said: .*orchard") as failure:
        debian.bring(tmp_path / "out")
    assert not isinstance(failure.value, Misuse)


def test_languages_are_checked_before_anything_is_fetched(tmp_path: Path) -> None:
    with pytest.raises(Misuse, match="two languages"):
        debian.bring(tmp_path, ("fr", "fr"))
    with pytest.raises(Misuse, match=r"not a language code|no apt"):
        debian.bring(tmp_path, ("en", 'fr"; evil'))


def test_a_machine_without_apt_is_told_of_the_other_sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Misuse, match=r"newstest.*huggingface"):
        debian.bring(tmp_path / "out")
