"""Strings of programs: catalogs, messages, and the real apt on a repository of packages that we write ourselves."""

from __future__ import annotations

import hashlib
import shutil
import struct
import subprocess
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pointing.data import gettext
from pointing.data.catalogs import Damaged, catalogs_in, read_catalog
from pointing.data.messages import PairMaker
from pointing.data.split import hold_out, sample
from pointing.errors import Failure, Misuse

needs_dpkg = pytest.mark.skipif(shutil.which("dpkg-deb") is None, reason="this machine has no dpkg-deb")
needs_apt = pytest.mark.skipif(
    shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None, reason="this machine has no apt"
)
HEADER = "Content-Type: text/plain; charset={charset}\nPlural-Forms: {plural};\n"
TWO = "nplurals=2; plural=(n > 1)"


def mo(
    messages: dict[str, str], order: str = "<", charset: str = "UTF-8", plural: str = TWO, revision: int = 0
) -> bytes:
    """A compiled catalog, as msgfmt writes it: header, tables of lengths and places, texts that end with a zero."""
    entries = {"": HEADER.format(charset=charset, plural=plural), **messages}
    keys, values = ([text.encode(charset) for text in texts] for texts in (entries.keys(), entries.values()))
    start = 28 + 16 * len(entries)
    tables, texts = b"", b""
    for text in keys + values:
        tables += struct.pack(f"{order}2I", len(text), start + len(texts))
        texts += text + b"\0"
    count = len(entries)
    return struct.pack(f"{order}7I", 0x950412DE, revision, count, 28, 28 + 8 * count, 0, start) + tables + texts


# ---------------------------------------------------------------- catalogs


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("charset", ["UTF-8", "ISO-8859-1"])
def test_a_catalog_is_read_in_both_byte_orders_and_its_own_encoding(order: str, charset: str) -> None:
    data = mo(
        {"Open": "Ouvrir", "menu\x04Open": "Déployer", "%d pear\0%d pears": "%d poire\0%d poires"}, order, charset
    )
    assert read_catalog(data, "fr", "orchard").messages == {
        ("", "Open"): "Ouvrir",
        ("menu", "Open"): "Déployer",
        ("", "%d pear"): "%d poire",
        ("", "%d pears"): "%d poires",
    }


@pytest.mark.parametrize(
    ("plural", "forms", "expected"),
    [
        ("nplurals=1; plural=0", "A", {"pear": "A", "pears": "A"}),
        ("nplurals=2; plural=(n != 1)", "A\0B", {"pear": "A", "pears": "B"}),
        # Russian: 1, 2-4, 5 and more; Slovene has the singular in the second place
        ("nplurals=3; plural=n==1 ? 0 : n>=2 && n<=4 ? 1 : 2", "A\0B\0C", {"pear": "A", "pears": "C"}),
        ("nplurals=4; plural=n==1 ? 1 : n==2 ? 2 : n<5 ? 3 : 0", "A\0B\0C\0D", {"pear": "B", "pears": "A"}),
        ("nplurals=3; plural=n==1 ? 0 : 2", "A\0B", {"pear": "A"}),  # a form is missing
        ("nplurals=2; plural=import os", "A\0B", {"pear": "A", "pears": "B"}),  # no rule: as in English
        ("nplurals=2; plural=n/0", "A\0B", {}),
    ],
)
def test_singular_and_plural_are_chosen_by_the_catalogs_own_rule(
    plural: str, forms: str, expected: dict[str, str]
) -> None:
    messages = read_catalog(mo({"pear\0pears": forms}, plural=plural), "xx", "orchard").messages
    assert messages == {("", english): text for english, text in expected.items()}


