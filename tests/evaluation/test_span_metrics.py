"""Protected spans of outputs: intact, in order, lost, invented; golden values by hand."""

import random
import time

import pytest

from pointing.errors import Misuse
from pointing.evaluation.span_metrics import span_measures, term_measure
from pointing.generation.glossary import Glossary, Term
from pointing.text.protected import Protector
from pointing.text.tokenizer import Tokenizer

SOFTWARE = Protector.named("software")


def scores(pairs, protector=SOFTWARE):
    sources, outputs = zip(*pairs, strict=True)
    return {measure.name: measure.score for measure in span_measures(sources, outputs, protector)}


def test_measures_by_hand():
    pairs = [
        ("Open %s", "Ouvrir %s"),  # intact
        ("%s of %d", "%d de %s"),  # intact, but not in order
        ("%s: %s", "%s : %s"),  # intact, in order
        ("%1$s of %2$s", "%2$s de %1$s"),  # intact; numbered, so any order is right
        ("Open %s", "Ouvrir"),  # one lost
        ("%d%% of <b>it</b>", "%d % de <b>cela"),  # %% and </b> lost
        ("Open", "Ouvrir %s"),  # one invented
        ("Open %s", "Ouvrir %s %s"),  # one invented
        ("Open", "Ouvrir"),  # does not count
    ]
    assert scores(pairs) == {
        "lines with spans intact": pytest.approx(100 * 4 / 8),
        "lines with spans in order": pytest.approx(100 * 1 / 2),
        "spans lost": 3,
        "spans invented": 2,
    }


@pytest.mark.parametrize(
    ("source", "output", "lost", "invented"),
    [
        ("use '-shared' here", "ici, -shared sert", 0, 0),  # no span without quotation marks, but it is there
        ("-shared here", "ici « -shared »", 0, 0),
        ("use -v", "prévue en pre-vue", 1, 0),  # inside a word
        ("a %s", "a %%s", 1, 1),
        ("a % s", "a %s", 0, 1),
        ("%S", "%s", 1, 1),  # case counts
    ],
)
def test_a_span_that_the_text_around_hides_is_found(source, output, lost, invented):
    result = scores([(source, output)])
    assert (result["spans lost"], result["spans invented"]) == (lost, invented)


def test_without_spans_nothing_is_defined():
    result = scores([("Open", "Ouvrir")])
    assert result["lines with spans intact"] is None
    assert result["lines with spans in order"] is None
    assert result["spans lost"] == 0


def test_the_signature_names_what_is_protected():
    for protector, name in [
        (SOFTWARE, "protect:software|"),
        (Protector.named("tag, printf"), "protect:printf+tag|"),
        (Protector.named("web"), "protect:web|"),
        (Protector((), ["x+"]), "protect:none+patterns:1|"),
    ]:
        assert name in span_measures(["a"], ["b"], protector)[0].signature


def test_sources_and_outputs_must_be_as_many():
    with pytest.raises(Misuse, match="2 outputs cannot be compared with 1 sources"):
        span_measures(["a"], ["b", "c"], SOFTWARE)
    with pytest.raises(Misuse, match="no kind 'colour'"):
        Protector.named("colour")


def test_terms_used_by_hand():
    glossary = Glossary([Term("file", "fichier"), Term("GNOME", None)], Tokenizer(lowercase=True))
    sources = ["File and file in GNOME", "a file", "none"]
    outputs = ["Fichier et dossier dans gnome", "un fichier fichier", "fichier"]
    measure = term_measure(sources, outputs, glossary, Tokenizer(lowercase=True))
    assert measure.numbers.tolist() == [[2, 3], [1, 1], [0, 0]]
    assert measure.score == pytest.approx(75)


def test_a_line_of_many_missing_spans_is_measured_in_seconds():
    rng = random.Random(1)
    kinds = ("%s", "{}", '"-shared"', "--opt{}", "/usr/lib/x{}.so", "word")
    source = " ".join(rng.choice(kinds).format(rng.randrange(60_000)) for _ in range(60_000))
    output = " ".join(rng.choice(kinds).format(rng.randrange(60_000)).strip('"') for _ in range(60_000))
    start = time.process_time()
    result = scores([(source, output)])
    assert time.process_time() - start < 3  # a search of the whole line for each span takes longer
    assert result["spans lost"] > 10_000
    assert result["spans invented"] > 10_000


def test_a_hidden_span_is_found_once_for_each_time_that_it_is_missing():
    assert scores([("'-shared' '-shared' '-shared'", "x -shared -shared")])["spans lost"] == 1
    assert scores([("'-shared'", "x -shared -shared")])["spans lost"] == 0
