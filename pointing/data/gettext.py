"""The strings of programs and their translations: gettext catalogs of Debian's packages, fetched and not installed.

These are short texts full of format arguments, tags, options and names: labels, messages, help.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

from pointing.data.apt import Package, check_languages, packages
from pointing.data.catalogs import Catalog, catalogs_in
from pointing.data.filters import Pair, too_different
from pointing.data.messages import PairMaker
from pointing.data.parallel import CorpusWriter, Summary, writing
from pointing.data.split import hold_out, sample
from pointing.errors import Misuse
from pointing.system.progress import track

# Chosen on Debian 12: many pairs for each megabyte that is fetched, many languages, many programs of different kinds.
DEFAULT_PACKAGES = """
akonadi-contacts-data amule-common apper-data apt aptitude-common ario-common audacious-plugins-data audacity-data
backintime-common balsa-data bash binutils-common bison cinnamon-l10n claws-mail-i18n coreutils cryptsetup-bin
deja-dup diffutils dino-im-common dnf-data dpkg e2fsprogs-l10n elinks-data eog evince-common evolution-common
evolution-data-server-common file-roller filezilla-common findutils flex gawk gcc-12-locales gedit-common
geeqie-common gettext gftp-common gimagereader-common gitg gnome-calendar gnome-chess gnome-clocks
gnome-commander-data gnome-maps gnome-settings-daemon-common gnome-software-common gnome-terminal-data gnucash-common
gnumeric-common gnupg-l10n grep gvfs-common hexchat-common iso-codes kaddressbook-data kcalc kdeplasma-addons-data
kdevelop-l10n kile-l10n konsole krita-l10n ktexteditor-data ktorrent-data latexila-data libavahi-common-data libc-l10n
libfm-data libglib2.0-data libgoffice-0.10-10-common libgpg-error-l10n libkf5akonadi-data libkf5akonadicalendar-data
libkf5calendarsupport-data libkf5eventviews-data libkf5incidenceeditor-data libkf5ksieve-data libkf5libkleo-data
libkf5mailcommon-data libkf5pimcommon-data libkf5sysguard-data libkf5unitconversion-data libmypaint-common
libokteta-l10n libparted-i18n libreoffice-l10n-{language} libsane-common libzypp-common login lynx-common make man-db
mc-data meld mutt mypaint-data nano nautilus-data onboard-common orage-data orca planner-data plasma-discover-common
poedit-common polari psmisc qtcurve-l10n remmina-common sed shotwell-common simple-scan subversion sudo
syncevolution-common system-config-printer-common tar tellico-data texinfo thunar-data tilix-common totem-common
util-linux-locales vlc-l10n wdiff wget xz-utils zypper-common
""".split()  # noqa: SIM905
AT_MOST = {"iso-codes": 2000}  # pairs of a source package that are taken: names of countries, languages, currencies
KEY_LANGUAGE = "en"  # the language of the catalogs' keys

Key = tuple[str, str, str, str]  # source package, domain, context, English text


def bring(
    out: str | Path,
    languages: tuple[str, str] = ("en", "fr"),
    *,
    names: Sequence[str] | None = None,
    dev: int = 2000,
    test: int = 2000,
    seed: int = 1,
) -> Summary:
    """Writes train, dev and test: a file for each side, and a file with the source package of each line."""
    source, target = languages
    check_languages(languages)
    if min(dev, test) < 0:
        raise Misuse("dev and test are numbers of pairs: 0 or more")
    if source == target:
        raise Misuse(f"a translation needs two languages, not {source!r} twice")
    held_out = {split: size for split, size in (("dev", dev), ("test", test)) if size}
    with writing(f"strings of programs, {source}-{target}", out, [*languages, "package"]) as corpus:
        with packages(default_packages(languages) if names is None else sorted(set(names))) as fetched:
            corpus.warnings += fetched.warnings
            _count_names(corpus, "packages that this machine's apt sources do not have", fetched.missing)
            _count_names(corpus, "packages that could not be fetched", fetched.failed)
            messages = _read(fetched.fetched, languages, corpus)
        _write(_pairs(messages, languages, corpus), corpus, held_out, seed)
    return corpus.summary()


def default_packages(languages: Iterable[str]) -> list[str]:
    """The names of the default packages; some have a language in their name."""
    codes = [language.lower().replace("_", "-") for language in languages if language != KEY_LANGUAGE]
    return sorted({name.format(language=code) for name in DEFAULT_PACKAGES for code in codes})


def _count_names(corpus: CorpusWriter, reason: str, names: Sequence[str]) -> None:
    if names:
        corpus.left_out[reason] += len(names)
        corpus.warnings.append(f"{reason}: {', '.join(names)}")


def _read(fetched: Sequence[Package], languages: Sequence[str], corpus: CorpusWriter) -> dict[str, dict[Key, str]]:
    """The texts of each language that is not the keys' own."""
    wanted = [language for language in languages if language != KEY_LANGUAGE]
    messages: dict[str, dict[Key, str]] = {language: {} for language in wanted}
    offered: set[str] = set()
    with_none = []
    for package in track(fetched, "unpacking", len(fetched), "packages"):

        def is_wanted(language: str) -> bool:
            offered.add(language)
            return any(language in (code, f"{code}_{code.upper()}") for code in wanted)

        found = False
        for catalog in catalogs_in(package.file, is_wanted):
            if not isinstance(catalog, Catalog):
                corpus.left_out["damaged catalogs"] += 1
                corpus.warnings.append(str(catalog))
                continue
            found = True
            _take(catalog, package.source, messages, corpus.left_out)
        if not found:
            with_none.append(package.name)
    if with_none:
        corpus.left_out[f"packages without a catalog in {' or '.join(wanted)}"] = len(with_none)
    for language in wanted:
        if not messages[language]:
            raise Misuse(f"none of the packages has a catalog in {language!r}: they have {' '.join(sorted(offered))}")
    return messages


