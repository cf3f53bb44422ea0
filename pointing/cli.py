"""The command line: parse, call, print; nothing else. Heavy imports wait until a verb needs them."""

from __future__ import annotations

import json
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import typer

from pointing import __version__
from pointing.errors import Misuse
from pointing.evaluation.command import calibrate, evaluate
from pointing.init.command import init
from pointing.reproduce.command import app as reproduce
from pointing.server.command import serve
from pointing.sharing.command import export
from pointing.system.program import program
from pointing.system.quick_start import quick_start
from pointing.system.terminal import ending
from pointing.translation.command import translate

app = typer.Typer(
    help="Sequence-to-sequence models that copy the words they do not know.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
data = typer.Typer(help="Bring a public corpus as plain parallel text.", no_args_is_help=True)
app.add_typer(data, name="data")
app.add_typer(reproduce, name="reproduce")
Out = Annotated[Path, typer.Option(help="Folder for the files.")]
From = Annotated[Path | None, typer.Option("--from", help="Begin with this run's vocabularies and best weights.")]
KeepVocabulary = Annotated[bool, typer.Option("--keep-vocabulary", help="With --from: add no words to its.")]


def _version(wanted: bool) -> None:
    if wanted:
        print(f"pointing {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder of the pointer softmax's run; the rest stands beside it.")] = Path(
        "runs/demo"
    ),
    updates: Annotated[int, typer.Option(min=3, help="Of each of the two models.")] = 800,
) -> None:
    """Train both models on a generated corpus full of names, and show them names that they have never seen."""
    from rich.console import Console

    from pointing.demo import run_demo
    from pointing.generation.output import show

    table, outputs = run_demo(out, updates)
    table.show()
    console = Console(highlight=False, soft_wrap=True)
    for output in outputs:
        console.print(show(output))
    print(f"\nTry it yourself:\n  echo 'open my.conf with emacs29' | {program()} generate {out} --show")
    print(f"or on a page in your browser:\n  {program()} serve {out} --against {out.parent / f'{out.name}-softmax'}")


app.command()(init)


@app.command()
def prepare(
    config: Annotated[Path, typer.Argument(help="The experiment's YAML file.")],
    changes: Annotated[list[str] | None, typer.Option("--set", help="Change a setting: section.key=value.")] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder of the corpus (default: corpora/ + the file's name).")
    ] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Processes (default: one a core).")] = None,
    show: Annotated[int, typer.Option(min=0, help="Also show the first so many examples that have pointers.")] = 0,
    start: From = None,
    keep_vocabulary: KeepVocabulary = False,
    json_output: Annotated[bool, typer.Option("--json", help="Print the statistics as JSON.")] = False,
) -> None:
    """Text to a prepared corpus: tokens, vocabularies, pointers, statistics.

    Run again with nothing changed, it does nothing.
    """
    from pointing.corpus import statistics
    from pointing.corpus.preparation import prepare as prepare_corpus
    from pointing.settings_file import read_config
    from pointing.system.files import keep_apart
    from pointing.system.progress import say

    folder = out or Path("corpora") / config.stem
    settings = read_config(config, changes or ())
    keep_apart([config], [folder])
    base = None
    if start is not None or keep_vocabulary:
        from pointing.training.start import vocabularies

        base = vocabularies(start, keep_vocabulary)
    corpus, made = prepare_corpus(settings, folder, workers, base)
    for warning in statistics.corpus_warnings(corpus, settings):
        say(f"warning: {warning}")
    if json_output:
        print(json.dumps(statistics.corpus_statistics(corpus, settings.training)))
        return
    for table in statistics.statistics_tables(corpus, settings.training):
        table.show()
    for row in islice(corpus.split("train").rows_with_pointers(len(corpus.lexicon.target)), show):
        print(statistics.show_example(corpus, row))
    print(f"{folder}: {'prepared' if made else 'was prepared already, nothing has changed'}")


