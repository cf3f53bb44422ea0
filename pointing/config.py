"""The settings: typed, validated before any work, every default in one place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from pointing.errors import Misuse

Positive = Annotated[int, Field(gt=0)]
Probability = Annotated[float, Field(gt=0, lt=1)]


class Settings(BaseModel):
    """What all settings share: an unknown key is an error, and nothing changes after the check."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


Checked = TypeVar("Checked", bound=Settings)


def checked(kind: type[Checked], values: Mapping[str, Any], file: str | Path | None = None) -> Checked:
    """The settings, or a Misuse that names every wrong key and suggests the nearest right one."""
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        raise Misuse("; ".join(_explain(kind, problem) for problem in error.errors()), file) from None


def _explain(kind: type[BaseModel], problem: Any) -> str:
    key = ".".join(str(part) for part in problem["loc"])
    if problem["type"] == "extra_forbidden":
        near = get_close_matches(problem["loc"][-1], _keys(kind, problem["loc"][:-1]), n=1, cutoff=0.5)
        return f"{key}: there is no such setting" + (f"; did you mean {near[0]}?" if near else "")
    message = problem["msg"].removeprefix("Value error, ")
    given = (
        "" if isinstance(problem["input"], Mapping) or problem["type"] == "missing" else f", not {problem['input']!r}"
    )
    return f"{key}: {message}{given}" if key else message


def _keys(kind: type[BaseModel], path: tuple[Any, ...]) -> list[str]:
    """The names that are right at some place of nested settings."""
    for name in path:
        annotation = kind.model_fields[name].annotation if name in kind.model_fields else None
        choices = [annotation, *get_args(annotation)]  # X, or one of X | None
        inner = [one for one in choices if isinstance(one, type) and issubclass(one, BaseModel)]
        if not inner:
            return []
        kind = inner[0]
    return list(kind.model_fields)


class Parallel(Settings):
    """Two files, plain or .gz, one line an example; for entities with a tag for every token, in files of their own."""

    source: Path
    target: Path
    source_tags: Path | None = None
    target_tags: Path | None = None


class Data(Settings):
    train: Parallel
    dev: Parallel
    test: Parallel | None = None
    languages: tuple[str, str] = ("en", "fr")  # of source and target: for Moses and for detokenising

    def splits(self) -> dict[str, Parallel]:
        splits = {"train": self.train, "dev": self.dev, "test": self.test}
        return {name: files for name, files in splits.items() if files is not None}


class Text(Settings):
    tokenizer: Literal["regex", "moses", "whitespace"] = "regex"
    lowercase: bool = True
    digits: Literal["keep", "fold"] = "keep"  # fold: every digit becomes #, as in Gigaword
    unicode: Literal["keep", "nfc", "nfkc"] = "nfc"
    max_tokens: Positive = 50  # longer pairs are left out of training; at test, lines are cut after so many, or 200
    subwords: Literal["bpe"] | None = None  # bpe: words are cut into pieces, of which the vocabularies are made

    @property
    def uses_subwords(self) -> bool:
        """True if the vocabularies hold pieces of words instead of whole words."""
        return self.subwords is not None


class VocabularySize(Settings):
    """The most frequent words of each side, and no word below min_count; whichever binds."""

    source: Annotated[int, Field(gt=2)] | None = 30_000  # the end of sentence and the unknown word are two of them
    target: Annotated[int, Field(gt=2)] | None = 30_000
    min_count: Positive = 1


