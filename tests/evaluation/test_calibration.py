"""Learning how sure to be of an output."""

import json
import random

import numpy as np
import pytest
import tiny
from sacrebleu.metrics.chrf import CHRF

import pointing
from pointing.errors import Misuse
from pointing.evaluation import calibration, plots
from pointing.evaluation.calibration import Scored, calibration_error, damage, isotonic, learn, reliability, sample
from pointing.generation.confidence import CONFIDENCE, FEATURES, load_confidence
from pointing.text.protected import PRESETS, Protector
from pointing.text.tokenizer import Tokenizer


def floats(*numbers):
    return np.array(numbers, np.float64)


@pytest.mark.parametrize(
    ("y", "w", "expected"),
    [
        ((1, 2, 4), (1, 1, 1), [(0, 1), (1, 2), (2, 4)]),
        ((1, 3, 2, 4), (1, 1, 1, 1), [(0, 1), (1.5, 2.5), (3, 4)]),  # the middle two are pooled
        ((3, 1), (1, 3), [(0.75, 1.5)]),  # by weight
        ((2, 3, 1), (1, 1, 1), [(1, 2)]),  # the third is below the second, and both are not above the first
        ((1, 1), (1, 1), [(0.5, 1)]),  # equal ones are one step
    ],
)
def test_adjacent_violators_are_pooled(y, w, expected):
    found = isotonic(np.arange(len(y), dtype=np.float64), floats(*y), floats(*w), groups=len(y) * 100)
    np.testing.assert_allclose(found, expected)


def test_points_come_in_any_order_in_groups_of_equal_weight_and_equal_ones_together():
    x = floats(3, 0, 2, 1)
    np.testing.assert_allclose(isotonic(x, 10 * x, floats(1, 1, 1, 1), groups=2), [(0.5, 5), (2.5, 25)])
    same = isotonic(floats(1, 1, 1, 2), floats(0, 1, 5, 3), floats(1, 1, 1, 1), groups=4)
    np.testing.assert_allclose(same, [(1, 2), (2, 3)])


def test_bins_and_the_error_by_hand():
    bins = reliability(floats(0.11, 0.15, 0.52, 1.0), floats(0.2, 0.1, 0.5, 0.7))
    assert [each.lines for each in bins] == [0, 2, 0, 0, 0, 1, 0, 0, 0, 1]
    assert (bins[1].confidence, bins[1].chrf) == (pytest.approx(0.13), pytest.approx(0.15))
    assert bins[0].confidence is None
    assert calibration_error(bins) == pytest.approx((2 * 0.02 + 0.02 + 0.3) / 4)


def lines_with(real=400, damaged=400, noise=0.2, seed=0):
    """Lines whose chrF falls with the share of unknown words, and rises with their log-probability."""
    rng = np.random.default_rng(seed)
    features = rng.normal(0, 1, (real + damaged, len(FEATURES)))
    unknown = np.concatenate([rng.beta(1, 9, real), rng.beta(4, 4, damaged)])
    features[:, FEATURES.index("unknown share of the source")] = unknown
    true = 1 / (1 + np.exp(-(1 + features[:, 0] - 5 * unknown)))
    weights = np.where(np.arange(real + damaged) < real, 1.0, calibration.WEIGHT_OF_DAMAGED)
    rows = np.concatenate([np.arange(real), np.arange(damaged)])
    return Scored(features, (true + rng.normal(0, noise, real + damaged)).clip(0, 1), weights, rows)


def test_what_is_learned_is_calibrated_and_knows_foreign_lines():
    scored = lines_with()
    confidence = learn(scored, "chrF2", {"update": 1.0})
    assert (confidence.lines, confidence.damaged_lines, confidence.signature) == (400, 400, "chrF2")
    assert confidence.error < 0.05
    assert sum(each.lines for each in confidence.bins) == 400
    new = lines_with(seed=1)
    told = confidence.of(new.features)
    real = new.is_real
    assert calibration_error(reliability(told[real], new.chrf[real])) < 0.05
    assert np.corrcoef(told[real], new.chrf[real])[0, 1] > 0.6
    assert told[~real].mean() < told[real].mean() - 0.2
    flagged = told < confidence.review_below
    assert 0.05 < flagged[real].mean() < 0.15
    assert flagged[~real].mean() > 0.5


