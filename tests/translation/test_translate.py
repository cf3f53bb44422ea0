"""`pointing translate` as users meet it: whole files, a tiny model, bad files, files that must survive."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import polib
import pytest
import tiny
from standin import SEARCH, StandIn

from pointing.documents import msgfmt
from pointing.errors import Failure, Misuse
from pointing.translation.filling import LONGEST_LINE
from pointing.translation.translate import Options, fill, prepare

LANGUAGES = "en", "fr"
PO = 'msgid ""\nmsgstr ""\n"Language: fr\\n"\n"Content-Type: text/plain; charset=UTF-8\\n"\n\n'


def translated(path, translator=None, options=None, **where):
    """Translates one file, or several; the summaries."""
    files = path if isinstance(path, list) else [path]
    return fill(prepare(files, LANGUAGES, options or Options(), **where), translator or StandIn(), SEARCH)


def write(path, *messages, flags=""):
    path.write_text(PO + "\n".join(f'{flags}msgid "{message}"\nmsgstr ""\n' for message in messages))
    return path


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A model that copies names: a few seconds of training."""
    folder = tmp_path_factory.mktemp("translating")
    tiny.train_in(folder, folder / "run", {"training": {"updates": 300, "validate_every": 300}})
    return folder / "run"


def test_a_model_fills_a_file_and_says_what_it_copied(run, tmp_path):
    path = write(tmp_path / "app.po", "a b name7", "c d", "%s", "name5 d\\nq")
    (tmp_path / "more.csv").write_text("source,target\na name3,\nb,B\n")
    result = tiny.pointing(
        *("translate", run, path, tmp_path / "more.csv", "-o", tmp_path / "out", "--json", "--provenance"),
        *("--html", tmp_path / "page.html"),
        folder=tmp_path,
    )
    assert result.returncode == 0, result.stderr
    first, second = json.loads(result.stdout)["files"]
    assert [unit["status"] for unit in first["units"]] == ["filled"] * 4
    assert first["units"][2]["target"] == ["%s"]
    origins = first["units"][0]["origins"][0]
    assert any(origin["text"] == "name7" and origin["span"] == [4, 9] for origin in origins)
    assert first["copied_names"] >= 2
    assert first["glossary_terms"] == 0
    entries = polib.pofile(str(tmp_path / "out" / "app.fr.po"))
    assert [entry.msgstr for entry in entries] == [unit["target"][0] for unit in first["units"]]
    assert all(entry.fuzzy for entry in entries)
    assert "copied «name7» (characters 5–9)" in entries[0].tcomment
    assert (second["filled"], second["left"], second["msgfmt"]) == (1, 1, None)
    assert second["notes"] == [
        f"{tmp_path}/more.csv: source column 'source', target column 'target' (guessed from the header)"
    ]
    assert "guessed" in result.stderr
    assert "name7" in (tmp_path / "page.html").read_text()
    if shutil.which("msgfmt"):
        assert first["msgfmt"] == "accepted"


def test_the_summary_is_for_people(run, tmp_path):
    path = write(tmp_path / "app.po", "a name7", "b " * 5000)
    result = tiny.pointing("translate", run, path, "--in-place", "--no-fuzzy", folder=tmp_path)
    assert result.returncode == 0, result.stderr
    assert "2 entries, 1 filled, 0 left as they were, 1 failed" in result.stdout
    assert f"{path}:9: left, has a line of 10,000 characters" in result.stdout
    assert "fuzzy" not in path.read_text()


def test_lines_that_the_model_would_cut_are_left(run, tmp_path):
    path = write(tmp_path / "app.po", "b " * 300, "a")
    result = tiny.pointing("translate", run, path, "--in-place", folder=tmp_path)
    assert "1 filled, 0 left as they were, 1 failed" in result.stdout
    assert "tokens" in result.stdout


@pytest.mark.parametrize("name", ["a.docx", "a", "a.po.bak", "a.json"])
def test_unknown_kinds_are_refused_with_a_list(run, tmp_path, name):
    (tmp_path / name).write_text("x")
    code, text = tiny.said("translate", run, tmp_path / name)
    assert code == 2
    assert text.count("\n") == 1
    assert "gettext (.po .pot); XLIFF (.xlf .xliff); tables (.csv .tsv .tab); JSON lines" in text


