"""Test sets through sacreBLEU's own code: it downloads, checks, unpacks and converts archives that we wrote."""

from __future__ import annotations

import hashlib
import io
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from sacrebleu.dataset import DATASETS

from pointing.data import newstest
from pointing.errors import Failure, Misuse

# on newer Pythons, tarfile warns that sacreBLEU names no filter
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

ENGLISH = ["The pear fell .", "Ada  peeled it & left ."]
FRENCH = ["La poire tomba .", "Ada l' éplucha & partit ."]

Publish = Callable[[str, dict[str, str]], Path]


@pytest.fixture
def publish(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Publish:
    """Puts an archive of ours where sacreBLEU looks for a set: publish("wmt11", {file: text})."""

    def make(name: str, files: dict[str, str]) -> Path:
        archive = tmp_path / "server" / f"{name.replace('/', '-')}.tgz"
        archive.parent.mkdir(exist_ok=True)
        with tarfile.open(archive, "w:gz") as tar:
            for file, text in files.items():
                member = tarfile.TarInfo(file)
                member.size = len(text.encode())
                tar.addfile(member, io.BytesIO(text.encode()))
        home = tmp_path / "sacrebleu" / name
        monkeypatch.setattr(DATASETS[name], "data", [archive.as_uri()])
        monkeypatch.setattr(DATASETS[name], "md5", [hashlib.md5(archive.read_bytes()).hexdigest()])
        monkeypatch.setattr(DATASETS[name], "_outdir", str(home))
        monkeypatch.setattr(DATASETS[name], "_rawdir", str(home / "raw"))
        return archive

    return make


def sgml(lines: list[str]) -> str:
    segments = "\n".join(f'<seg id="{number}">{line}</seg>' for number, line in enumerate(lines, 1))
    return f'<srcset setid="x">\n<doc docid="a" genre="news" origlang="en">\n{segments}\n</doc>\n</srcset>\n'


def wmt11(english: list[str] = ENGLISH, french: list[str] = FRENCH) -> dict[str, str]:
    return {"newstest2011-src.en.sgm": sgml(english), "newstest2011-src.fr.sgm": sgml(french)}


@pytest.mark.parametrize("name", ["wmt11", "newstest2011", "2011"])
def test_a_set_comes_as_sacrebleu_reads_it(name: str, publish: Publish, tmp_path: Path) -> None:
    publish("wmt11", wmt11())
    summary = newstest.bring(tmp_path / "out", name, ("en", "fr"))
    assert summary.pairs == {"test": 2}
    assert (tmp_path / "out" / "test.en").read_text() == "The pear fell .\nAda peeled it & left .\n"
    assert (tmp_path / "out" / "test.fr").read_text() == "La poire tomba .\nAda l' éplucha & partit .\n"


def test_another_set_may_serve_as_dev_and_languages_may_be_turned_round(publish: Publish, tmp_path: Path) -> None:
    publish("wmt11", wmt11())
    publish("wmt08", {f"test/newstest2008-src.{side}.sgm": sgml([side]) for side in ("en", "fr")})
    summary = newstest.bring(tmp_path / "out", "wmt11", ("fr", "en"), dev="wmt08")
    assert summary.pairs == {"dev": 1, "test": 2}
    assert (tmp_path / "out" / "dev.fr").read_text() == "fr\n"


def test_further_references_have_files_of_their_own(publish: Publish, tmp_path: Path) -> None:
    paths = DATASETS["wmt20/tworefs"].langpairs["de-en"]
    texts = ["Die Birne .", "The pear .", "A pear ."]
    publish("wmt20/tworefs", {path: sgml([text]) for path, text in zip(paths, texts, strict=True)})
    newstest.bring(tmp_path / "out", "wmt20/tworefs", ("de", "en"))
    files = {path.name: path.read_text() for path in (tmp_path / "out").glob("test.*")}
    assert files == {"test.de": "Die Birne .\n", "test.en": "The pear .\n", "test.en.2": "A pear .\n"}


def test_a_wrong_name_is_answered_with_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(Misuse, match="newstest2014"):
        newstest.bring(tmp_path / "out", "newtest2014")
    with pytest.raises(Misuse, match=r"wmt11 has no en-ja: it has .*en-fr.*; en-ja is in .*wmt20"):
        newstest.bring(tmp_path / "out", "wmt11", ("en", "ja"))


def test_what_cannot_be_downloaded_is_a_failure_in_one_line(publish: Publish, tmp_path: Path) -> None:
    publish("wmt11", wmt11()).unlink()
    with pytest.raises(Failure, match="could not fetch wmt11") as failure:
        newstest.bring(tmp_path / "out", "wmt11")
    assert not isinstance(failure.value, Misuse)
    assert not (tmp_path / "out").exists()


def test_a_download_that_is_not_what_it_should_be_is_a_failure(
    publish: Publish, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish("wmt11", wmt11())
    monkeypatch.setattr(DATASETS["wmt11"], "md5", ["0" * 32])
    with pytest.raises(Failure, match=r"not what it should be.* remove .*wmt11"):
        newstest.bring(tmp_path / "out", "wmt11")


def test_sides_of_different_lengths_are_a_failure(publish: Publish, tmp_path: Path) -> None:
    publish("wmt11", wmt11(french=FRENCH[:1]))
    with pytest.raises(Failure, match="differ in length"):
        newstest.bring(tmp_path / "out", "wmt11")
    assert not (tmp_path / "out").exists()