def test_the_error_is_that_of_lines_held_out():
    # Noise alone: what is learned by heart from few lines is worth nothing on others, and the error says so.
    rng = np.random.default_rng(0)
    few = Scored(rng.normal(0, 1, (60, 6)), rng.integers(0, 2, 60).astype(float), np.ones(60), np.arange(60))
    confidence = learn(few, "chrF2", {})
    by_heart = calibration_error(reliability(confidence.of(few.features), few.chrf))
    assert confidence.error > by_heart + 0.05


def test_a_feature_that_is_always_the_same_does_no_harm_and_few_lines_are_refused():
    scored = lines_with()
    scored.features[:, 5] = 1.0
    told = learn(scored, "chrF2", {}).of(scored.features)
    assert np.isfinite(told).all()
    assert told.std() > 0.05
    with pytest.raises(Misuse, match="too few"):
        learn(lines_with(real=49), "chrF2", {})


def test_the_same_pairs_are_taken_every_time_and_none_is_empty():
    pairs = [(f"a {n}", "x" if n % 7 else "  ") for n in range(1000)]
    chosen = sample(pairs)
    assert len(chosen) == calibration.MOST_LINES == len(set(chosen))
    assert chosen == sample(pairs)
    assert all(target == "x" for _, target in chosen)
    assert [pairs.index(pair) for pair in chosen] == sorted(pairs.index(pair) for pair in chosen)
    with pytest.raises(Misuse, match="49 pairs of lines are too few to learn a confidence from: 50 are needed"):
        sample([("a", "x")] * 49 + [("", "x")] * 10)


def test_damaged_lines_have_words_that_nobody_knows_and_their_spans(tmp_path):
    protecting = {"tokenizer": "regex", "protect": "software", "protect_patterns": ["GNOME"]}
    run = pointing.load(tiny.untrained(tmp_path, {"text": protecting}))
    text = "Open  the file %s, see <b>help</b> or x86_64 --help of GNOME!"
    (line,) = run.read([text])
    known = set()
    assert damage(line, 0.0, random.Random(1), known.__contains__) == text
    whole = damage(line, 1.0, random.Random(1), known.__contains__)
    tokenizer = Tokenizer(protector=Protector(PRESETS["software"], ["GNOME"]))
    before, after = tokenizer(text).words, tokenizer(whole).words
    assert len(before) == len(after)
    for old, new in zip(before, after, strict=True):
        assert (old == new) == (not old.isalpha())
        assert not old.isalpha() or (new.isalpha() and new[0].isupper() == old[0].isupper())
    assert whole == damage(line, 1.0, random.Random(1), known.__contains__)
    known = set(after)
    assert not known & set(tokenizer(damage(line, 1.0, random.Random(1), known.__contains__)).words) - set(before)
    half = tokenizer(damage(run.read(["a " * 1000])[0], 0.3, random.Random(1), known.__contains__)).words
    assert 40 < sum(word != "a" for word in half[:200]) < 80


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("calibrated")
    tiny.train_in(folder, folder / "run", {"training": {"updates": 300, "validate_every": 300}}, dev=80)
    return folder / "run"


def test_training_ends_with_a_confidence_of_its_weights(trained):
    confidence = load_confidence(trained)
    assert confidence.lines == 80
    assert 0 < confidence.damaged_lines <= 80
    assert confidence.signature.startswith("chrF2|nrefs:1|case:mixed")
    assert confidence.weights["update"] == 300
    model = pointing.load(trained)
    assert model.confidence == confidence
    lines = (trained.parent / "dev.source").read_text().splitlines()
    references = (trained.parent / "dev.target").read_text().splitlines()
    outputs = model.generate(lines)
    metric = CHRF()
    chrf = [metric.sentence_score(one.text, [line]).score / 100 for one, line in zip(outputs, references, strict=True)]
    assert np.mean([one.confidence for one in outputs]) == pytest.approx(np.mean(chrf), abs=0.05)
    assert sum(one.review for one in outputs) == 8
    foreign = [" ".join(f"vozuka{n}{k}" for k in range(5)) for n in range(20)]
    assert np.mean([one.confidence for one in model.generate(foreign)]) < np.mean([one.confidence for one in outputs])


