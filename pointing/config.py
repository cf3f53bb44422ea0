"""All settings of an experiment, with their defaults. They are checked before any work begins."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from pointing.checking import Settings as Settings
from pointing.checking import checked as checked
from pointing.data_settings import Data as Data
from pointing.data_settings import HeldOut as HeldOut
from pointing.data_settings import Parallel as Parallel
from pointing.data_settings import Positive as Positive
from pointing.data_settings import Table as Table


class Text(Settings):
    """How lines become tokens."""

    tokenizer: Literal["regex", "moses", "whitespace"] = "regex"
    lowercase: bool = True
    digits: Literal["keep", "fold"] = "keep"  # fold: write # for every digit, as Gigaword does
    unicode: Literal["keep", "nfc", "nfkc"] = "nfc"
    max_tokens: Positive = 50  # longer pairs are left out; lines to generate from are cut after this many, or 200
    subwords: Literal["bpe"] | None = None  # bpe: cut words into pieces by byte-pair encoding
    forms: bool = (
        False  # true: learn the case of each word and the space before it, so that outputs are text for people
    )
    protect: Literal["none", "web", "software"] | tuple[str, ...] = "none"
    """Kinds of spans that are one token each and come through unchanged (docs/configuration.md, "Protected spans"): a
    list of kinds, or a preset. software: all kinds, such as formats, tags, addresses, paths, options and key names."""
    protect_patterns: tuple[str, ...] = ()  # regular expressions of further spans to protect

    @property
    def uses_subwords(self) -> bool:
        """True if the vocabularies hold pieces of words instead of whole words."""
        return self.subwords is not None

    @property
    def protects(self) -> bool:
        """True if some spans are protected."""
        return bool(self.protect_patterns) or self.protect not in ("none", ())

    @model_validator(mode="after")
    def _moses_splits_whole_lines(self) -> Text:
        if self.protects and self.tokenizer == "moses":
            raise ValueError("protected spans are for the tokenizers regex and whitespace, not for moses")
        return self


class VocabularySize(Settings):
    """How many words each vocabulary holds at most; the most frequent words are taken. null: no limit."""

    source: Annotated[int, Field(gt=2)] | None = 30_000  # including the end of sentence and the unknown word
    target: Annotated[int, Field(gt=2)] | None = 30_000  # the shortlist; it includes the same two
    min_count: Positive = 1  # words seen less often in the training text are left out
    copied_min_count: Positive | None = None
    """The same for words that are nearly always copied: of the target's words those that the source holds too, such as
    names. Left out of both vocabularies, they are unknown in training, so that pointing is learned. null: min_count."""


class Pointers(Settings):
    """Which target words are learned as pointers into the source (docs/configuration.md, "Policies")."""

    policy: Literal["none", "unknown-words", "entities", "dictionary", "all-matches"] = "unknown-words"
    anonymize: bool = True  # with policy entities: replace each name by a number within its example, as in the paper
    dictionary: Path | Literal["induced"] | None = None  # a TSV file of word pairs, or induced from the training text
    places: Literal["tokens", "words"] = "tokens"
    """What a pointer points at. tokens: each thing that the encoder reads, which with text.subwords is a piece of a
    word. words: a whole source word, however many pieces it is read in; a word that is no single piece of the
    shortlist counts as unknown. With text.forms, hyphenated target words are then cut, so that a name in them can be
    copied; not those that the source has."""
    guidance: Annotated[float, Field(ge=0)] = 0.0
    """Weight of a loss that pulls l_t, at steps that write a shortlist word, to the source word that a word aligner
    links to it (guided attention). 0: none."""
    familiarity: bool = False
    """true: the encoder is also told how often the training text has each source word, and how often it was copied
    there. So a word that was translated before is not taken for a name. Needs text.forms."""
    unreachable: Literal["unk", "attention"] = "unk"
    """The target of a word that is neither in the shortlist nor in the source. unk: the unknown word. attention: a
    pointer to the source position with the most attention (paper §5.3)."""
    tagger: str | None = None  # a spaCy pipeline that finds entities, if the data has no tags

    @model_validator(mode="after")
    def _fits_together(self) -> Pointers:
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
    """First values of the embeddings: word2vec trained on the corpus, or a word2vec or GloVe file; null: random."""

    source: Path | Literal["word2vec"] | None = None
    target: Path | Literal["word2vec"] | None = None
    width: Positive = 100  # numbers in each word2vec vector; must equal model.embedding


class SwitchSettings(Settings):
    """The switching network (paper §5.3): two layers, as wide as the decoder's state."""

    activation: Literal["relu", "tanh", "noisy-tanh"] = "noisy-tanh"
    residual: bool = True  # add the first layer's output to the second's
    bias: float = 1.0  # first value of the last bias; a positive one prefers the shortlist