class Pointers(Settings):
    policy: Literal["none", "unknown-words", "entities", "dictionary", "all-matches"] = "unknown-words"
    anonymize: bool = True  # with policy entities: names become per-document ids, as in the paper
    dictionary: Path | Literal["induced"] | None = None  # a TSV of word pairs, or induced from the training text
    unreachable: Literal["unk", "attention"] = "unk"  # what a word becomes that no pointer reaches
    tagger: str | None = None  # a spaCy pipeline for entities, where no tags come with the data

    @model_validator(mode="after")
    def _a_dictionary_is_there_when_it_is_used(self) -> Pointers:
        if self.translates and self.dictionary is None:
            raise ValueError("policy dictionary needs a dictionary: a TSV file of word pairs, or 'induced'")
        if self.tagger is not None and not self.uses_entities:
            raise ValueError(f"a tagger is for policy entities, not for {self.policy}")
        if not self.anonymize and not self.uses_entities:
            raise ValueError(f"anonymize: false is for policy entities; {self.policy} never does it")
        return self

    @property
    def uses_entities(self) -> bool:
        """True if pointers go to named entities, so that every token needs a tag."""
        return self.policy == "entities"

    @property
    def translates(self) -> bool:
        """True if a pointer may write the dictionary's translation of the source word it points at."""
        return self.policy == "dictionary"

    @property
    def anonymous(self) -> bool:
        """True if the model reads and writes a number in the place of each name, as in the paper."""
        return self.uses_entities and self.anonymize

    @property
    def needs_tags(self) -> bool:
        """True if names can only be found from tags that come with the data."""
        return self.anonymous and self.tagger is None


class Vectors(Settings):
    """Where the embeddings start: word2vec trained on the corpus itself, or a word2vec or GloVe file; null: random."""

    source: Path | Literal["word2vec"] | None = None
    target: Path | Literal["word2vec"] | None = None
    width: Positive = 100  # of word2vec vectors trained here


class SwitchSettings(Settings):
    """The switching network (paper §5.3): two layers of the decoder's width."""

    activation: Literal["relu", "tanh", "noisy-tanh"] = "noisy-tanh"
    residual: bool = True
    bias: float = 1.0  # starts towards the shortlist


class Model(Settings):
    embedding: Positive = 256
    hidden: Positive = 512  # of the decoder, and of the encoder in each direction
    encoder: Positive | None = None  # the encoder's own hidden size in each direction
    output: Literal["softmax", "pointer-softmax", "pointer-network"] = "pointer-softmax"
    switch: SwitchSettings = SwitchSettings()
    feed: Literal["word", "source"] = "word"
    """What is fed back after a copied word that the target vocabulary does not have. word: the unknown word's
    embedding. source: the copied word's own in the source, projected."""
    encoder_layers: Positive = 1
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.0  # of embeddings and readout
    tied: bool = False  # the target embeddings are the shortlist's weights
    init: Annotated[float, Field(gt=0)] = 0.01
    """The standard deviation of the first weights; square recurrent ones are orthogonal. dl4mt's 0.01 suits its widths
    of 500 and more; narrow models learn nothing for hundreds of updates from it, and start better from 0.1."""


class Training(Settings):
    optimizer: Literal["adadelta", "adam", "adamw"] = "adadelta"
    learning_rate: Annotated[float, Field(gt=0)] | None = None  # adadelta: 1.0; adam and adamw: 0.001
    warmup: Annotated[int, Field(ge=0)] = 0  # updates over which the learning rate rises to its height
    decay: Literal["none", "linear", "inverse-sqrt"] = "none"  # linear: down to 0 after the last update
    weight_decay: Annotated[float, Field(ge=0)] = 0.0  # of adamw
    clip: Annotated[float, Field(gt=0)] | None = 1.0  # the gradient's norm
    loss: Literal["joint", "marginal"] = "joint"
    """joint: the choice between shortlist and pointer is observed, the paper's objective. marginal: summed out, as in
    pointer-generator networks."""
    batch: Positive = 32
    batch_by: Literal["sentences", "tokens"] = "sentences"  # tokens: of the longer side, padding counted
    accumulate: Positive = 1  # batches whose gradients make one update
    large_vocabulary: Positive | None = None  # candidate words of an update (the paper: 2,000)
    updates: Positive | None = None  # stop after so many; null: only when patience runs out
    epochs: Positive | None = None  # or after so many times through the training data
    validate_every: Positive = 5_000  # updates
    patience: Positive | None = 10  # validations without a new best; null: never stop for it
    score: Literal["bleu", "rouge"] | None = None  # of greedy outputs of the whole dev part, at every validation
    select: Literal["nll", "score"] = "nll"  # of the dev part: by which the best weights are kept
    samples: Annotated[int, Field(ge=0)] = 4  # dev outputs shown at every validation
    checkpoint_minutes: Annotated[float, Field(gt=0)] = 10.0
    precision: Literal["float32", "bfloat16", "float16"] = "float32"  # the latter two are for GPUs
    device: str = "auto"
    threads: Positive | None = None  # of the CPU; null: torch's own choice
    seed: Annotated[int, Field(ge=0, lt=1 << 62)] = 1

    @model_validator(mode="after")
    def _fits_together(self) -> Training:
        if self.weight_decay and self.optimizer != "adamw":
            raise ValueError(f"weight_decay is adamw's, not {self.optimizer}'s")
        if self.decay == "linear" and self.updates is None:
            raise ValueError("decay linear ends at the last update: set training.updates")
        if self.select == "score" and self.score is None:
            raise ValueError("select: score needs training.score: bleu or rouge")
        return self