def test_a_run_that_ended_is_calibrated_once(trained):
    written = (trained / CONFIDENCE).stat().st_mtime_ns
    assert tiny.train_in(trained.parent, trained, {"training": {"updates": 300, "validate_every": 300}}, resume=True)
    assert (trained / CONFIDENCE).stat().st_mtime_ns == written
    (trained / CONFIDENCE).unlink()
    assert tiny.train_in(trained.parent, trained, {"training": {"updates": 300, "validate_every": 300}}, resume=True)
    assert (trained / CONFIDENCE).exists()


def test_a_damaged_confidence_is_made_anew(trained, capfd):
    path, settings = trained / CONFIDENCE, {"training": {"updates": 300, "validate_every": 300}}
    whole = path.read_bytes()
    for damaged in (whole[:-9], b"{}", b""):
        path.write_bytes(damaged)
        assert tiny.train_in(trained.parent, trained, settings, resume=True)
        assert path.read_bytes() == whole
        assert "confidence.json: damaged; it is made anew" in capfd.readouterr().err


def test_training_on_too_few_dev_lines_ends_well_and_says_so(tmp_path, capfd):
    assert tiny.train_in(tmp_path, tmp_path / "run", {"training": {"updates": 2, "validate_every": 2}})
    assert not (tmp_path / "run" / CONFIDENCE).exists()
    assert (
        "no confidence.json, which `pointing calibrate` makes: 20 pairs of lines are too few" in capfd.readouterr().err
    )


def test_the_command_and_what_it_refuses(trained, tmp_path):
    source, target = trained.parent / "train.source", trained.parent / "train.target"
    done = tiny.pointing("calibrate", trained, "--source", source, "--reference", target, "--json", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["lines"] == 200 == load_confidence(trained).lines
    done = tiny.pointing("calibrate", trained, folder=tmp_path)
    assert "confidence.json: learned from 80 lines; expected calibration error 0." in done.stdout, done.stderr
    (tmp_path / "short").write_text("a\n")
    for arguments, message in [
        (["--source", source], "--source and --reference belong together"),
        (["--source", source, "--reference", tmp_path / "short"], "200 lines, but"),
        (["--source", tmp_path / "short", "--reference", tmp_path / "short"], "1 pairs of lines are too few"),
        (["--source", "nothing", "--reference", target], "there is no such file"),
    ]:
        code, text = tiny.said("calibrate", trained, *arguments)
        assert (code, text.count("\n"), message in text) == (2, 1, True), text


def test_a_run_of_tagged_entities_has_none(tmp_path):
    for name in ("train", "dev"):
        for side in ("source", "target"):
            tiny.write(tmp_path)
            lines = (tmp_path / f"{name}.{side}").read_text().splitlines()
            tags = [
                " ".join(f"{word}￨{'B-N' if word.startswith('n') else 'O'}" for word in line.split()) for line in lines
            ]
            (tmp_path / f"{name}.{side}.ner").write_text("\n".join(tags) + "\n")
    files = {
        name: {f"{side}_tags": str(tmp_path / f"{name}.{side}.ner") for side in ("source", "target")}
        for name in ("train", "dev")
    }
    run = tiny.untrained(tmp_path, {"data": files, "pointers": {"policy": "entities"}})
    code, text = tiny.said("calibrate", run)
    assert (code, "a run of tagged entities has no confidence" in text) == (2, True)


def test_the_diagram_is_drawn_beside_the_curves(trained, tmp_path):
    pytest.importorskip("matplotlib")
    done = tiny.pointing("plot", trained, "--out", tmp_path / "curves.svg", folder=tmp_path)
    assert done.stdout.splitlines() == [str(tmp_path / "curves.svg"), str(tmp_path / "reliability.svg")], done.stderr
    assert "<svg" in (tmp_path / "reliability.svg").read_text()
    plots.confidence_reliability(tmp_path / "x.png", {"run": load_confidence(trained).bins})
    assert (tmp_path / "x.png").stat().st_size > 1000