def _take(catalog: Catalog, package: str, messages: dict[str, dict[Key, str]], left_out: Counter[str]) -> None:
    language = catalog.language if catalog.language in messages else catalog.language.split("_")[0]
    texts = messages[language]
    if catalog.unreadable:
        left_out["messages that are not text"] += catalog.unreadable
    for (context, english), text in catalog.messages.items():
        key = package, catalog.domain, context, english
        if catalog.language == language or key not in texts:  # fr comes before fr_FR
            texts[key] = text


def _pairs(
    messages: dict[str, dict[Key, str]], languages: tuple[str, str], corpus: CorpusWriter
) -> dict[str, list[Pair]]:
    """The pairs of each source package, without repetitions inside it."""
    keys = set.intersection(*(set(texts) for texts in messages.values()))
    one_sided = sum(len(texts) - len(keys) for texts in messages.values())
    if one_sided:
        corpus.left_out["messages that only one of the languages has"] = one_sided
    maker = PairMaker()
    pairs: dict[str, dict[Pair, None]] = defaultdict(dict)
    for key in track(sorted(keys), "making pairs", len(keys), "messages"):
        english = key[-1]
        source, target = (messages[code][key] if code in messages else english for code in languages)
        for pair in maker.pairs(english, source, target):
            if pair in pairs[key[0]]:
                maker.left_out["pairs seen before"] += 1
            pairs[key[0]][pair] = None
    different = too_different(pair for of_package in pairs.values() for pair in of_package)
    kept = {package: [pair for pair in of_package if not different(pair)] for package, of_package in pairs.items()}
    maker.left_out["pairs of too different lengths"] = sum(map(len, pairs.values())) - sum(map(len, kept.values()))
    corpus.left_out.update(maker.left_out)
    corpus.changed.update(maker.changed)
    return kept


def _write(pairs: dict[str, list[Pair]], corpus: CorpusWriter, held_out: dict[str, int], seed: int) -> None:
    for package, most in AT_MOST.items():
        if len(pairs.get(package, [])) > most:
            corpus.left_out[f"pairs of {package} above {most:,}"] = len(pairs[package]) - most
            pairs[package] = sample(pairs[package], most, f"{seed} {package}")
    splits = hold_out(pairs, held_out, seed, corpus.left_out, never=AT_MOST)
    for split in ("train", *held_out):
        seen: set[Pair] = set()
        for package, pair in splits[split]:
            if pair in seen:
                corpus.left_out["pairs seen before"] += 1
            else:
                seen.add(pair)
                corpus.add(split, *pair, package)