class Search(Settings):
    """How an output is looked for. beam 1 is greedy."""

    beam: Annotated[int, Field(gt=0, le=1_000)] = 5
    nbest: Positive = 1
    ranking: Literal["joint", "marginal"] = "joint"
    """joint: words and locations compete, each with its own probability, the paper's rule. marginal: the same word's
    probabilities are summed first."""
    normalize: Literal["none", "dl4mt", "gnmt"] = "dl4mt"
    """What a log-probability is divided by. dl4mt: the length, the end counted. gnmt: ((5 + length) / 6)^alpha."""
    alpha: Annotated[float, Field(ge=0, le=100)] = 0.6
    coverage: Annotated[float, Field(ge=0)] = 0.0  # GNMT's beta: a penalty for source words that got little attention
    min_length: Annotated[int, Field(ge=0)] = 0
    max_length: Annotated[int, Field(gt=0, le=100_000)] = 200
    max_ratio: Annotated[float, Field(gt=0)] | None = 3.0  # at most so many words for each source word, and ten more
    block_ngrams: Positive | None = None  # no n words in a row twice
    allow_unk: bool = False  # false: never the unknown word, but the best location or the next word
    unk_replace: bool = False  # the older trick: an unknown word becomes the source word of most attention
    large_vocabulary: Positive | None = None  # candidate words of a batch; null: all of the shortlist

    @model_validator(mode="after")
    def _fits_together(self) -> Search:
        if self.nbest > self.beam:
            raise ValueError(f"nbest ({self.nbest}) cannot be larger than beam ({self.beam})")
        if self.min_length > self.max_length:
            raise ValueError(f"min_length ({self.min_length}) cannot be larger than max_length ({self.max_length})")
        return self


CORPUS = {"data", "text", "vocabulary", "pointers", "embeddings"}  # the sections that decide a prepared corpus