def test_a_text_that_is_not_in_the_encoding_is_counted() -> None:
    data = mo({"Open": "OUVRIR", "Close": "Fermer"}).replace(b"OUVRIR", b"OUV\xff\xfeR")
    catalog = read_catalog(data, "fr", "orchard")
    assert (catalog.messages, catalog.unreadable) == ({("", "Close"): "Fermer"}, 1)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "does not begin"),
        (b"not a catalog at all, but quite long", "does not begin"),
        (mo({"a": "b"})[:40], "cut off"),
        (mo({"a": "b" * 100})[:-60], "cut off"),
        (mo({"a": "b"}, revision=7 << 16), "unknown number"),
        (mo({"a": "b"}).replace(b"UTF-8", b"KLI-7"), "encoding"),
        (struct.pack("<5I", 0x950412DE, 0, 2**32 - 1, 28, 28), "cut off"),
    ],
)
def test_a_damaged_catalog_is_told(data: bytes, message: str) -> None:
    with pytest.raises(Damaged, match=message):
        read_catalog(data, "fr", "orchard")


@given(st.binary(max_size=60), st.integers(0, 200), st.sampled_from("<>"))
def test_no_damage_breaks_the_reader(noise: bytes, place: int, order: str) -> None:
    data = bytearray(mo({"Open": "Ouvrir", "a\0b": "c\0d"}, order))
    data[place : place + len(noise)] = noise
    for hostile in (bytes(data), noise, bytes(data)[:place]):
        with suppress(Damaged):
            read_catalog(hostile, "fr", "orchard")


# ---------------------------------------------------------------- messages


def made(source: str, target: str) -> tuple[list[tuple[str, str]], list[str]]:
    maker = PairMaker()
    return list(maker.pairs(source, source, target)), [*maker.left_out.elements(), *maker.changed.elements()]


@pytest.mark.parametrize(
    ("source", "target", "pairs"),
    [
        ("Open file", "Ouvrir", [("Open file", "Ouvrir")]),
        ("  Open\tit \n", "L’ouvrir\n", [("Open it", "L’ouvrir")]),
        ("%s: open %d\n", "%s : ouvrir %d\n", [("%s: open %d", "%s : ouvrir %d")]),
        ("First.\n\nSecond %s.", "Un.\n\nDeux %s.", [("First.", "Un."), ("Second %s.", "Deux %s.")]),
        ("_Open", "_Ouvrir", [("Open", "Ouvrir")]),
        ("&Open", "Ou&vrir", [("Open", "Ouvrir")]),
        ("The memo rec_urs", "Le mémo se répèt_e", [("The memo recurs", "Le mémo se répète")]),
        ("Set is_open", "Mettre is_open", [("Set is_open", "Mettre is_open")]),
        ("symbol _start is missing", "il manque _start", [("symbol _start is missing", "il manque _start")]),
        ("%2$s of %1$s", "%1$s, de %2$s", [("%2$s of %1$s", "%1$s, de %2$s")]),
    ],
)
def test_a_message_becomes_pairs(source: str, target: str, pairs: list[tuple[str, str]]) -> None:
    assert made(source, target)[0] == pairs


@pytest.mark.parametrize(
    ("source", "target", "reason"),
    [
        ("Open %s", "Ouvrir", "lines whose protected spans differ"),
        ("Open <b>it</b>", "L’ouvrir <b>", "lines whose protected spans differ"),
        ("%s and %s", "%s et %d", "lines whose protected spans differ"),
        ("One.\nTwo.", "Un et deux.", "messages whose lines do not match"),
        ("One.\n\nTwo.", "Un.\nDeux.\nTrois.", "messages whose lines do not match"),
        ("This sentence is\nwrapped.", "Cette phrase\nest repliée.", "messages of wrapped lines"),
        ("Orchard", "orchard!", "lines with the same text on both sides"),
        ("%s (%d)", "%s ( %d )", "lines without a letter"),
        ("_Open", "Ouvrir", "lines with an accelerator on one side only"),
        ("translator-credits", "Ada", "names of translators"),
        ("Menu|Open", "Ouvrir", "messages with a context inside the text"),
        ("Open", " ", "messages with an empty side"),
        ("Open " * 200, "Ouvrir " * 200, "lines of more than 500 characters"),
    ],
)
def test_what_teaches_nothing_is_left_out_and_counted(source: str, target: str, reason: str) -> None:
    assert made(source, target) == ([], [reason])