def test_misuse_is_said_before_a_model_is_loaded(tmp_path):
    run = tmp_path / "run"
    run.mkdir()
    (run / "config.yaml").write_text("data: {train: {source: a, target: b}, dev: {source: a, target: b}}\n")
    (tmp_path / "a.csv").mkdir()
    os.mkfifo(tmp_path / "b.po")
    (tmp_path / "c.po").write_text("nonsense")
    (tmp_path / "d.po").write_text(PO.replace("fr", "de"))
    for name, message in [
        ("a.csv", "this is a folder"),
        ("b.po", "this is a pipe or a device"),
        ("c.po", "c.po:1: this is not PO: 'nonsense'"),
        ("d.po", "a translation into 'de', but the run writes 'fr': give --language de"),
        ("none.po", "there is no such file"),
    ]:
        code, text = tiny.said("translate", run, tmp_path / name)
        assert (code, text.count("\n")) == (2, 1)
        assert message in text
    (tmp_path / "x.txt").write_bytes(b"\x7fELF" + bytes(20))
    assert (
        "x.txt:1: there is a NUL character: this is no text file" in tiny.said("translate", run, tmp_path / "x.txt")[1]
    )
    there = set(tmp_path.iterdir())
    for option in ("--html", "-o"):
        code, text = tiny.said("translate", run, write(tmp_path / "e.po", "a"), option, tmp_path / "nope" / "x.po")
        assert (code, f"there is no folder {tmp_path}/nope: make it first" in text) == (2, True)
    assert set(tmp_path.iterdir()) == there | {tmp_path / "e.po"}
    code, text = tiny.said("translate", tmp_path / "no-run", tmp_path / "c.po")
    assert (code, f"there is no run in {tmp_path / 'no-run'}: " in text) == (2, True)
    code, text = tiny.said("translate", run, write(tmp_path / "e.po", "a"))
    assert (code, "there is no such checkpoint" in text) == (2, True)  # only now the model was asked for
    assert (tmp_path / "e.po").read_text() == PO + 'msgid "a"\nmsgstr ""\n'


def test_the_first_hypothesis_that_passes_is_taken(tmp_path):
    path = write(tmp_path / "app.po", "open %s", flags="#, c-format\n")
    translator = StandIn(lambda line: ["ouvrir % s", "ouvrir %s %s", "ouvrez %s", "ouvrir %s"])
    (summary,) = translated(path, translator)
    assert summary.results[0].texts == ("ouvrez %s",)
    assert translator.settings.nbest == translator.settings.beam == 3


def test_an_entry_for_which_none_passes_stays_empty_and_is_listed(tmp_path):
    path = write(tmp_path / "app.po", "open %s", "fine")
    (summary,) = translated(path, StandIn(lambda line: ["non", "niet"] if "%" in line else ["bien"]))
    reason = f"{path}:6: left, no translation passes the check: the best one lacks %s"
    assert reason in summary.text()
    assert summary.results[0].rejected == ("non", "niet")
    assert [entry.msgstr for entry in polib.pofile(str(tmp_path / "app.fr.po"))] == ["", "bien"]


def test_each_different_line_is_asked_for_once_over_all_files(tmp_path):
    translator = StandIn()
    files = [write(tmp_path / "a.po", "x", "x\\ny", "_Open"), write(tmp_path / "b.po", "y", "Open", "%d")]
    translated(files, translator)
    assert translator.asked == ["x", "y", "Open"]
    assert polib.pofile(str(tmp_path / "a.fr.po"))[2].msgstr == "_OPEN"


def test_further_arguments_reach_the_generator(tmp_path):
    translator = StandIn()
    job = prepare([write(tmp_path / "a.po", "x")], LANGUAGES, Options())
    fill(job, translator, SEARCH, glossary="x")
    assert translator.more == {"glossary": "x"}


def test_what_the_users_patterns_match_is_kept(tmp_path):
    job = prepare([write(tmp_path / "a.po", "see ABC-1")], LANGUAGES, Options())
    (summary,) = fill(job, StandIn(lambda line: ["voir ABC", "voir ABC-1"]), SEARCH, ["[A-Z]+-[0-9]+"])
    assert summary.results[0].texts == ("voir ABC-1",)


def test_terms_of_a_glossary_are_written_kept_and_counted(run, tmp_path):
    path = write(tmp_path / "app.po", "a name7 b", "q c")
    (tmp_path / "terms.tsv").write_text("name7\tle %s nom\n")
    (tmp_path / "kept").write_text("q\n")
    result = tiny.pointing(
        *("translate", run, path, "--in-place", "--json", "--glossary", tmp_path / "terms.tsv"),
        *("--keep", tmp_path / "kept"),
        folder=tmp_path,
    )
    assert result.returncode == 0, result.stderr
    (told,) = json.loads(result.stdout)["files"]
    assert told["filled"] == 2
    assert told["glossary_terms"] >= 1
    assert "le %s nom" in told["units"][0]["target"][0]  # what is protected in the term belongs there
    assert "q" in told["units"][1]["target"][0].split()


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (Options(), ["EMPTY", "fou", "fait"]),
        (Options(fuzzy_too=True), ["EMPTY", "FUZZY", "fait"]),
        (Options(everything=True), ["EMPTY", "FUZZY", "DONE"]),
    ],
)
def test_what_is_translated_anew(tmp_path, options, expected):
    path = tmp_path / "app.po"
    path.write_text(
        PO + 'msgid "empty"\nmsgstr ""\n\n#, fuzzy\nmsgid "fuzzy"\nmsgstr "fou"\n\nmsgid "done"\nmsgstr "fait"\n'
    )
    translated(path, options=options, in_place=True)
    assert [entry.msgstr for entry in polib.pofile(str(path))] == expected


