from pathlib import Path

import pytest
import yaml

from pointing.config import Config, Search, checked
from pointing.demo import demo_settings
from pointing.errors import Misuse
from pointing.idle_settings import idle_settings
from pointing.model.run import run_settings
from pointing.reproduce.experiments import EXPERIMENTS
from pointing.settings_file import read_config

RECIPES = Path(__file__).parent.parent / "recipes"
WHOLE = """
data:
  train: {source: train.en, target: train.fr}
  dev: {source: dev.en, target: dev.fr}
vocabulary: {source: 10000, target: 8000}
"""


def written(tmp_path, text=WHOLE):
    path = tmp_path / "x.yaml"
    path.write_text(text)
    return path


def test_defaults_fill_what_is_not_said(tmp_path):
    config = read_config(written(tmp_path))
    assert config.vocabulary.target == 8000
    assert config.pointers.policy == "unknown-words"
    assert config.data.languages == ("en", "fr")


def test_changes_are_laid_over_the_file(tmp_path):
    config = read_config(
        written(tmp_path), ["vocabulary.min_count=3", "text.lowercase=false", "data.languages=[de, en]"]
    )
    assert (config.vocabulary.min_count, config.text.lowercase, config.data.languages) == (3, False, ("de", "en"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("vocabulary.sourse=5", "vocabulary.sourse: there is no such setting; did you mean source?"),
        ("pointer.policy=none", "pointer: there is no such setting; did you mean pointers?"),
        ("vocabulary.source=many", "vocabulary.source: .* integer.*, not 'many'"),
        ("text.tokenizer=mosses", "text.tokenizer: .*'regex', 'moses' or 'whitespace', not 'mosses'"),
        ("text.max_tokens=0", "text.max_tokens: .*greater than 0, not 0"),
        ("pointers.policy=dictionary", "policy dictionary needs a dictionary"),
        ("pointers.policy=entities", "policy entities needs tags: data.train.source_tags"),
        ("training", "write it as section.key=value"),
        ("training.seed=-1", "training.seed: .*greater than or equal to 0"),
        ("training.seed=99999999999999999999999", "training.seed: .*less than"),
        ("training.learning_rate=.inf", "training.learning_rate: .*finite"),
        ("model.switch.bias=.nan", "model.switch.bias: .*finite"),
        ("training.weight_decay=0.1", "weight_decay is adamw's, not adadelta's"),
        ("pointers.tagger=x", "a tagger is for policy entities"),
        ("text.subwords=wordpiece", "text.subwords: .*'bpe', not 'wordpiece'"),
        ("pointers.anonymize=false", "anonymize: false is for policy entities; unknown-words never does it"),
        ("data.test={sourse: a, target: b}", "data.test.sourse: there is no such setting; did you mean source"),
        ("vocabulary.source.x=1", "source is not a section"),
        ("text.lowercase=[", "is not a YAML value"),
    ],
)
def test_wrong_settings_are_named(tmp_path, change, message):
    with pytest.raises(Misuse, match=message):
        read_config(written(tmp_path), [change])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("data: [", r"x\.yaml:1: not YAML|x\.yaml:2: not YAML"),
        ("- a", "settings are sections"),
        ("", "settings are sections"),
        ("text: {}", "data: Field required"),
        ("!!python/object/apply:os.system ['true']", "not YAML"),
    ],
)
def test_what_is_not_a_configuration_is_said(tmp_path, text, message):
    with pytest.raises(Misuse, match=message):
        read_config(written(tmp_path, text))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("pointers={policy: dictionary, dictionary: induced}", "pointers.dictionary is for whole words"),
        ("pointers={policy: none, dictionary: x.tsv}", "pointers.dictionary is for whole words"),
        ("pointers={policy: entities, tagger: x}", "policy entities is for whole words, which text.subwords cuts"),
        ("vocabulary.target=null", "text.subwords merges until the vocabulary is full"),
    ],
)
def test_pieces_are_no_words(tmp_path, change, message):
    read_config(written(tmp_path), ["text.subwords=bpe"])
    with pytest.raises(Misuse, match=message):
        read_config(written(tmp_path), ["text.subwords=bpe", change])


def test_what_a_marginal_loss_does_not_look_at_is_refused(tmp_path):
    with pytest.raises(Misuse, match="unreachable attention has no say in it"):
        read_config(written(tmp_path), ["training.loss=marginal", "pointers.unreachable=attention"])
    for policy in ("none", "all-matches"):
        with pytest.raises(Misuse, match=f"pointers.policy {policy} has no say in it: take unknown-words"):
            read_config(written(tmp_path), ["training.loss=marginal", f"pointers.policy={policy}"])


def test_a_missing_file_is_said(tmp_path):
    with pytest.raises(Misuse, match="there is no such file"):
        read_config(tmp_path / "nothing.yaml")


