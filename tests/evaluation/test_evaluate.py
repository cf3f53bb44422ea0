"""Runs and files, scored against references: through Python and through the real command."""

import json
import sys
from dataclasses import replace

import pytest
import tiny

from pointing.cli import main
from pointing.config import Search
from pointing.errors import Misuse
from pointing.evaluation.evaluate import System, Terms, TextForm, evaluate, generate, open_systems
from pointing.evaluation.evaluation_set import EvaluationSet
from pointing.evaluation.significance import Resampling
from pointing.model.run import load_run
from pointing.text.protected import Protector
from pointing.text.vocabulary import UNK, Vocabulary

FEW = {"resampling": Resampling(resamples=20, trials=20)}
GREEDY = Search(beam=1, max_length=12)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two runs on one corpus, its dev part, and a file of hypotheses that are the references but for the last."""
    folder = tmp_path_factory.mktemp("evaluation")
    tiny.untrained(folder, {"text": {"digits": "fold"}})
    tiny.untrained(folder, {"text": {"digits": "fold"}, "model": {"output": "softmax"}}, name="softmax", seed=1)
    right = (folder / "dev.target").read_text().splitlines()
    (folder / "nearly").write_text("".join(f"{text}\n" for text in [*right[:-1], "wrong"]))
    return folder


def dev(folder):
    return EvaluationSet.read(folder / "dev.source", [folder / "dev.target"])


def score(report, name, system=0):
    return report.json()["systems"][system]["scores"][name]["score"]


def names(report, system=0):
    return set(report.json()["systems"][system]["scores"])


def test_a_run_a_softmax_and_a_file_side_by_side(folder):
    systems = open_systems([folder / "run", folder / "softmax", folder / "nearly"], GREEDY)
    report = evaluate(systems, dev(folder), **FEW)
    assert [system.name for system in report.systems] == ["run", "softmax", "nearly"]
    assert report.table().header == ["", "run", "softmax", "nearly"]
    assert score(report, "exact match", 2) == score(report, "exact match (tokens)", 2) == 95
    assert report.differences[1]["exact match"].significant
    assert score(report, "words invented") == score(report, "words invented", 1) == score(report, "UNKs left") == 0
    assert names(report) - names(report, 1) == {
        "switch accuracy", "pointing precision", "pointing recall", "calibration error", "pointer accuracy",
    }  # fmt: skip
    assert names(report, 1) - names(report, 2) == {
        "copies right", "copied words per 100 outputs", "copied share of words",
    }  # fmt: skip
    assert score(report, "copied words per 100 outputs", 1) == 0
    about = report.json()
    assert about["form"] == about["copy_form"] == "nfc,lower,digits"
    assert about["training"] == str(folder / "train.target")
    assert about["systems"][0]["search"]["beam"] == 1
    assert about["systems"][0]["update"] == 7
    assert "search" not in about["systems"][2]
    other = ("forced:", "text:delivered")
    assert all("form:nfc,lower,digits" in line or any(how in line for how in other) for line in report.signatures())


def test_outputs_that_are_there_already_are_scored_as_those_generated_here(folder):
    run = load_run(folder / "run")
    source = (folder / "dev.source").read_text().splitlines()
    target = (folder / "dev.target").read_text().splitlines()
    outputs = generate(System("x", run, GREEDY), source)
    test = EvaluationSet.read(source, [target])
    made = evaluate([System("x", run, GREEDY)], test, **FEW).json()["systems"][0]
    known = evaluate([System("x", run, GREEDY, outputs)], test, **FEW).json()["systems"][0]
    assert len(outputs) == len(source)
    assert known["scores"] == made["scores"]
    assert known["reliability"] == made["reliability"]


def test_one_run_searched_in_two_ways(folder):
    run = load_run(folder / "softmax")
    run.model.output.shortlist.bias.data[UNK] += 4  # of 20 words each is said now and then
    settings = {"beam": 1, "max_length": 12}
    systems = [
        System("unknown words stay", run, Search(**settings, allow_unk=True)),
        System("are replaced", run, Search(**settings, unk_replace=True)),
    ]
    report = evaluate(systems, dev(folder), **FEW)
    assert score(report, "UNKs left") > 0
    assert score(report, "UNKs left", 1) == 0
    assert score(report, "copied words per 100 outputs", 1) > 0


def test_raw_leaves_all_text_as_it_is(folder, tmp_path):
    run = System("x", load_run(folder / "run"), outputs=["NAME1 a", "b"])
    test = EvaluationSet.read(["name1 a", "b"], [["name2 A", "b"]])
    folded, raw = evaluate([run], test, **FEW), evaluate([run], test, form=TextForm(raw=True), **FEW)
    assert score(folded, "exact match (tokens)") == 100
    assert score(raw, "exact match (tokens)") == 50
    assert score(folded, "exact match") == score(raw, "exact match") == 50
    assert raw.json()["form"] == raw.json()["copy_form"] == "as it is"
    assert score(folded, "out-of-shortlist recall") == 100  # name# is no word of the shortlist, a and b are
    assert score(raw, "out-of-shortlist recall") == 0
    assert score(raw, "words invented") == 0  # what is known is known in any form
    lines = [line for line in raw.signatures() if line.startswith("out-of-shortlist-recall")]
    assert ["|form:" in line for line in lines] == [False]
    assert lines[0].endswith("|tokens:whitespace|known-as:nfc,lower,digits")


def test_raw_takes_the_words_of_the_text_that_is_delivered(folder):
    run = load_run(folder / "run")
    source = (folder / "dev.source").read_text().splitlines()[:1]
    (made,) = generate(System("x", run, GREEDY), source)
    joined = replace(made, text=made.text.replace(" ", ""))  # as a wrong detokenizer would do it
    test = EvaluationSet.read(source, [[made.tokenized]])
    system = System("x", run, outputs=[joined])
    plain, raw = evaluate([system], test, **FEW), evaluate([system], test, form=TextForm(raw=True), **FEW)
    assert len(made.tokens) > 1
    assert score(plain, "exact match (tokens)") == 100  # the model's own words
    assert score(raw, "exact match (tokens)") == score(plain, "exact match") == score(raw, "exact match") == 0


def test_terms_are_found_in_the_source_as_the_model_reads_it_also_if_the_rest_is_raw(folder, tmp_path):
    (tmp_path / "terms.tsv").write_text("windows 95\tfenêtres 95\n")
    terms = Terms(tmp_path / "terms.tsv", None)
    system = System("x", load_run(folder / "run"), outputs=["a Fenêtres 95"])  # digits are folded in its settings
    test = EvaluationSet.read(["a Windows 95"], [["x"]])
    for form in (TextForm(), TextForm(raw=True)):
        assert score(evaluate([system], test, form=form, terms=terms, **FEW), "glossary terms used") == 100


def test_the_form_of_the_comparison_is_said_in_words(folder):
    run = load_run(folder / "run")
    forms = tiny.with_settings(run, text=run.config.text.model_copy(update={"forms": True}))
    test = EvaluationSet.read(["a"], [["A"]])
    for system, form, sentence in [
        (run, TextForm(), "text is compared in the form nfc,lower,digits, but for exact match: that is of the text as"),
        (forms, TextForm(), "text is compared as it is delivered, the words of copy measures in the form nfc,lower,"),
        (forms, TextForm(raw=True), "text is compared as it is delivered"),
    ]:
        report = evaluate([System("x", system, outputs=["a"])], test, form=form, **FEW)
        assert report.forms()[0].startswith(sentence)
        assert f"- {sentence}" in report.markdown()


def test_files_alone():
    test = EvaluationSet.read(None, [["The cat's 12 ."]])
    (plain,) = [System("f", outputs=["the cat 's 12."])]
    report = evaluate([plain], test, **FEW)
    assert score(report, "exact match (tokens)") == 0
    assert "out-of-shortlist recall" not in names(report)
    assert report.notes == ["no copy measures: they take a source, and a run or a vocabulary"]
    lower, spaces = TextForm(lowercase=True), TextForm(lowercase=True, tokenized=True)
    assert score(evaluate([plain], test, form=lower, **FEW), "exact match (tokens)") == 100  # the cat 's 12 .
    assert score(evaluate([plain], test, form=spaces, **FEW), "exact match (tokens)") == 0


def test_files_with_a_vocabulary_and_training_text(tmp_path):
    (tmp_path / "train").write_text("a a b\n")
    report = evaluate(
        [System("f", outputs=["a zoe UNK q"])],
        EvaluationSet.read(["x zoe"], [["a zoe b"]]),
        form=TextForm(unk="UNK"),
        vocabulary=Vocabulary(["a", "b"], [2, 1]),
        training=tmp_path / "train",
        **FEW,
    )
    assert score(report, "out-of-shortlist recall") == 100
    assert score(report, "words invented") == score(report, "UNKs left") == 1
    assert score(report, "recall of words seen 1–9 times") == 50
    assert score(report, "recall of words seen 0 times") == 100
    assert report.notes == []


def test_protected_spans_of_files_and_of_runs(folder):
    test = EvaluationSet.read(["open %s", "a <b>b</b>"], [["ouvrir %s", "un <b>b</b>"]])
    right, wrong = System("right", outputs=["%s", "<b> </b>"]), System("wrong", outputs=["% s", "<b>b</b>"])
    report = evaluate([right, wrong], test, protector=Protector.named("software"), **FEW)
    assert [score(report, "lines with spans intact", system) for system in (0, 1)] == [100, 50]
    assert score(report, "spans lost", 1) == 1
    assert "lines with spans intact" not in names(evaluate([right], test, **FEW))
    run = load_run(folder / "run")
    protecting = tiny.with_settings(run, text=run.config.text.model_copy(update={"protect": "web"}))
    report = evaluate([System("x", protecting, outputs=["", "<b></b>"])], test, **FEW)
    assert score(report, "lines with spans intact") == 100  # %s is nothing on the web
    with pytest.raises(Misuse, match="those of the source: give --source"):
        evaluate([right], EvaluationSet.read(None, [["a", "b"]]), protector=Protector.named("web"))


def test_a_run_whose_training_text_is_gone_says_so(tmp_path):
    run = tiny.untrained(tmp_path)
    recounted = evaluate(open_systems([run], GREEDY), dev(tmp_path), training=tmp_path / "train.target", **FEW)
    (tmp_path / "train.target").unlink()
    report = evaluate(open_systems([run], GREEDY), dev(tmp_path), **FEW)
    assert report.json()["systems"][0]["scores"] == recounted.json()["systems"][0]["scores"]  # the run has kept them
    (run / "training-words.tsv").unlink()
    report = evaluate(open_systems([run], GREEDY), dev(tmp_path), **FEW)
    assert not any(name.startswith("recall of words seen") for name in names(report))
    assert "train.target is not there" in report.notes[0]


def test_lines_of_every_kind_are_scored(folder, tmp_path):
    source = ["", "a " * 300, "name1\x00 a", "\u2028", "👩‍👩‍👧 a", "a"]
    (tmp_path / "s").write_bytes("\n".join(source).encode() + b"\xff\n")
    (tmp_path / "r").write_text("A\n" * 6)
    test = EvaluationSet.read(tmp_path / "s", [tmp_path / "r"])
    report = evaluate(open_systems([folder / "run"], GREEDY), test, **FEW)
    report.write(tmp_path / "out")
    assert (tmp_path / "out" / "run.txt").read_bytes().count(b"\n") == 6
    assert report.notes[0] == "run: source line 2: 300 tokens, cut after 200 (2 such lines)"
    assert "the switch is measured on 2 of 6 pairs" in report.notes[1]
    json.dumps(report.json(), allow_nan=False)


def test_names_are_as_short_as_they_can_be(folder, tmp_path):
    (tmp_path / "nearly").write_text("x\n")
    paths = [folder / "nearly", tmp_path / "nearly", tmp_path / "nearly"]
    assert [system.name for system in open_systems(paths)] == [str(paths[0]), str(paths[1]), f"{paths[1]} (3)"]


def test_runs_of_different_text_settings_are_refused(folder, tmp_path):
    other = tiny.untrained(tmp_path, {"text": {"lowercase": False, "digits": "fold"}})
    systems = open_systems([folder / "run", other])
    with pytest.raises(Misuse, match=r"run was trained with text.lowercase True, .*run with False"):
        evaluate(systems, dev(folder))


def with_entities(run, **more):
    return tiny.with_settings(run, pointers=run.config.pointers.model_copy(update={"policy": "entities", **more}))


def test_entities_that_keep_their_words_need_no_tags_to_generate(folder):
    run = with_entities(load_run(folder / "run"), anonymize=False)
    report = evaluate([System("x", run, GREEDY)], EvaluationSet.read(["a name1"], [["A name1"]]), **FEW)
    assert "copies right" in names(report)
    assert "switch accuracy" not in names(report)  # what should have been chosen, only tags can say
    (folder / "tags").write_text("a￨O name1￨B\n")
    test = EvaluationSet.read(["a name1"], [["a name1"]], folder / "tags", folder / "tags")
    report = evaluate([System("x", run, GREEDY)], test, **FEW)
    assert "switch accuracy" in names(report)
    assert any(line.startswith("out-of-shortlist-recall") and "|tokens:tags|" in line for line in report.signatures())


def test_entities_need_their_tags(folder):
    run = with_entities(load_run(folder / "run"))
    with pytest.raises(Misuse, match="the source needs tags too"):
        evaluate([System("x", run)], EvaluationSet.read(["a"], [["A"]]))
    for name, tags, steps in (("t", "a￨O name1￨B\n", True), ("none", None, False)):
        path = None
        if tags is not None:
            path = folder / name
            path.write_text(tags)
        system = System("x", run, GREEDY, None if tags else ["A"])
        report = evaluate([system], EvaluationSet.read(["a name1"], [["a name1"]], path, path), **FEW)
        assert ("switch accuracy" in names(report)) is steps
    with pytest.raises(Misuse, match=r"t: tags of 1 lines, but there are 2 examples"):
        EvaluationSet.read(["a", "b"], [["A", "B"]], source_tags=folder / "t")


def test_the_words_of_references_are_split_as_tags_are_only_for_runs_with_entities(folder):
    run = load_run(folder / "run")
    (folder / "tags").write_text("wo￨O n't￨O\n")
    test = EvaluationSet.read(["a"], [["won't"]], reference_tags=folder / "tags")
    systems = [System("entities", with_entities(run), outputs=["wo n't"]), System("words", run, outputs=["wo n't"])]
    report = evaluate(systems, test, **FEW)
    assert score(report, "exact match (tokens)") == 100
    assert score(report, "exact match (tokens)", 1) == 0


def test_the_training_text_of_a_run_with_entities_is_split_as_its_tags_are(folder, tmp_path):
    for name, text in (("text", "won't\n"), ("same", "won't\n"), ("tags", "wo￨O n't￨O\n")):
        (tmp_path / name).write_text(text)
    run = load_run(folder / "run")
    names = {"source": "text", "target": "text", "source_tags": "tags", "target_tags": "tags"}
    files = run.config.data.train.model_copy(update={key: tmp_path / name for key, name in names.items()})
    run = tiny.with_settings(run, data=run.config.data.model_copy(update={"train": files}))
    test = EvaluationSet.read(["a"], [["wo n't"]])
    for system, training, seen in (
        (with_entities(run), None, 100),  # wo and n't are words of the training text
        (with_entities(run), tmp_path / "same", None),  # won't is: the tags are of the run's own file
        (run, None, None),
    ):
        report = evaluate([System("x", system, outputs=["wo n't"])], test, training=training, **FEW)
        assert score(report, "recall of words seen 1–9 times") == seen


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"form": TextForm(lowercase=True)}, "its own text settings count"),
        ({"form": TextForm(tokenized=True)}, "its own text settings count"),
        ({"source": None}, "give --source"),
        ({"references": []}, "at least one reference"),
        ({"systems": []}, "a run or a file"),
        ({"references": [["A"]]}, r"dev.source: 20 lines, but reference 1 has 1: line n of both"),
        ({"references": [[]]}, "reference 1: this is empty"),
    ],
)
def test_misuse_is_told(folder, more, message):
    given = {"systems": [System("x", load_run(folder / "run"))], "source": folder / "dev.source"}
    given |= {"references": [folder / "dev.target"]} | more
    with pytest.raises(Misuse, match=message):
        test = EvaluationSet.read(given.pop("source"), given.pop("references"))
        evaluate(given.pop("systems"), test, **given)


# the command


def test_the_command_prints_a_table_and_writes_files(folder, tmp_path):
    arguments = ["run", "nearly", "--source", "dev.source", "--reference", "dev.target", "--reference", "nearly"]
    result = tiny.pointing(
        "evaluate", *arguments, "--beam", 2, "--set", "max_length=9", "--out", tmp_path / "o", folder=folder
    )
    assert result.returncode == 0, result.stderr
    for part in (
        "20 examples",
        "|  | run | nearly |",
        "| exact match |",
        "100.0 [100.0, 100.0] *",
        "minus run",
        "nrefs:2",
    ):
        assert part in result.stdout
    about = json.loads((tmp_path / "o" / "results.json").read_text())
    assert about["systems"][0]["search"]["beam"] == 2
    assert about["systems"][0]["search"]["max_length"] == 9
    assert about["references"] == ["dev.target", "nearly"]
    assert (tmp_path / "o" / "run.txt").read_bytes().count(b"\n") == 20
    assert not (tmp_path / "o" / "nearly.txt").exists()


def test_the_commands_json_is_all_that_it_prints(folder):
    result = tiny.pointing("evaluate", "nearly", "--reference", "dev.target", "--json", "--lowercase", folder=folder)
    assert json.loads(result.stdout)["systems"][0]["scores"]["exact match"]["score"] == 95
    assert result.stderr == ""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nothing", "--reference", "dev.target"], "there is no run in nothing, and no file of outputs with that name"),
        (["nearly", "--reference", "nothing"], "nothing: there is no such file"),
        (["prepared-run", "--reference", "dev.target"], "there is no run in prepared-run: it is a prepared corpus"),
        (["nearly"], "files of outputs are compared with references: give --reference"),
        (["run", "--source", "dev.source"], "outputs are compared with references: give --reference, too"),
        (["run", "--split", "dev", "--reference", "dev.target"], "leave it out, or --source and --reference"),
        (["run", "--split", "train"], "--split train: there are dev and test"),
        (["run", "--split", "test"], "run: the data of this run have no test part: give --source and --reference"),
        (["nearly", "--reference", "train.target"], "nearly: 20 lines, but train.target has 200"),
        (["nearly", "--reference", "empty"], "empty: this is empty"),
        (["empty", "--reference", "dev.target"], "empty: this is empty"),
        (["nearly", "--reference", "latin"], "latin:2: not UTF-8 (byte 4 of the line)"),
        (["run", "--reference", "dev.target"], "give --source"),
        (["run", "--reference", "dev.target", "--set", "beams=3"], "did you mean beam?"),
        (["nearly", "--reference", "dev.target", "--protect", "colour"], "no kind 'colour'; there are: key, url"),
        (["nearly", "--reference", "dev.target", "--out", "nearly"], "nearly: this is a file"),
        (["nearly", "--reference", "dev.target", "--vocabulary", "nearly"], "nearly:1: not a word, a tab"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(folder, arguments, message, monkeypatch, capsys):
    (folder / "empty").write_text("")
    (folder / "latin").write_bytes(b"x\ncaf\xe9\n")
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "argv", ["pointing", "evaluate", *arguments])
    with pytest.raises(SystemExit) as stopped:
        main()
    printed = capsys.readouterr().err
    assert stopped.value.code == 2
    assert message in printed
    assert len(printed.splitlines()) == 1