class Kind(Settings):
    """What encoder and decoder are made of. `kind: transformer` is short for both, `kind: ssru` for such a decoder."""

    encoder: Literal["gru", "transformer"] = "gru"
    decoder: Literal["gru", "transformer", "ssru"] = "gru"
    """gru: the paper's. transformer: attention to the words before. ssru: a Transformer whose attention to the words
    before is a simple recurrence, which is quicker in search."""


def _as_kind(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    return {"encoder": "transformer" if value == "ssru" else value, "decoder": value}


class Model(Settings):
    kind: Annotated[Kind, BeforeValidator(_as_kind)] = Kind()
    embedding: Positive = 256  # numbers in each word's embedding; the width of a Transformer
    hidden: Positive = 512
    """Numbers in a GRU's state (of the encoder: in each direction), and in a Transformer's feed-forward layers."""
    encoder: Positive | None = None  # numbers in the encoder's state in each direction, if it differs from hidden
    output: Literal["softmax", "pointer-softmax", "pointer-network"] = "pointer-softmax"  # the rest is the same
    switch: SwitchSettings = SwitchSettings()
    feed: Literal["word", "source"] = "word"
    """What the decoder reads after a copied word that is not in the target vocabulary. word: the unknown word's
    embedding. source: the embedding that the encoder read at the copied position, projected."""
    encoder_layers: Positive = 1
    decoder_layers: Positive = 1  # of transformer and ssru; the paper's GRU decoder is one layer
    heads: Positive = 4  # of a Transformer's attention; they share its width
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.0  # of embeddings and readout; in a Transformer of all layers
    tied: bool = False  # use the target embeddings as the shortlist's weights
    init: Annotated[float, Field(gt=0)] = 0.01
    """Standard deviation of a GRU's first weights; square recurrent matrices start orthogonal. dl4mt's 0.01 suits
    widths of 500 and more. A narrow model learns nothing from it for hundreds of updates: take 0.1 for 200 units or
    fewer. Transformers start as Glorot and Bengio (2010) say."""

    @model_validator(mode="after")
    def _fits_together(self) -> Model:
        if self.uses_transformer and self.embedding % (2 * self.heads):
            raise ValueError(f"embedding ({self.embedding}) should be a multiple of twice the heads ({self.heads})")
        if self.kind.decoder == "gru" and self.decoder_layers > 1:
            raise ValueError("decoder_layers is for the decoders transformer and ssru; the paper's GRU is one layer")
        return self

    @property
    def uses_gru(self) -> bool:
        """True if encoder or decoder is a GRU."""
        return self.kind.encoder == "gru" or self.kind.decoder == "gru"

    @property
    def uses_transformer(self) -> bool:
        """True if encoder or decoder is made of attention layers."""
        return self.kind.encoder != "gru" or self.kind.decoder != "gru"

    @property
    def uses_switch(self) -> bool:
        """True if a switching network decides between the shortlist and the pointers."""
        return self.output == "pointer-softmax"


class Training(Settings):
    """How the network learns, when it is validated and saved, and when training ends."""

    optimizer: Literal["adadelta", "adam", "adamw"] = "adadelta"
    learning_rate: Annotated[float, Field(gt=0)] | None = None  # null: 1.0 for adadelta, 0.001 for adam and adamw
    warmup: Annotated[int, Field(ge=0)] = 0  # updates over which the learning rate rises from 0 to its full value
    decay: Literal["none", "linear", "inverse-sqrt"] = "none"  # after warmup; linear: to 0 after the last of `updates`
    weight_decay: Annotated[float, Field(ge=0)] = 0.0  # for adamw only
    clip: Annotated[float, Field(gt=0)] | None = 1.0  # largest norm of the whole gradient; null: no limit
    loss: Literal["joint", "marginal"] = "joint"
    """joint: the choice between shortlist and pointer is observed, the paper's objective. marginal: a word's
    probability is summed over shortlist and pointers, as in pointer-generator networks."""
    smoothing: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """Label smoothing: this share of what the shortlist softmax learns is spread evenly over all its words."""
    average: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """Above 0, the weights that are validated and kept are a running average, which keeps this share of itself at each
    update: 0.999 averages about 1,000 updates. 0: the last weights."""
    batch: Positive = 32  # examples in a batch, or tokens
    batch_by: Literal["sentences", "tokens"] = "sentences"  # tokens: of the longer side, padding included
    accumulate: Positive = 1  # batches whose gradients are added up for one update
    large_vocabulary: Positive | None = (
        None  # candidate words of one update (the paper: 2,000); null: the whole shortlist
    )
    updates: Positive | None = None  # end after this many updates; null: no limit
    epochs: Positive | None = None  # end after this many passes over the training data; null: no limit
    validate_every: Positive = 5_000  # updates between two validations
    patience: Positive | None = 10  # end after this many validations without a new best one; null: never
    score: Literal["bleu", "rouge"] | None = None  # score greedy outputs of the whole dev part at every validation
    select: Literal["nll", "score"] = "nll"  # which number of the dev part decides which weights are best
    samples: Annotated[int, Field(ge=0)] = 4  # dev outputs shown at every validation
    checkpoint_minutes: Annotated[float, Field(gt=0)] = 10.0  # at most this long between two checkpoints
    precision: Literal["float32", "bfloat16", "float16"] = "float32"  # the last two are meant for GPUs
    device: str = "auto"  # auto, cpu, cuda or cuda:1
    threads: Positive | None = None  # CPU threads; null: torch decides
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
    """How outputs are searched for. A beam of 1 is greedy search."""

    beam: Annotated[int, Field(gt=0, le=1_000)] = 5  # hypotheses kept at each step
    nbest: Positive = 1  # outputs returned for each line
    ranking: Literal["joint", "marginal"] = "joint"
    """joint: shortlist words and source positions compete, each with its own probability, as in the paper. marginal:
    the probabilities of the same word are summed first."""
    normalize: Literal["none", "dl4mt", "gnmt"] = "dl4mt"
    """What a log-probability is divided by. dl4mt: the length, including the end. gnmt: ((5 + length) / 6)^alpha."""
    alpha: Annotated[float, Field(ge=0, le=100)] = 0.6  # for normalize: gnmt only
    coverage: Annotated[float, Field(ge=0)] = 0.0  # GNMT's beta: penalty for source words that got little attention
    min_length: Annotated[int, Field(ge=0)] = 0  # words of an output, at least
    max_length: Annotated[int, Field(gt=0, le=100_000)] = 200  # words of an output, at most
    max_ratio: Annotated[float, Field(gt=0)] | None = 3.0  # at most this many words for each source word, plus ten
    block_ngrams: Positive | None = None  # n: no n words in a row are written twice
    allow_unk: bool = False  # false: instead of the unknown word, take the best position or the next word
    unk_replace: bool = False  # replace an unknown word by the source word with the most attention
    large_vocabulary: Positive | None = None  # candidate words of a batch; null: the whole shortlist

    @model_validator(mode="after")
    def _fits_together(self) -> Search:
        if self.nbest > self.beam:
            raise ValueError(f"nbest ({self.nbest}) cannot be larger than beam ({self.beam})")
        if self.min_length > self.max_length:
            raise ValueError(f"min_length ({self.min_length}) cannot be larger than max_length ({self.max_length})")
        if self.alpha != Search.model_fields["alpha"].default and self.normalize != "gnmt":
            raise ValueError(f"alpha does nothing with normalize: {self.normalize}; it is for normalize: gnmt")
        return self


CORPUS = {"data", "text", "vocabulary", "pointers", "embeddings"}  # the sections that a prepared corpus depends on


class Config(Settings):
    """One experiment: what its YAML file says, and defaults for the rest."""

    data: Data
    text: Text = Text()
    vocabulary: VocabularySize = VocabularySize()
    pointers: Pointers = Pointers()
    embeddings: Vectors = Vectors()
    model: Model = Model()
    training: Training = Training()

    @property
    def points_at_words(self) -> bool:
        """True if the encoder reads pieces, and pointers point at whole words."""
        return self.text.uses_subwords and self.pointers.places == "words"

    @property
    def cuts_compounds(self) -> bool:
        """True if hyphenated target words are cut, unless the source has them, so that their parts can be copied."""
        return self.points_at_words and self.text.forms

    @model_validator(mode="after")
    def _the_marginal_loss_has_no_observed_choices(self) -> Config:
        if self.training.loss == "joint" or not self.model.uses_switch:
            return self
        if self.pointers.unreachable == "attention":
            raise ValueError("loss marginal sums the choices out: pointers.unreachable attention has no say in it")
        policy, by_name = self.pointers.policy, self.pointers.uses_entities and not self.pointers.anonymize
        if policy in ("none", "all-matches") or by_name:
            reason = "loss marginal sums the choices out, whichever word is copied"
            raise ValueError(f"{reason}: pointers.policy {policy} has no say in it: take unknown-words")
        return self

    @model_validator(mode="after")
    def _subwords_are_not_words(self) -> Config:
        if not self.text.uses_subwords:
            if self.pointers.places == "words":
                raise ValueError("pointers.places: words is for text.subwords; without them each token is a word")
            return self
        if self.vocabulary.source is None or self.vocabulary.target is None:
            raise ValueError("text.subwords merges until the vocabulary is full: give vocabulary.source and .target")
        if self.pointers.uses_entities or self.pointers.dictionary is not None:
            key = "pointers.dictionary" if self.pointers.dictionary is not None else "policy entities"
            raise ValueError(f"{key} is for whole words, which text.subwords cuts into pieces: one or the other")
        if self.vocabulary.copied_min_count is not None:
            raise ValueError("vocabulary.copied_min_count is for whole words, which text.subwords cuts into pieces")
        return self

    @model_validator(mode="after")
    def _familiar_words_are_whole(self) -> Config:
        if self.pointers.familiarity and not self.text.forms:
            raise ValueError("pointers.familiarity is read together with the forms of words: set text.forms: true")
        if self.pointers.familiarity and self.text.uses_subwords and not self.points_at_words:
            raise ValueError("pointers.familiarity is of whole words: set pointers.places: words")
        return self

    @model_validator(mode="after")
    def _names_have_no_alignment(self) -> Config:
        if self.pointers.guidance and self.pointers.uses_entities:
            raise ValueError("pointers.guidance aligns words, and with policy entities tags say what a token is")
        return self

    @model_validator(mode="after")
    def _tags_decide_what_a_token_is(self) -> Config:
        if self.pointers.uses_entities and (self.text.forms or self.text.protects):
            key = "text.forms" if self.text.forms else "text.protect"
            raise ValueError(f"{key} is not for policy entities, where tags say what a token is")
        return self

    @model_validator(mode="after")
    def _entities_have_tags(self) -> Config:
        if not self.pointers.uses_entities or self.pointers.tagger is not None:
            return self
        for name, files in self.data.given().items():
            if isinstance(files, Table):
                raise ValueError(
                    f"data.{name}: policy entities needs two files of lines, with tags, or pointers.tagger"
                )
            if files.source_tags is None or files.target_tags is None:
                needed = f"data.{name}.source_tags and data.{name}.target_tags"
                raise ValueError(f"policy entities needs tags: {needed}, or a spaCy pipeline as pointers.tagger")
        return self
