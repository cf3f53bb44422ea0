"""The runs that a server has: which one answers for which languages, and what there is to say about each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import torch

from pointing.config import Config
from pointing.errors import Failure, Misuse
from pointing.evaluation.evaluation_set import own_part
from pointing.evaluation.report import read_scores
from pointing.generation.confidence import confidence_for
from pointing.generation.generator import Generator
from pointing.model.exported import folder_of
from pointing.model.run import load_run
from pointing.server.limits import Refused
from pointing.system.files import resolved
from pointing.text.languages import language_scores, main_language

EXAMPLES, LONGEST_EXAMPLE = 40, 200  # lines for the page's example button; characters of one


@dataclass(frozen=True)
class Model:
    """A run that is served."""

    name: str
    folder: Path
    generator: Generator
    config: Config
    about: Mapping[str, Any]
    role: Literal["model", "against"] = "model"

    @property
    def source(self) -> str:
        return self.config.data.languages[0]

    @property
    def target(self) -> str:
        return self.config.data.languages[1]

    @property
    def can_point(self) -> bool:
        return self.generator.model.output.can_point

    @property
    def takes_terms(self) -> bool:
        """True if a glossary can be used with it."""
        return self.can_point and self.generator.read.takes_terms

    @property
    def keeps_tags(self) -> bool:
        """True if tags of HTML are protected spans for it."""
        protector = self.generator.lexicon.tokenization.source.protector
        return self.can_point and protector is not None and [span.kind for span in protector("a <b>c")] == ["tag"]

    @cached_property
    def examples(self) -> list[str]:
        """Lines of the run's dev part, or of its test part; none if the files are not there any more."""
        try:
            lines = own_part({self.folder: self.config}, "dev").source_texts
        except (Failure, OSError):
            return []
        short = [line for line in lines if line.strip() and len(line) <= LONGEST_EXAMPLE]
        return short[:: max(1, len(short) // EXAMPLES)][:EXAMPLES]

    def json(self) -> dict[str, Any]:
        lexicon, training = self.generator.lexicon, self.config.training
        dev = {name: value for name, value in self.about.get("dev", {}).items() if isinstance(value, int | float)}
        return {
            "name": self.name,
            "role": self.role,
            "languages": [self.source, self.target],
            "output": self.config.model.output,
            "can_point": self.can_point,
            "takes_terms": self.takes_terms,
            "calibrated": self.generator.confidence is not None,
            "vocabulary": {"source": len(lexicon.source), "target": len(lexicon.target)},
            "parameters": sum(weight.numel() for weight in self.generator.model.parameters()),
            "pointers": self.config.pointers.policy,
            "text": {"forms": self.config.text.forms, "protect": self.config.text.protect},
            "training": {
                "optimizer": training.optimizer,
                "batch": training.batch,
                "seed": training.seed,
                "update": self.about.get("update"),
                "dev": dev,
            },
            "scores": [{"name": name, **values} for name, values in read_scores(folder_of(self.folder)).items()],
            "examples": self.examples,
        }


class Models:
    """All that are served, by name."""

    def __init__(self, models: Sequence[Model]) -> None:
        self.by_name = {model.name: model for model in models}

    @classmethod
    def load(cls, runs: Sequence[Path], against: Path | None = None, device: str = "cpu") -> Models:
        """The runs' best models. Two that translate the same languages are refused, except `against`."""
        models: list[Model] = []
        for folder in runs:
            model = _load(folder, "model", _free_name(folder, models), device)
            same = next((m for m in models if m.config.data.languages == model.config.data.languages), None)
            if same is not None:
                pair = f"{model.source} → {model.target}"
                raise Misuse(f"{same.folder} and {folder} are both {pair}: serve one, or compare with --against")
            models.append(model)
        if against is not None:
            models.append(_load(against, "against", _free_name(against, models), device))
        return cls(models)

    @property
    def served(self) -> list[Model]:
        """Those that answer for languages."""
        return [model for model in self.by_name.values() if model.role == "model"]

    def named(self, name: str | None) -> Model:
        """A model by its name; without a name, the first."""
        if name is None:
            return self.served[0]
        if name not in self.by_name:
            raise Refused(404, f"run: there is no such run; there are {', '.join(self.by_name)}")
        return self.by_name[name]

    def sources(self) -> list[str]:
        return list(dict.fromkeys(model.source for model in self.served))

    def codes(self) -> list[str]:
        """All languages, source languages first."""
        return list(dict.fromkeys([*self.sources(), *(model.target for model in self.served)]))

    def between(self, source: str, target: str) -> Model:
        """The model of two languages; of `en-GB` and `en_GB`, that of `en` if there is no other."""
        for code in (source, target):
            if main_language(code) not in map(main_language, self.codes()):
                raise Refused(400, f"{code[:20]} is not supported")
        pairs = {(model.source, model.target): model for model in self.served}
        main = {(main_language(s), main_language(t)): model for (s, t), model in pairs.items()}
        found = pairs.get((source, target)) or main.get((main_language(source), main_language(target)))
        if found is None:
            there = ", ".join(f"{s} → {t}" for s, t in pairs)
            raise Refused(400, f"{target[:20]} is not available as a target of {source[:20]}; there is {there}")
        return found

    def detect(self, texts: Sequence[str]) -> list[tuple[str, float]]:
        """The languages of a text that are served, most probable first, each with a confidence from 0 to 100."""
        found = dict(language_scores(texts))
        ranked = sorted(((found.get(main_language(code), 0.0), code) for code in self.codes()), reverse=True)
        return [(code, round(100 * share, 1)) for share, code in ranked if share] or [(self.codes()[0], 0.0)]

    def for_text(self, texts: Sequence[str], target: str) -> tuple[Model, float]:
        """The model into a language, whose source language the text most probably has; and the confidence in that."""
        confidence = dict(self.detect(texts))
        into = [model for model in self.served if main_language(model.target) == main_language(target)]
        if not into:
            raise Refused(400, f"{target[:20]} is not supported as a target")
        best = max(into, key=lambda model: confidence.get(model.source, 0.0))
        return best, confidence.get(best.source, 0.0)


def _free_name(folder: Path, models: Sequence[Model]) -> str:
    name = resolved(folder_of(folder)).name
    taken = {model.name for model in models}
    return next(each for each in (name, *(f"{name}-{n}" for n in range(2, len(taken) + 3))) if each not in taken)


def _load(folder: Path, role: Literal["model", "against"], name: str, device: str) -> Model:
    run = load_run(folder)
    run.model.to(torch.device(device))
    generator = Generator(run, confidence_for(folder, run.about))
    if generator.read.needs_tags:
        raise Misuse("this run was trained on tagged entities and needs tags, which a text over HTTP has not", folder)
    return Model(name, folder, generator, run.config, run.about, role)