class Config(Settings):
    """One experiment, as its YAML file has it."""

    data: Data
    text: Text = Text()
    vocabulary: VocabularySize = VocabularySize()
    pointers: Pointers = Pointers()
    embeddings: Vectors = Vectors()
    model: Model = Model()
    training: Training = Training()

    @model_validator(mode="after")
    def _a_choice_is_observed_where_it_is_chosen(self) -> Config:
        if self.training.loss == "joint" or self.model.output != "pointer-softmax":
            return self
        pointers = self.pointers
        if pointers.unreachable == "attention":
            raise ValueError("loss marginal sums the choices out: pointers.unreachable attention has no say in it")
        if pointers.policy in ("none", "all-matches") or (pointers.uses_entities and not pointers.anonymize):
            what = f"pointers.policy {pointers.policy} has no say in it: take unknown-words"
            raise ValueError(f"loss marginal sums the choices out, whichever word is copied: {what}")
        return self

    @model_validator(mode="after")
    def _pieces_are_no_words(self) -> Config:
        if not self.text.uses_subwords:
            return self
        if self.pointers.uses_entities or self.pointers.translates or self.pointers.dictionary is not None:
            what = f"policy {self.pointers.policy}" if self.pointers.dictionary is None else "pointers.dictionary"
            raise ValueError(f"{what} is for whole words, which text.subwords cuts into pieces: one or the other")
        if self.vocabulary.source is None or self.vocabulary.target is None:
            raise ValueError("text.subwords merges until the vocabulary is full: give vocabulary.source and .target")
        return self

    @model_validator(mode="after")
    def _entities_have_tags(self) -> Config:
        if self.pointers.uses_entities and self.pointers.tagger is None:
            for name, files in self.data.splits().items():
                if files.source_tags is None or files.target_tags is None:
                    raise ValueError(
                        f"policy entities needs tags: data.{name}.source_tags and data.{name}.target_tags, "
                        "or pointers.tagger with the name of a spaCy pipeline"
                    )
        return self


def read_config(path: str | Path, changes: Sequence[str] | Mapping[str, Any] = ()) -> Config:
    """A YAML file with changes laid over it, such as "model.hidden=256" or {"model.hidden": 256}, checked whole."""
    import yaml

    try:
        values = yaml.safe_load(Path(path).read_bytes())
    except OSError as error:
        raise Misuse(f"cannot be read: {error.strerror}", path) from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        mark = getattr(error, "problem_mark", None)
        what = getattr(error, "problem", None) or str(error)
        raise Misuse(f"not YAML: {what}", path, None if mark is None else mark.line + 1) from None
    if not isinstance(values, dict):
        raise Misuse("settings are sections with keys; see docs/configuration.md", path)
    for key, value in (changes if isinstance(changes, Mapping) else pairs(changes)).items():
        section = values
        *outer, last = key.split(".")
        for name in outer:
            section = section.setdefault(name, {})
            if not isinstance(section, dict):
                raise Misuse(f"--set {key}: {name} is not a section")
        section[last] = value
    return checked(Config, values, path)


def pairs(changes: Sequence[str]) -> dict[str, Any]:
    """What `--set key=value` gives, the values read as YAML."""
    import yaml

    found = {}
    for change in changes:
        key, equals, value = change.partition("=")
        if not equals:
            raise Misuse(f"--set {change}: write it as section.key=value")
        try:
            found[key] = yaml.safe_load(value)
        except yaml.YAMLError:
            raise Misuse(f"--set {change}: {value!r} is not a YAML value") from None
    return found


class RarestWord(Settings):
    """One run of the rarest-word task (paper §5.1). The defaults are the paper's, where it gives them."""

    head: Literal["softmax", "summary", "annotations"] = "summary"
    """softmax: over all words. summary: pointer softmax, l_t from the last state alone, as the paper's text has it.
    annotations: pointer softmax, l_t a pointer network over all the states."""
    words: Positive = 600
    rare: Positive = 60  # the rarest so many words are pointed at
    length: Positive = 7
    p: Probability = 0.001  # a word of rank k is drawn with weight (1 - p)^k; the paper does not give p
    training: Positive | None = None  # so many fixed sequences; None: drawn afresh, as in the paper
    min_count: Positive = 5  # words seen less often in a fixed training set are read as unknown (paper §5.2)
    validation: Positive = 5_000
    test: Positive = 50_000
    hidden: Positive = 1000
    batch: Positive = 250
    learning_rate: Annotated[float, Field(gt=0)] = 8e-4
    inverse_temperature: Annotated[float, Field(gt=0)] = 2.0
    updates: Positive = 2_000
    validate_every: Positive = 100
    seed: int = 1

    @model_validator(mode="after")
    def _rare_words_are_some_of_the_words(self) -> RarestWord:
        if self.rare >= self.words:
            raise ValueError(f"rare ({self.rare}) must be below words ({self.words})")
        return self