def test_another_region_of_the_language_is_welcome(tmp_path):
    path = write(tmp_path / "app.po", "a")
    path.write_text(path.read_text().replace("Language: fr", "Language: fr_CA"))
    translated(path, in_place=True)
    path.write_text(path.read_text().replace("Language: fr_CA", "Language: de"))
    with pytest.raises(Misuse, match="--language says 'fr'"):
        prepare([path], LANGUAGES, Options(language="fr"), in_place=True)
    prepare([path], LANGUAGES, Options(language="de_AT"), in_place=True)


def test_a_file_that_somebody_changes_meanwhile_is_not_overwritten(tmp_path):
    path = write(tmp_path / "app.po", "a")

    def change(line):
        path.write_text("# mine\n")
        return ["A"]

    with pytest.raises(Failure, match="was changed by somebody"):
        translated(path, StandIn(change), in_place=True)
    assert path.read_text() == "# mine\n"
    assert os.listdir(tmp_path) == ["app.po"]


def test_a_failure_half_way_leaves_the_old_file(tmp_path):
    path = write(tmp_path / "app.po", "a", "b")
    before = path.read_bytes()

    def fail(line):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        translated(path, StandIn(fail), in_place=True)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["app.po"]


def test_killed_half_way_the_old_file_stays(tmp_path):
    path, begun = write(tmp_path / "app.po", "a", "b"), tmp_path / "begun"
    before = path.read_bytes()
    code = f"""
import sys, time, pathlib
sys.path.insert(0, {str(Path(tiny.__file__).parent)!r})
from standin import SEARCH, StandIn
from pointing.translation.translate import Options, fill, prepare

def wait(line):
    pathlib.Path({str(begun)!r}).touch()
    time.sleep(60)

fill(prepare([pathlib.Path({str(path)!r})], ("en", "fr"), Options(), in_place=True), StandIn(wait), SEARCH)
"""
    process = subprocess.Popen([sys.executable, "-c", code], env=tiny.environment())
    while not begun.exists() and process.poll() is None:
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    assert path.read_bytes() == before
    assert sorted(os.listdir(tmp_path)) == ["app.po", "begun"]


def test_the_file_itself_is_written_in_place_only(tmp_path):
    path = write(tmp_path / "fr.po", "a")
    with pytest.raises(Misuse, match=r"which is read: give another name with -o, or write into .* with --in-place"):
        translated(path, out=path)
    translated(path, in_place=True)
    assert path.read_text() == PO + '#, fuzzy\nmsgid "a"\nmsgstr "A"\n'


def test_links_and_permissions_stay(tmp_path):
    path = write(tmp_path / "real.po", "a")
    path.chmod(0o640)
    (tmp_path / "link.po").symlink_to(path)
    translated(tmp_path / "link.po", in_place=True)
    assert (tmp_path / "link.po").is_symlink()
    assert path.stat().st_mode & 0o777 == 0o640
    assert "#, fuzzy" in path.read_text()


def test_a_page_in_the_place_of_a_file_is_refused(tmp_path):
    path = write(tmp_path / "app.po", "a")
    with pytest.raises(Misuse, match="this would be written over, which is read"):
        prepare([path], LANGUAGES, Options(), html=path, in_place=True)


def test_a_message_with_a_long_line_is_left(tmp_path):
    (summary,) = translated(write(tmp_path / "a.po", "x" * (LONGEST_LINE + 1), "y"))
    assert [result.status for result in summary.results] == ["failed", "filled"]


@pytest.mark.skipif(shutil.which("msgfmt") is None, reason="gettext's tools are not installed")
def test_msgfmt_gives_its_verdict(tmp_path):
    good, bad = tmp_path / "good.po", tmp_path / "bad.po"
    good.write_text(PO + '#, fuzzy, c-format\nmsgid "%s"\nmsgstr "%s"\n')
    bad.write_text(PO + '#, fuzzy, c-format\nmsgid "%s"\nmsgstr "%d"\n')
    assert msgfmt.verdict(good) == "accepted"
    assert msgfmt.verdict(bad).startswith(f"rejected: {bad}:8: format specifications in 'msgid' and 'msgstr'")
    assert msgfmt.verdict(Path("-x.po")).startswith("rejected: ")