def test_no_break_spaces_become_spaces_and_invisible_characters_go() -> None:
    pairs, notes = made("Name:", "\u200eNom\u00a0:")
    assert pairs == [("Name:", "Nom :")]
    assert notes == ["lines with no-break spaces, which became spaces"]


# ---------------------------------------------------------------- the split


def named(number: int) -> str:
    return f"tree{chr(97 + number // 26)}{chr(97 + number % 26)}"


def test_whole_packages_are_held_out_and_none_dominates() -> None:
    pairs = {named(n): [(f"{named(n)} {named(k)}", f"{named(k)} {named(n)}") for k in range(40)] for n in range(60)}
    left_out: Counter[str] = Counter()
    splits = hold_out(pairs, {"dev": 320, "test": 160}, 1, left_out)
    packages = {split: Counter(package for package, _ in taken) for split, taken in splits.items()}
    assert set(packages["dev"].values()) == set(packages["test"].values()) == {20}
    assert not (packages["dev"].keys() & packages["test"].keys() | packages["train"].keys() & packages["dev"].keys())
    assert len(packages["train"]) == 60 - 16 - 8
    assert left_out["pairs of held-out packages above 20"] == 24 * 20
    assert splits == hold_out(pairs, {"dev": 320, "test": 160}, 1, Counter())
    assert splits != hold_out(pairs, {"dev": 320, "test": 160}, 2, Counter())


def test_texts_that_another_package_has_are_not_tested() -> None:
    common = [("Open the file", "Ouvrir le fichier"), ("Close", "Fermer")]
    pairs = {
        named(n): [*common, *((f"{named(n)} {named(k)}", f"{named(k)} {named(n)}") for k in range(15))]
        for n in range(20)
    }
    left_out: Counter[str] = Counter()
    splits = hold_out(pairs, {"dev": 30, "test": 30}, 1, left_out)
    assert len(splits["dev"]) == len(splits["test"]) == 30
    assert not {pair for split in ("dev", "test") for _, pair in splits[split]} & set(common)
    assert left_out["pairs of held-out packages that other packages have too"] == 4 * 2


def test_too_few_packages_are_told() -> None:
    with pytest.raises(Misuse, match=r"too few small packages for 2,000 pairs in dev.*name more packages"):
        hold_out({"a": [("a", "b")], "b": [("c", "d")]}, {"dev": 2000}, 1, Counter())


def test_a_sample_keeps_the_order() -> None:
    pairs = [(named(n), named(n)) for n in range(50)]
    taken = sample(pairs, 10, "1")
    assert len(taken) == 10
    assert taken == sorted(taken)
    assert taken != sample(pairs, 10, "2")


# ---------------------------------------------------------------- packages, and the real apt

Files = dict[str, bytes]


def deb(folder: Path, name: str, files: Files, source: str | None = None) -> Path:
    """Builds a package with these files."""
    root = folder / f"{name}-root"
    (root / "DEBIAN").mkdir(parents=True)
    control = f"Package: {name}\nVersion: 1.0\nArchitecture: all\nMaintainer: Ada <ada@example.org>\nDescription: x\n"
    (root / "DEBIAN" / "control").write_text(control + (f"Source: {source}\n" if source else ""))
    for path, content in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(content)
    file = folder / f"{name}_1.0_all.deb"
    subprocess.run(["dpkg-deb", "--root-owner-group", "--build", str(root), str(file)], check=True, capture_output=True)
    return file


def catalog_path(language: str, domain: str) -> str:
    return f"usr/share/locale/{language}/LC_MESSAGES/{domain}.mo"