IDLE = [
    (["model.output=softmax", "model.switch.activation=relu"], "model.switch.activation does nothing: there is no sw"),
    (["model.output=softmax", "model.switch.residual=false"], "model.switch.residual does nothing: there is no switch"),
    (["model.output=softmax", "model.switch.bias=0.5"], "model.switch.bias does nothing: there is no switch"),
    (["model.output=softmax", "model.feed=source"], "model.feed does nothing: nothing is copied with model.output"),
    (["model.output=softmax", "pointers.unreachable=attention"], "pointers.unreachable does nothing: there is no"),
    (["model.output=softmax", "training.loss=marginal"], "training.loss does nothing: there is no switch with model"),
    (["model.output=pointer-network", "training.loss=marginal"], "training.loss does nothing: there is no switch"),
    (["model.output=pointer-network", "model.tied=true"], "model.tied does nothing: there is no shortlist"),
    (["model.output=pointer-network", "training.smoothing=0.1"], "training.smoothing does nothing: there is no shortl"),
    (["training.loss=marginal", "training.smoothing=0.1"], "training.smoothing does nothing: it is for training.loss"),
    (["model.kind=transformer", "model.encoder=64"], "model.encoder does nothing: it is a GRU's, and this model has"),
    (["model.kind={encoder: transformer, decoder: ssru}", "model.init=0.1"], "model.init does nothing: it is a GRU's"),
    (["model.heads=2"], "model.heads does nothing: it is a Transformer's, and this model has none"),
    (["embeddings={source: vectors.txt, width: 50}"], "embeddings.width does nothing: it is for word2vec"),
]


@pytest.mark.parametrize(("changes", "message"), IDLE)
def test_a_setting_that_does_nothing_is_refused(tmp_path, changes, message):
    with pytest.raises(Misuse, match=message):
        read_config(written(tmp_path), changes)


@pytest.mark.parametrize(("changes", "message"), IDLE)
def test_a_run_made_with_a_setting_that_does_nothing_still_loads(tmp_path, changes, message):
    values = yaml.safe_load(WHOLE)
    for change in changes:
        key, _, value = change.partition("=")
        *sections, last = key.split(".")
        place = values
        for section in sections:
            place = place.setdefault(section, {})
        place[last] = yaml.safe_load(value)
    config = checked(Config, values)
    written(tmp_path, yaml.safe_dump(config.model_dump(mode="json"))).rename(tmp_path / "config.yaml")
    assert run_settings(tmp_path) == config
    (key,) = idle_settings(config)
    assert message.startswith(f"{key} does nothing: {idle_settings(config)[key]}"[: len(message)])


@pytest.mark.parametrize(
    "changes",
    [
        ["model.output=softmax", "model.tied=true", "model.switch.activation=noisy-tanh", "training.loss=joint"],
        ["model.output=pointer-network", "model.feed=source"],
        ["model.switch.bias=0.5", "model.feed=source", "pointers.unreachable=attention", "model.tied=true"],
        ["embeddings={target: word2vec, width: 50}"],
        ["embeddings.width=100"],
        ["model.kind=transformer", "model.heads=2", "model.decoder_layers=3"],
        ["model.kind={encoder: gru, decoder: ssru}", "model.encoder=64", "model.init=0.1", "model.heads=2"],
        ["model.kind={encoder: transformer}", "model.init=0.1"],
        ["training.smoothing=0.1", "training.average=0.99", "pointers.guidance=0.5"],
    ],
)
def test_a_setting_that_does_something_or_has_its_default_is_not_refused(tmp_path, changes):
    assert idle_settings(read_config(written(tmp_path), changes)) == {}


REFUSED = [
    (["model.kind=transformer", "model.embedding=100", "model.heads=8"], "should be a multiple of twice the heads"),
    (["model.decoder_layers=2"], "decoder_layers is for the decoders transformer and ssru"),
    (["model.kind=lstm"], "model.kind.encoder: Input should be 'gru' or 'transfo"),
    (["model.kind={encoder: ssru}"], "model.kind.encoder: Input should be 'gru' or 'transfo"),
    (["pointers.places=words"], "pointers.places: words is for text.subwords"),
    (["pointers.guidance=-1"], "pointers.guidance"),
    (["training.average=1"], "training.average"),
]


@pytest.mark.parametrize(("changes", "message"), REFUSED)
def test_kinds_and_pointers_that_do_not_fit_are_refused(tmp_path, changes, message):
    with pytest.raises(Misuse, match=message):
        read_config(written(tmp_path), changes)


def test_a_kind_is_short_for_encoder_and_decoder(tmp_path):
    both = read_config(written(tmp_path), ["model.kind=transformer"]).model.kind
    assert (both.encoder, both.decoder) == ("transformer", "transformer")
    quick = read_config(written(tmp_path), ["model.kind=ssru"]).model.kind
    assert (quick.encoder, quick.decoder) == ("transformer", "ssru")
    assert read_config(written(tmp_path)).model.kind.decoder == "gru"


def test_alpha_is_refused_where_nothing_reads_it():
    with pytest.raises(Misuse, match="alpha does nothing with normalize: dl4mt; it is for normalize: gnmt"):
        checked(Search, {"alpha": 0.5})
    assert checked(Search, {"alpha": 0.5, "normalize": "gnmt"}).alpha == 0.5
    assert checked(Search, checked(Search, {}).model_dump()) == Search()


def test_every_row_of_every_experiment_can_be_read_with_its_recipes(tmp_path):
    for experiment in EXPERIMENTS.values():
        for recipe in experiment.recipes:
            for row in experiment.rows:
                read_config(RECIPES / f"{recipe}.yaml", row.changes)
    for recipe in RECIPES.glob("*.yaml"):
        for output in ("softmax", "pointer-softmax"):
            (row,) = (row for row in EXPERIMENTS["translation"].rows if row.key == output)
            assert read_config(recipe, row.changes).model.output == output
    for output in ("softmax", "pointer-softmax"):
        assert idle_settings(demo_settings(tmp_path, output, 3)) == {}
