"""A model card: what a run is, how it was trained, how good it is, and what it must not be used for. In Markdown."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

import yaml

from pointing import __version__
from pointing.config import Config, Model
from pointing.corpus.lexicon import FAMILIAR
from pointing.generation.confidence import Confidence
from pointing.model.run import Run
from pointing.settings_file import named_files
from pointing.system.tables import Table
from pointing.text.languages import language_name

OUTPUTS = {
    "pointer-softmax": "copies words that it does not know from its input, and says for every word where it came from",
    "pointer-network": "writes nothing but words of its input",
    "softmax": "writes words of a fixed vocabulary",
}
NOT_FOR = """\
Nobody has checked its outputs. Where a mistake could harm somebody, as in medicine, law, or warnings, do not use them
without a person who reads both sides. It was trained on the text named above, and is no good at other kinds of text.
Its vocabularies hold words of that text."""
ALL_WORDS = (
    f"\n\n**`{FAMILIAR}` holds every word of the source side of that text** (protected spans excepted), names of people"
    " included, each with how often it stands there: whoever has this model can read which words the text has."
)


class Known(NamedTuple):
    """All that a card tells of."""

    name: str
    run: Run
    confidence: Confidence | None
    scores: Mapping[str, Mapping[str, Any]]  # what `pointing evaluate` found on the test part: measure → values


def card(known: Known) -> str:
    config = known.run.config
    parts = [_metadata(config), f"# {known.name}", _what(config, known.name), f"## What it is\n\n{_facts(known)}"]
    words = "" if known.run.lexicon.familiar is None else ALL_WORDS
    parts += [f"## Scores\n\n{_scores(known)}", f"## Not for\n\n{NOT_FOR}{_review(known.confidence)}{words}"]
    return "\n\n".join(parts) + "\n"


def _metadata(config: Config) -> str:
    """What the Hugging Face hub reads of a card."""
    source, target = config.data.languages
    data = {
        "language": list(dict.fromkeys((source, target))),
        "library_name": "pointing",
        "tags": ["pointing", config.model.output, *([] if source == target else ["translation"])],
    }
    return f"---\n{yaml.safe_dump(data, sort_keys=False, allow_unicode=True)}---"


def _what(config: Config, name: str) -> str:
    source, target = map(language_name, config.data.languages)
    task = f"Translates {source} into {target}" if source != target else f"Rewrites {source} text"
    return f"""{task}. It {OUTPUTS[config.model.output]}.

```python
import pointing

model = pointing.load({json.dumps(name + ".pointing")})
output = model.generate("one line of text")
print(output.text, [token.text for token in output.tokens if token.origin == "copied"])
```"""


def _facts(known: Known) -> str:
    config, lexicon = known.run.config, known.run.lexicon
    training, of = config.training, config.model
    rate = "" if training.learning_rate is None else f", learning rate {training.learning_rate:g}"
    unit = "pieces" if config.text.uses_subwords else "words"
    facts = {
        "kind": _kind(of),
        "output layer": of.output,
        "parameters": f"{sum(weight.numel() for weight in known.run.model.parameters()):,}",
        "vocabularies": f"{len(lexicon.source):,} and {len(lexicon.target):,} {unit}",
        "text": f"{'cased' if config.text.forms or not config.text.lowercase else 'lower-cased'}; protected spans: "
        f"{config.text.protect if config.text.protects else 'none'}",
        "pointers": "none" if of.output == "softmax" else f"{config.pointers.policy}, places: {config.pointers.places}",
        "data": ", ".join(dict.fromkeys(path.name for path in named_files(config))),
        "training": f"{known.run.about.get('update', 0):,} updates of {training.batch} {training.batch_by}, "
        f"{training.optimizer}{rate}, seed {training.seed}",
        "written by": f"pointing {__version__}",
    }
    return Table("", ["", ""], [[name, str(fact)] for name, fact in facts.items()]).markdown().strip()


def _kind(model: Model) -> str:
    layers = f"{model.encoder_layers} + {model.decoder_layers} layers"
    kinds = f"{model.kind.encoder} encoder, {model.kind.decoder} decoder"
    return f"{kinds}, {layers}, embedding {model.embedding}, hidden {model.hidden}"


def _scores(known: Known) -> str:
    if not known.scores:
        dev = known.run.about.get("dev", {})
        scores = {name: dev.get(name) for name in ("bleu", "rouge")}
        found = [f"{name.upper()} {score:.1f}" for name, score in scores.items() if isinstance(score, int | float)]
        told = f" (greedy outputs on its dev part: {', '.join(found)})" if found else ""
        return f"Not tested{told}. `pointing evaluate RUN --out RUN/evaluation`, then export it again, adds scores."
    rows = [[name, *_cells(values), f"`{values.get('signature', '')}`"] for name, values in known.scores.items()]
    return Table("", ["on the test part", "score", "95 % interval", "how"], rows).markdown().strip()


def _cells(values: Mapping[str, Any]) -> list[str]:
    score, low, high = (values.get(key) for key in ("score", "low", "high"))
    interval = "" if low is None or high is None else f"{low:.1f} to {high:.1f}"
    return ["–" if score is None else f"{score:.1f}", interval]


def _review(confidence: Confidence | None) -> str:
    if confidence is None:
        return ""
    return f" Outputs of a confidence below {confidence.review_below:.2f} are those to be reviewed first."