@app.command()
def train(
    config: Annotated[
        Path | None,
        typer.Argument(help="YAML file, or your data: CSV, JSONL, PO, … (default: settings of --from, --resume)."),
    ] = None,
    changes: Annotated[list[str] | None, typer.Option("--set", help="Change a setting: section.key=value.")] = None,
    minutes: Annotated[float | None, typer.Option(min=0.1, help="With data: the time for training (30).")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the run's last checkpoint.")] = False,
    start: From = None,
    keep_vocabulary: KeepVocabulary = False,
    out: Annotated[Path | None, typer.Option(help="Folder of the run (default: runs/ + the file's name).")] = None,
    corpus: Annotated[
        Path | None, typer.Option(help="Folder of the prepared corpus (default: corpora/ + the file's name).")
    ] = None,
    json_output: Annotated[bool, typer.Option("--json", help="Print how it ended as JSON.")] = False,
) -> None:
    """Train a model; prepares the corpus first, if that is not done.

    With data in the settings' place, `pointing init` writes settings for them first, unless it has done so before.

    On several processes or machines: torchrun --nproc-per-node N -m pointing train CONFIG. Ctrl-C keeps a checkpoint.
    """
    from pointing.init.initialize import settings_for
    from pointing.settings_file import read_config
    from pointing.training import loop as training
    from pointing.training.start import places

    config = settings_for(config, minutes)
    where = places(config, corpus, out, start, resume)
    settings = read_config(where.settings, changes or ())
    summary = training.train(settings, where.corpus, where.folder, resume, start, keep_vocabulary)
    if summary is not None:
        print(json.dumps(summary) if json_output else training.sentence(summary))


@app.command()
def generate(
    run: Annotated[Path, typer.Argument(help="Folder of a trained run.")],
    files: Annotated[list[Path] | None, typer.Argument(help="Text, plain or .gz; standard input by default.")] = None,
    beam: Annotated[int, typer.Option(min=1, help="Hypotheses kept at every step; 1 is greedy.")] = 5,
    nbest: Annotated[int, typer.Option(min=1, help="Outputs of each line: `line ||| text ||| score`.")] = 1,
    json_output: Annotated[bool, typer.Option("--json", help="A JSON object a line: where each word is from.")] = False,
    show: Annotated[bool, typer.Option("--show", help="Source and output, copied words in colour.")] = False,
    html: Annotated[Path | None, typer.Option(help="Write a page that links copied words to their source.")] = None,
    tokenized: Annotated[bool, typer.Option("--tokenized", help="Print tokens with spaces between.")] = False,
    changes: Annotated[
        list[str] | None, typer.Option("--set", help="Change how it is searched: ranking=marginal, min_length=5, …")
    ] = None,
    tags: Annotated[Path | None, typer.Option(help="Entity tags of the text, for a run with entity pointers.")] = None,
    dictionary: Annotated[Path | None, typer.Option(help="Word pairs: copied words are written as it says.")] = None,
    glossary: Annotated[Path | None, typer.Option(help="TSV of terms and how they are to be written.")] = None,
    keep: Annotated[Path | None, typer.Option(help="Terms that stay as they are, one a line.")] = None,
    glossary_mode: Annotated[str, typer.Option(help="guaranteed: each term once; or encouraged.")] = "guaranteed",
    min_confidence: Annotated[
        float | None, typer.Option(min=0, max=1, help="Below it the source line is kept; see docs/generation.md.")
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1.")] = "auto",
    threads: Annotated[int | None, typer.Option(min=1, max=1024, help="Of the CPU.")] = None,
) -> None:
    """Lines in, lines out, in order: an output for each line, and of each of its words where it came from."""
    with quick_start():
        from pointing.config import Search, checked
        from pointing.generation.command import Kind, print_outputs
        from pointing.generation.glossary import parse_mode
        from pointing.settings_file import parse_changes

    settings = checked(Search, {"beam": beam, "nbest": nbest, **parse_changes(changes or ())})
    if json_output + show + tokenized > 1:
        raise Misuse("--json, --show and --tokenized are three ways to print: choose one")
    kind: Kind = "json" if json_output else "show" if show else "tokenized" if tokenized else "text"
    print_outputs(
        run,
        files or [],
        settings,
        kind,
        html=html,
        tags=tags,
        dictionary=dictionary,
        glossary=glossary,
        keep=keep,
        glossary_mode=parse_mode(glossary_mode),
        min_confidence=min_confidence,
        device=device,
        threads=threads,
    )


app.command()(translate)
app.command()(serve)
app.command()(evaluate)
app.command()(calibrate)
app.command()(export)


@app.command()
def plot(
    runs: Annotated[list[Path], typer.Argument(help="Folders of runs.")],
    out: Annotated[Path, typer.Option(help="The picture: .png, .svg or .pdf.")] = Path("curves.png"),
    measure: Annotated[
        str, typer.Option(help="Of every validation: nll, comparable_nll, pointer_accuracy, bleu, …")
    ] = "comparable_nll_word",
    attention: Annotated[
        str | None, typer.Option(help="Draw where the first run looks, and its switch, on this text instead.")
    ] = None,
) -> None:
    """Learning curves of runs side by side, or the attention on a text, as a picture.

    Beside the curves, reliability.png shows what the confidence of calibrated runs is worth.
    """
    from pointing.evaluation import plots
    from pointing.generation.command import load_generator
    from pointing.generation.confidence import load_confidence
    from pointing.model.run import own_files
    from pointing.system.files import keep_apart
    from pointing.training.journal import learning_curve

    plots.require_matplotlib()
    pictures = [out, out.with_name(f"reliability{out.suffix}")]
    keep_apart([path for run in runs for path in own_files(run)], pictures if attention is None else [out])
    if attention is not None:
        plots.save(plots.attention(load_generator(runs[0]).generate(attention, locations=True)), out)
    else:
        curves = {str(run): [learning_curve(run, measure)] for run in runs}
        plots.learning_curves(out, {"dev": curves}, "updates", measure)
    print(out)
    bins = {str(run): learned.bins for run in runs if (learned := load_confidence(run)) is not None}
    if bins and attention is None:
        plots.confidence_reliability(pictures[1], bins)
        print(pictures[1])


@app.command()
def dictionary(
    source: Annotated[Path, typer.Argument(help="Source text, plain or .gz, one line a sentence.")],
    target: Annotated[Path, typer.Argument(help="Its translation, line by line.")],
    out: Annotated[Path, typer.Option(help="Where to write the word pairs (TSV).")],
    languages: Annotated[tuple[str, str], typer.Option(help="Of source and target.")] = ("en", "fr"),
    lowercase: Annotated[bool, typer.Option(help="Lower-case the words.")] = True,
    tokenizer: Annotated[str, typer.Option(help="regex, moses or whitespace.")] = "regex",
    json_output: Annotated[bool, typer.Option("--json", help="Print the file and its size as JSON.")] = False,
) -> None:
    """Induce a word dictionary from parallel text."""
    from pointing.config import Parallel, Text, checked
    from pointing.corpus.preparation import induce_dictionary
    from pointing.system.files import keep_apart

    text = checked(Text, {"tokenizer": tokenizer, "lowercase": lowercase})
    keep_apart([source, target], [out])
    induced = induce_dictionary(Parallel(source=source, target=target), text, languages)
    induced.save(out)
    print(
        json.dumps({"file": str(out), "pairs": len(induced)}) if json_output else f"{out}: {len(induced):,} word pairs"
    )


@data.command()
def debian(
    out: Out,
    languages: Annotated[tuple[str, str], typer.Option(help="Two languages that Debian's translators write.")] = (
        "en",
        "fr",
    ),
    synopsis: Annotated[bool, typer.Option("--synopsis", help="English long description → synopsis.")] = False,
    dev: Annotated[int, typer.Option(help="Pairs for development.")] = 2000,
    test: Annotated[int, typer.Option(help="Pairs for testing.")] = 2000,
    seed: Annotated[int, typer.Option(help="Of the split.")] = 1,
    suite: Annotated[str | None, typer.Option(help="Only this suite of the machine's apt sources.")] = None,
    json_output: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
) -> None:
    """Debian's package descriptions, through this machine's apt: no root, the system's lists untouched."""
    from pointing.data import debian as source

    _say(source.bring(out, languages, synopsis=synopsis, dev=dev, test=test, seed=seed, suite=suite), json_output)


@data.command()
def gettext(
    out: Out,
    languages: Annotated[tuple[str, str], typer.Option(help="Two languages of the catalogs; en is their keys'.")] = (
        "en",
        "fr",
    ),
    packages: Annotated[
        list[str] | None, typer.Option(help="Names of packages, separated by spaces; may be given again.")
    ] = None,
    dev: Annotated[int, typer.Option(help="Pairs for development.")] = 2000,
    test: Annotated[int, typer.Option(help="Pairs for testing.")] = 2000,
    seed: Annotated[int, typer.Option(help="Of the split.")] = 1,
    json_output: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
) -> None:
    """Strings of programs and their translations, from Debian's packages through this machine's apt, without root."""
    from pointing.data import gettext as source

    names = [name for text in packages for name in text.replace(",", " ").split()] if packages else None
    _say(source.bring(out, languages, names=names, dev=dev, test=test, seed=seed), json_output)


@data.command()
def newstest(
    name: Annotated[str, typer.Argument(help="A test set that sacreBLEU knows: wmt11, newstest2011, …")],
    out: Out,
    languages: Annotated[tuple[str, str], typer.Option(help="Source and target.")] = ("en", "fr"),
    dev: Annotated[str | None, typer.Option(help="Another test set, for development.")] = None,
    json_output: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
) -> None:
    """A WMT test set, through sacreBLEU's own downloader."""
    from pointing.data import newstest as source

    _say(source.bring(out, name, languages, dev=dev), json_output)


@data.command()
def huggingface(
    name: Annotated[str, typer.Argument(help="Of a data set on the hub, or a local folder.")],
    source_column: Annotated[str, typer.Argument(help="Column of the source; dotted if nested: translation.en.")],
    target_column: Annotated[str, typer.Argument(help="Column of the target.")],
    out: Out,
    config: Annotated[str | None, typer.Option(help="The data set's configuration.")] = None,
    revision: Annotated[str | None, typer.Option(help="A commit or tag of the data set.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="At most so many pairs a split.")] = None,
    splits: Annotated[list[str] | None, typer.Option("--split", help="theirs=ours, such as validation=dev.")] = None,
    json_output: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
) -> None:
    """Any translation or summarization set that Hugging Face datasets can load (an extra)."""
    from pointing.data import huggingface as source
    from pointing.system.files import keep_apart

    keep_apart([name], [out])
    named = {theirs: ours or theirs for theirs, _, ours in (split.partition("=") for split in splits or [])}
    summary = source.bring(
        out, name, source_column, target_column, config=config, splits=named or None, revision=revision, limit=limit
    )
    _say(summary, json_output)


def _say(summary: Any, as_json: bool) -> None:
    print(json.dumps(asdict(summary), default=str) if as_json else summary)


@app.command()
def check(
    folder: Annotated[Path, typer.Argument(help="Folder of a run, or of a prepared corpus.")],
    json_output: Annotated[bool, typer.Option("--json", help="Print what was checked as JSON.")] = False,
) -> None:
    """Read a run or a corpus wholly: is every file as it was written, and can all of it be used?"""
    from pointing.training.check import check_folder as check_wholly

    checked = check_wholly(folder)
    print(json.dumps(asdict(checked)) if json_output else checked)


def main() -> None:
    """Exit codes: 0 done, 1 a failure while running, 2 misuse or bad input; one line on stderr, no traceback."""
    with ending():
        app()