@needs_dpkg
def test_the_catalogs_of_a_package_are_read_without_installing_it(tmp_path: Path) -> None:
    file = deb(
        tmp_path,
        "orchard",
        {
            catalog_path("fr", "orchard"): mo({"Open": "Ouvrir"}),
            catalog_path("de", "orchard"): mo({"Open": "Öffnen"}),
            catalog_path("fr", "broken"): b"junk",
            "usr/share/doc/orchard/README": b"read me",
        },
    )
    found = sorted(catalogs_in(file, lambda language: language == "fr"), key=lambda item: isinstance(item, Damaged))
    assert found[0] == ("fr", "orchard", {("", "Open"): "Ouvrir"}, 0)
    assert "broken.mo: it does not begin" in str(found[1])
    assert len(found) == 2


@needs_dpkg
def test_a_damaged_package_is_told(tmp_path: Path) -> None:
    (tmp_path / "x.deb").write_bytes(b"junk" * 100)
    (found,) = catalogs_in(tmp_path / "x.deb", lambda language: True)
    assert isinstance(found, Damaged)


Repository = Callable[[dict[str, tuple[str | None, Files]]], None]


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    """Makes packages the machine's only apt source: repository({name: (source package, files)})."""

    def make(contents: dict[str, tuple[str | None, Files]]) -> None:
        root = tmp_path / "repository"
        pool, suite = root / "pool", root / "dists" / "orchard"
        pool.mkdir(parents=True)
        records = []
        for name, (source, files) in contents.items():
            file = deb(pool, name, files, source)
            data = file.read_bytes()
            control = subprocess.run(["dpkg-deb", "-f", str(file)], check=True, capture_output=True, text=True).stdout
            records.append(
                f"{control}Filename: pool/{file.name}\nSize: {len(data)}\nSHA256: {hashlib.sha256(data).hexdigest()}\n"
            )
        architecture = subprocess.run(["dpkg", "--print-architecture"], check=True, capture_output=True, text=True)
        index = suite / "main" / f"binary-{architecture.stdout.strip()}" / "Packages"
        index.parent.mkdir(parents=True)
        index.write_text("\n".join(records))
        data = index.read_bytes()
        (suite / "Release").write_text(
            "Origin: Orchard\nSuite: ripe\nCodename: orchard\nComponents: main\nDate: Wed, 01 Jan 2020 00:00:00 UTC\n"
            f"SHA256:\n {hashlib.sha256(data).hexdigest()} {len(data)} {index.relative_to(suite)}\n"
        )
        sources = tmp_path / "sources.list"
        sources.write_text(f"deb [trusted=yes] file:{root} orchard main\n")
        settings = tmp_path / "apt.conf"
        settings.write_text(
            f'Dir::Etc::sourcelist "{sources}";\nDir::Etc::sourceparts "/dev/null";\nAPT::Sandbox::User "root";\n'
        )
        monkeypatch.setenv("APT_CONFIG", str(settings))

    return make


def program(number: int, language: str, messages: int = 12) -> bytes:
    words = {"fr": "arbre", "de": "Baum"}
    own = {
        f"tree {named(number)} {named(k)} %d": f"{words[language]} {named(k)} {named(number)} %d"
        for k in range(messages)
    }
    return mo({**own, "Open": {"fr": "Ouvrir", "de": "Öffnen"}[language]})


def programs(count: int) -> dict[str, tuple[str | None, Files]]:
    return {
        f"tree-{named(n)}": (
            None,
            {catalog_path(language, named(n)): program(n, language) for language in ("fr", "de")},
        )
        for n in range(count)
    }


def lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