@pytest.mark.skipif(shutil.which("msgfmt") is None, reason="gettext's tools are not installed")
def test_what_only_msgfmt_knows_to_be_wrong_is_left(tmp_path):
    path = write(tmp_path / "app.po", "% d files", "% s files", flags="#, c-format\n")
    (summary,) = translated(path, StandIn(lambda line: ["% s fichiers"]))
    assert [result.status for result in summary.results] == ["failed", "filled"]
    assert summary.results[0].reason.startswith("msgfmt: format specifications in 'msgid' and 'msgstr'")
    assert summary.msgfmt == "accepted"


def test_without_msgfmt_that_is_said(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    (summary,) = translated(write(tmp_path / "a.po", "x"))
    assert "msgfmt --check-format: msgfmt not found" in summary.text()


def test_names_of_files_do_not_command_a_terminal(tmp_path):
    path = write(tmp_path / "a\x1b[2J.po", "x", "y")
    (summary,) = translated(path, StandIn(confidence={"x": 0.9, "y": 0.1}.get), Options(min_confidence=0.4))
    assert len(summary.failed) == 1
    assert f"{tmp_path}/a�[2J.po → {tmp_path}/a�[2J.fr.po\n" in summary.text()
    assert "\x1b" not in summary.text()


SURE = {"fine": 0.9, "foreign": 0.31, "doubtful": 0.45}


def test_what_the_model_is_not_sure_enough_of_stays_untranslated_and_is_listed_with_its_number(tmp_path):
    path = write(tmp_path / "app.po", "fine", "foreign", "fine\\nforeign", "doubtful", "%s")
    translator = StandIn(confidence=SURE.get)
    (summary,) = translated(path, translator, Options(min_confidence=0.4), html=tmp_path / "page.html")
    assert [entry.msgstr for entry in polib.pofile(str(tmp_path / "app.fr.po"))] == ["FINE", "", "", "DOUBTFUL", "%s"]
    assert [result.confidence for result in summary.results] == [0.9, 0.31, 0.31, 0.45, None]
    assert [result.review for result in summary.results] == [False, True, True, True, False]
    assert summary.results[2].rejected == ("FINE\nFOREIGN",)
    assert f"{path}:9: left, its confidence is 0.31, less than 0.4" in summary.text()
    assert "3 filled, 0 left as they were, 2 failed, 1 of the filled ones flagged for review" in summary.text()
    units = summary.json()["units"]
    assert (units[1]["confidence"], units[1]["review"], units[1]["rejected"]) == (0.31, True, ["FOREIGN"])
    assert "confidence" not in units[4]
    assert summary.json()["review"] == 1
    page = (tmp_path / "page.html").read_text()
    assert page.count("⚑ please review</em><small>confidence 0.45</small>") == 1
    assert page.count("data-review>") == page.count("⚑ please review</em>") == 1
    assert "<small>confidence 0.90</small>" in page
    assert 'value="review"' in page


def test_without_confidences_nothing_is_said_of_them(tmp_path):
    (summary,) = translated(write(tmp_path / "app.po", "fine"), options=Options(min_confidence=0.4))
    assert summary.results[0].texts == ("FINE",)
    assert "review" not in summary.text()
    assert "confidence" not in summary.json()["units"][0]


@pytest.mark.parametrize("comments", [True, False])
def test_a_flag_is_a_comment_where_comments_are_asked_for(tmp_path, comments):
    path = write(tmp_path / "app.po", "fine", "doubtful")
    options = Options(provenance=comments)
    translated(path, StandIn(confidence=SURE.get), options)
    fine, doubtful = polib.pofile(str(tmp_path / "app.fr.po"))
    assert fine.tcomment == ("pointing: no word was copied" if comments else "")
    assert doubtful.tcomment == ("pointing: please review, confidence 0.45; no word was copied" if comments else "")
    units = '<trans-unit id="1"><source>doubtful</source></trans-unit>'
    body = f'<file original="a" source-language="en" target-language="fr" datatype="x"><body>{units}</body></file>'
    (tmp_path / "a.xlf").write_text(f'<xliff version="1.2">{body}</xliff>')
    translated(tmp_path / "a.xlf", StandIn(confidence=SURE.get), options)
    note = '<note from="pointing">please review, confidence 0.45; no word was copied</note>'
    assert (note in (tmp_path / "a.fr.xlf").read_text()) == comments


def test_a_least_confidence_without_a_calibrated_run_names_the_command(run, tmp_path):
    path = write(tmp_path / "app.po", "a")
    for command in (["translate", run, path, "-o", tmp_path / "x.po"], ["generate", run, path]):
        code, text = tiny.said(*command, "--min-confidence", "0.5")
        assert (code, text.count("\n")) == (2, 1)
        assert "`pointing calibrate RUN`" in text
    assert not (tmp_path / "x.po").exists()
