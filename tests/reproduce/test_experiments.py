"""The paper's experiments on a tiny corpus: what is trained, what is kept, what is told."""

import json
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import tiny
import torch

from pointing.errors import Misuse
from pointing.evaluation import evaluate as evaluation
from pointing.model.run import load_run
from pointing.reproduce.experiments import EXPERIMENTS, LEARNING_CURVES, MODELS, SUMMARIZATION_ENTITIES, TRANSLATION
from pointing.reproduce.outputs import OutputOrigin, system_with_outputs
from pointing.reproduce.page import find_results, html_page, report_markdown, write_report
from pointing.reproduce.pipeline import recipes_with_data, reproduce_experiment
from pointing.reproduce.report import _escaped, panels
from pointing.reproduce.results import read_results
from pointing.reproduce.runs import choose_rows, plan_runs
from pointing.settings_file import read_config
from pointing.text.vocabulary import UNK

ROOT = Path(__file__).parent.parent.parent
ROWS = ("softmax", "softmax-replaced=1", "pointer-softmax")
KEYS = [row.partition("=")[0] for row in ROWS]


def recipe(folder, *changes):
    test = {"source": str(folder / "dev.source"), "target": str(folder / "dev.target")}
    training = {"updates": 6, "validate_every": 3, "score": "bleu"}
    return tiny.write(folder, {"data": {"test": test}, "training": training}, *changes)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Two seeds of three rows, by two processes."""
    folder = tmp_path_factory.mktemp("made")
    out = folder / "out"
    also = {"again": read_config(recipe(folder)).data.dev}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(ROOT))
        where = reproduce_experiment(
            TRANSLATION, folder / "tiny.yaml", out, "the command", rows=ROWS, seeds=2, also=also, workers=2
        )
    return folder, out, where


def test_every_row_and_seed_is_trained_once(made):
    _, out, _ = made
    assert {path.parent.name for path in out.rglob("model.safetensors")} == {
        *("softmax-1", "softmax-2", "pointer-softmax-1", "pointer-softmax-2")
    }
    assert len(list((out / "tiny/corpora").iterdir())) == 1
    assert "update 6: dev NLL" in (out / "tiny/softmax-1.log").read_text()


def test_results_have_every_score_curve_and_time(made):
    told = read_results(made[2])
    assert [(row["key"], row["seeds"]) for row in told["rows"]] == list(zip(KEYS, (2, 1, 2), strict=True))
    assert set(told["scores"]) == {next(iter(told["scores"])), "again"}
    for seeds in told["scores"].values():
        assert set(seeds) == {"1", "2"}
        names = [row.name for row in TRANSLATION.rows if row.key in KEYS]
        assert [system["name"] for system in seeds["1"][0]["systems"]] == names
        assert [system["name"] for system in seeds["2"][0]["systems"]] == [names[0], names[2]]
    for run in told["runs"].values():
        assert run["updates"] == 6
        assert [point["update"] for point in run["curve"]] == [3, 6]
        assert all({"nll", "comparable_nll", "bleu"} <= point.keys() for point in run["curve"])
    (corpus,) = told["corpora"].values()
    assert corpus["splits"]["train"]["pointers_per_100"] == 100  # a name in every pair


def test_the_same_text_scores_the_same_under_two_names(made):
    first, second = read_results(made[2])["scores"].values()
    for seed in ("1", "2"):
        one, other = (group[0]["systems"] for group in (first[seed], second[seed]))
        assert [system["scores"] for system in one] == [system["scores"] for system in other]


def test_made_again_nothing_is_trained_or_generated(made, monkeypatch):
    folder, out, where = made
    before = read_results(where)

    def never(*_):
        raise AssertionError("this was there already")

    monkeypatch.setattr("pointing.training.loop.train", never)
    monkeypatch.setattr(evaluation, "generate", never)
    (where / "examples.json").unlink()
    also = {"again": read_config(folder / "tiny.yaml").data.dev}
    again = reproduce_experiment(TRANSLATION, folder / "tiny.yaml", out, "the command", rows=ROWS, seeds=2, also=also)
    assert read_results(again) == before
    assert (where / "examples.json").exists()


def test_a_row_that_is_added_is_the_only_one_to_search(made, monkeypatch):
    folder, out, where = made
    before = read_results(where)
    also = {"again": read_config(folder / "tiny.yaml").data.dev}
    searched, generate = [], evaluation.generate

    def telling(system, *rest):
        searched.append(system.name)
        return generate(system, *rest)

    monkeypatch.setattr(evaluation, "generate", telling)
    reproduce_experiment(
        TRANSLATION, folder / "tiny.yaml", out, "more", rows=[*ROWS, "pointer-softmax-replaced=1"], also=also
    )
    assert searched == ["NMT + PS, UNK replaced by attention"] * 2  # on both test sets
    for test, seeds in read_results(where)["scores"].items():
        ours, theirs = (report["1"][0]["systems"][:3] for report in (seeds, before["scores"][test]))
        assert ours == theirs
    reproduce_experiment(TRANSLATION, folder / "tiny.yaml", out, "the command", rows=ROWS, seeds=2, also=also)
    assert read_results(where) == before


def test_another_experiment_on_the_recipe_shares_its_runs(made, monkeypatch):
    folder, out, _ = made
    trained = []
    monkeypatch.setattr("pointing.training.loop.train", lambda *run: trained.append(run))
    rows = ("softmax", "pointer-softmax")
    where = reproduce_experiment(LEARNING_CURVES, folder / "tiny.yaml", out, "curves", rows=rows, seeds=2)
    assert trained == []
    text = (where / "report.md").read_text()
    assert "| *the paper: NMT* | 65.26 |" in text
    assert "### Training" in text


def test_the_report_has_the_papers_numbers_ours_and_the_command(made):
    text = (made[2] / "report.md").read_text()
    assert "| *the paper: NMT* | 20.19 |" in text
    assert "| *the paper: NMT + PS* | 23.76 |" in text
    assert re.search(
        r"\| NMT, UNK replaced by attention \|.*\| [+-]\d+\.\d\d \[\S+ \S+, p \S+ \|  \|", text
    )  # one seed
    assert "BLEU against replacing UNK" in text
    size = r"[+-]\d+\.\d\d"
    two, one = rf"{size} of {size} / {size}, p \S+ / \S+", rf"{size} \[\S+ \S+, p \S+"
    assert re.search(rf"\| NMT \+ PS \| \S+ ± \S+ \|.*\| {two} \| {one} \|", text)
    paper = r"20.19 → 23.76 \(\+3.57\)"
    assert re.search(rf"\| English → French: tiny, NMT \+ PS \| \S+ \| BLEU \| {paper} \| \S+ → \S+ ", text)
    assert text.count("the paper: NMT*") == 1  # not beside other test sets
    assert "`the command`" in text
    html = (made[2] / "report.html").read_text()
    assert "<table>" in html
    assert html.count("data:image/png;base64,") == 1
    assert "curves.png" not in html


def test_one_page_of_all_results(made, tmp_path):
    folders = find_results(made[1])
    written, html = write_report(folders, tmp_path / "page")
    assert "English → French: tiny" in written.read_text()
    assert html.stat().st_size > 10_000
    ours = [read_results(folder)["experiment"] for folder in find_results(ROOT / "results")]
    assert (ours[0], ours[-1]) == ("translation", "rarest-word")


def test_a_page_escapes_what_a_corpus_says():
    html = html_page(_escaped("<script>alert(1)</script> | a_b_c *d* \\ `e` &amp; [f](g)"), {})
    assert "<script>alert" not in html
    assert "&lt;script&gt;alert(1)&lt;/script&gt; | a_b_c *d* \\ `e` &amp;amp; [f](g)" in html


def test_examples_are_at_fixed_quantiles_and_mark_what_was_copied(made):
    told = json.loads((made[2] / "examples.json").read_text())
    assert told["seed"] == 1
    for one in told["examples"]:
        assert (
            "".join(text for text, _ in one["source"])
            == (made[0] / "dev.source").read_text().splitlines()[one["line"] - 1]
        )
        copied = {text for text, used in one["source"] if used}
        assert copied == {text for text, origin in one["outputs"]["NMT + PS"] if origin == "copied"}
    scores = [one["chrF2"] for one in told["examples"]]
    assert scores == sorted(scores, reverse=True)


def test_a_killed_experiment_goes_on_to_the_same_result(made, tmp_path):
    folder = tmp_path / "killed"
    path = recipe(folder)
    for name in ("train", "dev"):
        for side in ("source", "target"):
            assert (folder / f"{name}.{side}").read_text() == (made[0] / f"{name}.{side}").read_text()
    asked = ["reproduce", "translation", path, "--out", folder / "out"]
    asked += [part for row in ROWS for part in ("--row", row)]
    process = subprocess.Popen(
        tiny.command(*asked), cwd=folder, env=tiny.environment(), stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL
    )
    while not list(folder.rglob("config.yaml")) and process.poll() is None:
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    done = tiny.pointing(*asked, folder=folder)
    assert done.returncode == 0, done.stderr
    ours = read_results(folder / "out/tiny/translation")["runs"]
    theirs = read_results(made[2])["runs"]
    for key, run in ours.items():
        assert [p["nll"] for p in run["curve"]] == [p["nll"] for p in theirs[key]["curve"]]


def test_rows_that_do_not_exist_or_miss_their_run_are_named():
    with pytest.raises(Misuse, match="there is no row sofmax in translation; there are softmax, "):
        choose_rows(TRANSLATION, ["sofmax"])
    with pytest.raises(Misuse, match="needs the runs of softmax: ask for --row softmax too"):
        choose_rows(TRANSLATION, ["softmax-replaced"])
    with pytest.raises(Misuse, match="needs the runs of papers-pointers: ask for --row papers-pointers too"):
        choose_rows(TRANSLATION, ["softmax", "softmax-translated"])
    assert [len(group) for group in choose_rows(SUMMARIZATION_ENTITIES)] == [2, 2]


def test_a_row_is_translated_by_the_dictionary_of_another_ones_corpus(made):
    folder, out, _ = made
    rows = [row for row in TRANSLATION.rows if row.key in ("softmax", "softmax-translated", "papers-pointers")]
    planned = plan_runs(rows, folder / "tiny.yaml", {}, out / "tiny")
    corpus = planned["papers-pointers", 1].corpus
    plain = OutputOrigin.of(rows[1], 1, planned)
    assert (plain.planned, plain.dictionary) == (planned["softmax", 1], None)  # nothing was induced
    corpus.mkdir()
    files = planned["softmax", 1].config.data.dev
    names = set(re.findall(r"name\d+", files.source.read_text()))
    (corpus / "dictionary.tsv").write_text("".join(f"{name}\tnom{name[4:]}\n" for name in names))
    origin = OutputOrigin.of(rows[1], 1, planned)
    assert len(origin.identity()) == 1 + len(plain.identity())  # so what was made without it is not taken for its own
    run = load_run(origin.planned.folder)
    with torch.no_grad():
        run.model.output.shortlist.bias[UNK] = 50.0
    replaced, translated = (system_with_outputs(one, run, files, out / "translated").outputs for one in (plain, origin))
    for one, other in zip(replaced, translated, strict=True):
        assert [re.sub("^name", "nom", token.text) for token in one.tokens] == [token.text for token in other.tokens]
    assert any(token.origin == "translated" for output in translated for token in output.tokens)


def test_rows_may_have_more_seeds_than_others():
    ((first, second, third),) = choose_rows(TRANSLATION, ["relu", "softmax=3", "pointer-softmax=2"])
    assert [first.seeds, second.seeds, third.seeds] == [3, 2, 1]
    planned = plan_runs([first, third], ROOT / "recipes/debian-en-fr.yaml", {}, Path("out"))
    assert list(planned) == [("softmax", 1), ("softmax", 2), ("softmax", 3), ("relu", 1)]
    assert [row.seeds for row in choose_rows(TRANSLATION, ["softmax", "relu=1"], seeds=2)[0]] == [2, 1]
    for rows in (["softmax", "relu=2"], ["softmax=2", "softmax-replaced=3"]):
        with pytest.raises(Misuse, match="needs the runs of softmax: ask for --row softmax=N with N at least"):
            choose_rows(TRANSLATION, rows)
    with pytest.raises(Misuse, match="after the = comes how many seeds"):
        choose_rows(TRANSLATION, ["softmax=0"])


def test_a_given_dictionary_is_a_row_only_where_one_is_given(tmp_path):
    keys = [row.key for group in choose_rows(TRANSLATION) for row in group]
    assert "dictionary-given" not in keys
    keys = [row.key for group in choose_rows(TRANSLATION, dictionary=tmp_path) for row in group]
    assert "dictionary-given" in keys


def test_every_row_of_every_experiment_is_a_change_that_the_recipes_allow(tmp_path):
    for experiment in EXPERIMENTS.values():
        for name in experiment.recipes:
            recipe, words = ROOT / f"recipes/{name}.yaml", tmp_path / "words.tsv"
            planned = plan_runs(experiment.rows, recipe, experiment.changes, tmp_path, words)
            assert {run.config.text.forms for run in planned.values()} == {experiment is MODELS}  # else lower-cased
            assert len(planned) == sum(row.shared_run is None for row in experiment.rows)
            assert len({run.folder for run in planned.values()}) == len(planned)


def test_bad_input_is_told_in_one_line(tmp_path):
    path = recipe(tmp_path)
    for asked, message in (
        (["translation", tmp_path / "none.yaml"], "there is no such file"),
        (["translation", path, "--also", "x"], "NAME=SOURCE,REFERENCE"),
        (["translation", path, "--also", f"x={tmp_path}/a,{tmp_path}/b"], "no such file"),
        (["translation", path, "--row", "nmt"], "there is no row nmt"),
        (["report", tmp_path], "there are no results"),
    ):
        code, error = tiny.said("reproduce", *asked)
        assert (code, error.count("\n")) == (2, 1), error
        assert message in error


def test_what_an_experiment_cannot_use_is_refused_before_anything_is_trained(made, tmp_path):
    folder = made[0]
    dev = read_config(folder / "tiny.yaml").data.dev
    asked = {"recipe": folder / "tiny.yaml", "out": tmp_path / "out", "command": ""}
    with pytest.raises(Misuse, match="the row dictionary-given needs word pairs: give --dictionary too"):
        reproduce_experiment(TRANSLATION, **asked, rows=["softmax", "dictionary-given"])
    with pytest.raises(Misuse, match="no row of learning-curves takes word pairs: leave out --dictionary"):
        reproduce_experiment(LEARNING_CURVES, **asked, dictionary=dev.source)
    with pytest.raises(Misuse, match="learning-curves tests nothing: leave out --also"):
        reproduce_experiment(LEARNING_CURVES, **asked, also={"dev": dev})
    with pytest.raises(Misuse, match="summarization-entities needs a tag for every token"):
        tags = {f"data.{part}.{side}_tags": "x" for part in ("train", "dev", "test") for side in ("source", "target")}
        reproduce_experiment(SUMMARIZATION_ENTITIES, **asked, changes=tags, also={"dev": dev})
    assert not (tmp_path / "out").exists()


def test_runs_of_other_text_are_not_taken_for_these(made, tmp_path):
    folder = tmp_path / "changed"
    shutil.copytree(made[0], folder)
    recipe(folder)
    asked = {"recipe": folder / "tiny.yaml", "out": folder / "out", "command": "", "rows": ROWS, "workers": 1}
    for run in (folder / "out/tiny").glob("*/config.yaml"):  # only what the text says is to be another
        run.write_text(run.read_text().replace(str(made[0]), str(folder)))
    with (folder / "train.source").open("a") as source, (folder / "train.target").open("a") as target:
        source.write("one more line\n")
        target.write("une ligne de plus\n")
    with pytest.raises(
        Misuse, match=r"softmax-1/training\.safetensors: this run was made from another prepared corpus"
    ):
        reproduce_experiment(TRANSLATION, **asked)


def test_subwords_have_no_nll_that_compares(tmp_path):
    path = recipe(tmp_path, {"text": {"subwords": "bpe"}, "vocabulary": {"source": 60, "target": 60}})
    asked = {"recipe": path, "out": tmp_path / "out", "command": "pieces", "rows": ("softmax", "relu"), "workers": 1}
    text = (reproduce_experiment(LEARNING_CURVES, **asked) / "report.md").read_text()
    assert re.search(r"\| NMT \| \S+ \| – \| \S+ \| \S+ \| – \|", text)
    assert "NLL of the same events |" not in text


def test_kinds_of_models_are_compared_by_the_time_of_one_core(tmp_path):
    pieces = {"text": {"subwords": "bpe"}, "vocabulary": {"source": 60, "target": 60}, "pointers": {"places": "words"}}
    path = recipe(tmp_path, tiny.merged(pieces, {"pointers": {"guidance": 0.3}, "model": {"feed": "source"}}))
    rows = ("pieces", "pieces-aligned")
    where = reproduce_experiment(MODELS, path, tmp_path / "out", "models", rows=rows, workers=1)
    results = read_results(where)
    for key, run in results["runs"].items():
        minutes = [point["core_minutes"] for point in run["curve"]]
        assert 0 < minutes[0] < minutes[1] <= run["core_minutes"] + 0.05, key
    drawn = panels(results)["dev BLEU, greedy"]["GRU, pieces in, words out"]
    minutes = [point["core_minutes"] for point in results["runs"]["pieces-1"]["curve"]]
    assert [[x for x, _ in curve] for curve in drawn] == [minutes]
    text = (where / "report.md").read_text()
    assert "(beyond the paper)" in text
    assert "| updates to the first's best | minutes of one core |" in text


def test_pages_find_their_pictures_and_only_our_results(made, tmp_path):
    folder = tmp_path / "mes résultats, <all>"
    shutil.copytree(made[2], folder / "one")
    (folder / "other").mkdir()
    (folder / "other/results.json").write_text(json.dumps({"systems": []}))
    (folder / "list").mkdir()
    (folder / "list/results.json").write_text("[1]")
    assert find_results(folder) == [folder / "one"]
    _, html = write_report(find_results(folder), tmp_path / "page")
    assert html.read_text().count('src="data:image/png;base64,') == 1


def test_what_is_missing_for_an_experiment_is_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found, missing = recipes_with_data(TRANSLATION, ROOT / "recipes")
    assert found == []
    assert "data/debian/train.en is not there" in missing[0]


def test_docs_results_is_what_the_results_say():
    folders = find_results(ROOT / "results")
    seen = [f"../{folder.relative_to(ROOT).as_posix()}" for folder in folders]
    said = (ROOT / "docs/results.md").read_text(encoding="utf-8")
    assert said == report_markdown(folders, seen), f"run: {sys.executable} -m pointing reproduce report results " + (
        "--markdown docs/results.md"
    )