@needs_apt
def test_apt_brings_packages_and_their_strings_are_split_by_source_package(
    repository: Repository, tmp_path: Path
) -> None:
    broken: Files = {catalog_path("fr", "stump"): b"junk", catalog_path("ja", "stump"): mo({"Open": "開く"})}
    extra: Files = {catalog_path("fr", "roots"): mo({"The roots": "Les racines"})}
    repository({**programs(10), "stump": (None, broken), "roots": (f"tree-{named(0)}", extra)})
    names = [*(f"tree-{named(n)}" for n in range(10)), "stump", "roots", "quince"]
    out = tmp_path / "out"
    summary = gettext.bring(out, ("en", "fr"), names=names, dev=20, test=20)
    assert (summary.pairs["dev"], summary.pairs["test"]) == (20, 20)
    packages = {split: set(lines(out / f"{split}.package")) for split in ("train", "dev", "test")}
    assert sum(map(len, packages.values())) == len(set.union(*packages.values())) == 10
    assert "roots" not in set.union(*packages.values())  # its source package is another's
    english, french = lines(out / "train.en"), lines(out / "train.fr")
    assert english.count("Open") == 1  # all programs have it
    assert french[english.index("Open")] == "Ouvrir"
    assert "Open" not in lines(out / "dev.en") + lines(out / "test.en")
    assert summary.left_out["damaged catalogs"] == 1
    assert summary.left_out["packages that this machine's apt sources do not have"] == 1
    assert any("quince" in warning for warning in summary.warnings)
    again = gettext.bring(tmp_path / "again", ("en", "fr"), names=names[::-1], dev=20, test=20)
    assert all((out / name).read_bytes() == (tmp_path / "again" / name).read_bytes() for name in again.files)


@needs_apt
def test_two_languages_are_joined_by_their_english_keys(repository: Repository, tmp_path: Path) -> None:
    only_french: Files = {catalog_path("fr", "stump"): mo({"Stump": "Souche"})}
    repository({**programs(2), "stump": (None, only_french)})
    names = [f"tree-{named(0)}", f"tree-{named(1)}", "stump"]
    summary = gettext.bring(tmp_path / "out", ("fr", "de"), names=names, dev=0, test=0)
    assert summary.pairs == {"train": 25}
    french, german = lines(tmp_path / "out" / "train.fr"), lines(tmp_path / "out" / "train.de")
    assert german[french.index("Ouvrir")] == "Öffnen"
    assert summary.left_out["messages that only one of the languages has"] == 1


@needs_apt
def test_what_is_not_there_is_told(repository: Repository, tmp_path: Path) -> None:
    repository(programs(1))
    with pytest.raises(Misuse, match="none of the packages has a catalog in 'eo': they have de fr"):
        gettext.bring(tmp_path / "out", ("en", "eo"), names=[f"tree-{named(0)}"])
    with pytest.raises(Failure, match="apt knows none of the 1 packages"):
        gettext.bring(tmp_path / "out", names=["quince"])
    assert not (tmp_path / "out").exists()


def test_arguments_are_checked_before_anything_is_fetched(tmp_path: Path) -> None:
    with pytest.raises(Misuse, match="two languages"):
        gettext.bring(tmp_path, ("fr", "fr"))
    with pytest.raises(Misuse, match="not a language code"):
        gettext.bring(tmp_path, ("en", "fr; evil"))
    with pytest.raises(Misuse, match="not the name of a package"):
        gettext.bring(tmp_path / "out", names=["--evil"])
    with pytest.raises(Misuse, match="0 or more"):
        gettext.bring(tmp_path, dev=-1)


def test_names_of_packages_follow_the_languages() -> None:
    names = gettext.default_packages(["en", "pt_BR"])
    assert "libreoffice-l10n-pt-br" in names
    assert not any("{" in name for name in names)
    assert {"libreoffice-l10n-fr", "libreoffice-l10n-de"} <= set(gettext.default_packages(["fr", "de"]))


@needs_apt
def test_names_of_countries_are_capped(repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    countries = mo({f"Country {named(n)}": f"Pays {named(n)}" for n in range(30)})
    repository({"iso-codes": (None, {catalog_path("fr", "iso_3166"): countries})})
    monkeypatch.setitem(gettext.AT_MOST, "iso-codes", 7)
    summary = gettext.bring(tmp_path / "out", names=["iso-codes"], dev=0, test=0)
    assert summary.pairs == {"train": 7}
    assert summary.left_out["pairs of iso-codes above 7"] == 23
