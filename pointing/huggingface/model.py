"""`PointerModel`: an encoder–decoder of `transformers` whose output layer is the pointer softmax.

Choices are the tokenizer's V ids, and V + j for the j-th word of the source. `forward` gives log f_t as logits
(B, T, V + J), so that `generate()`, with its beams, cache and processors, chooses among pieces and source words alike.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer
from transformers.generation import GenerationMixin
from transformers.modeling_outputs import Seq2SeqLMOutput
from transformers.modeling_utils import PreTrainedModel

from pointing.errors import Misuse
from pointing.huggingface.config import PointerConfig
from pointing.huggingface.reading import Reading, places, pooled
from pointing.huggingface.translating import Translating
from pointing.model.location import Location
from pointing.pointer_softmax import PointerSoftmax, Switch

IGNORED = -100  # the label that no loss counts, as everywhere in transformers


class LanguageHead(nn.Linear):
    """The LM head of the model below, with its bias: the shortlist. It holds no weights of its own."""

    def __init__(self, model: Any) -> None:
        nn.Module.__init__(self)
        head = model.get_output_embeddings()
        bias, added = head.bias, getattr(model, "final_logits_bias", None)  # the latter is BART's and Marian's
        if added is not None:
            bias = added.squeeze(0) if bias is None else bias + added.squeeze(0)
        self.weight = head.weight
        self.bias = bias
        self.out_features, self.in_features = head.weight.shape


class ReadingEncoder(nn.Module):
    """The encoder below, and the annotations of words: what `generate()` computes once for each source."""

    def __init__(self, model: PointerModel) -> None:
        super().__init__()
        self.read = model.read

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor | None = None, word_pieces: Tensor | None = None, **others: Any
    ) -> Reading:
        return self.read(input_ids, attention_mask, word_pieces, **others)


class PointerModel(Translating, PreTrainedModel, GenerationMixin):  # type: ignore[misc]
    """Made by `add_pointer`, or `PointerModel.from_pretrained(folder)`. `tokenizer` is saved and loaded with it."""

    config_class = PointerConfig
    base_model_prefix = "below"
    main_input_name = "input_ids"
    supports_gradient_checkpointing = True
    _supports_sdpa = True

    def __init__(self, config: PointerConfig, below: Any = None, tokenizer: Any = None) -> None:
        super().__init__(config)
        self.below = AutoModelForSeq2SeqLM.from_config(config.below()) if below is None else below
        self.tokenizer = tokenizer
        head = LanguageHead(self.below)
        self.V, S = head.out_features, head.in_features  # choices from V on are source words
        self.pad = int(self.below.config.pad_token_id)
        A = self.below.get_encoder().config.hidden_size
        self.locations = Location(S, A, A)
        self.switch = Switch(S + A, S, bias=config.switch_bias)
        self.post_init()

    def _init_weights(self, module: nn.Module) -> None:
        """Nothing: all parts start as their own classes say, and the model below is what it was."""

    def get_encoder(self, modality: str | None = None) -> ReadingEncoder:
        return ReadingEncoder(self)

    def get_decoder(self) -> Any:
        return self.below.get_decoder()

    def get_output_embeddings(self) -> Any:
        return self.below.get_output_embeddings()

    def prepare_decoder_input_ids_from_labels(self, labels: Tensor) -> Tensor:
        """What the decoder reads: the labels, one step later, as the model below shifts them if it says how."""
        if hasattr(self.below, "prepare_decoder_input_ids_from_labels"):
            shifted: Tensor = self.below.prepare_decoder_input_ids_from_labels(labels)
            return shifted
        start = self.generation_config.decoder_start_token_id
        return F.pad(labels[:, :-1], (1, 0), value=start).clamp(min=0)  # any id will do at labels that do not count

    def read(
        self, input_ids: Tensor, attention_mask: Tensor | None, word_pieces: Tensor | None, **others: Any
    ) -> Reading:
        """The encoder's states of pieces, and what is pointed at, compared with, and read after a copy, of words."""
        if word_pieces is None:
            raise Misuse(
                "the model was given input_ids without word_pieces, so it does not know what it may copy: "
                "give generate(**model.encode(lines)), or batches of PointerCollator(model)"
            )
        given = {"output_attentions", "output_hidden_states"} & others.keys()
        encoder = self.below.get_encoder()
        encoded = encoder(input_ids, attention_mask=attention_mask, **{name: others[name] for name in given})
        h = pooled(encoded[0], word_pieces)  # (B, J, A)
        copied = pooled(self._embedding_of_copies()(input_ids), word_pieces)  # (B, J, E)
        return Reading(
            last_hidden_state=encoded[0],
            hidden_states=getattr(encoded, "hidden_states", None),
            attentions=getattr(encoded, "attentions", None),
            h=h,
            h_keys=self.locations.key(h),
            copied=copied,
        )

    def _embedding_of_copies(self) -> Any:
        """The decoder's embeddings; the encoder's where the two have vocabularies of their own (some Marian models)."""
        is_shared = getattr(self.below.config, "share_encoder_decoder_embeddings", True)
        return (self.below.get_decoder() if is_shared else self.below.get_encoder()).get_input_embeddings()

    def _embed(self, ids: Tensor, copied: Tensor) -> Tensor:
        """What the decoder reads, (B, T, E): ids (B, T) are pieces, or V + the position of a copied word."""
        y = self.below.get_decoder().get_input_embeddings()(ids.clamp(max=self.V - 1))
        position = (ids - self.V).clamp(min=0).unsqueeze(-1).expand_as(y)
        return torch.where((ids < self.V).unsqueeze(-1), y, copied.gather(1, position).to(y.dtype))

    def forward(
        self,
        input_ids: Any = None,
        attention_mask: Tensor | None = None,
        word_pieces: Any = None,
        decoder_input_ids: Any = None,
        decoder_attention_mask: Tensor | None = None,
        encoder_outputs: Reading | None = None,
        past_key_values: Any = None,
        labels: Tensor | None = None,
        use_cache: bool | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        return_dict: bool | None = None,
    ) -> Any:
        """log f_t as logits (B, T, V + J); with labels (B, T) the mean of -log p over them, IGNORED ones left out.

        `word_pieces` (B, J, 2) are each source word's first piece and the one after its last. In training with labels
        there are no logits: only the probability of the labels is computed.
        """
        wanted = {"output_attentions": output_attentions, "output_hidden_states": output_hidden_states}
        wanted = {name: value for name, value in wanted.items() if value is not None}
        reading = (
            self.read(input_ids, attention_mask, word_pieces, **wanted) if encoder_outputs is None else encoder_outputs
        )
        if decoder_input_ids is None:
            if labels is None:
                raise Misuse(
                    "the model was given neither labels nor decoder_input_ids; if this is Trainer with "
                    "label_smoothing_factor, leave that out: labels that are source words cannot be smoothed"
                )
            decoder_input_ids = self.prepare_decoder_input_ids_from_labels(labels)
        decoded = self.below.get_decoder()(
            inputs_embeds=self._embed(decoder_input_ids, reading.copied),
            attention_mask=decoder_attention_mask,
            encoder_hidden_states=reading.last_hidden_state,
            encoder_attention_mask=attention_mask,
            past_key_values=past_key_values,
            use_cache=use_cache if labels is None else False,
            **wanted,
        )
        layer, arguments = self.layer(), self._arguments(decoded[0], reading, places(word_pieces))
        loss = logits = None
        if labels is not None:
            log_p = layer.log_likelihood(*arguments, labels, labels != IGNORED)
            loss = -log_p.sum() / (labels != IGNORED).sum()
        if labels is None or not self.training:
            logits = layer(*arguments)
        output = Seq2SeqLMOutput(
            loss=loss,
            logits=logits,
            past_key_values=getattr(decoded, "past_key_values", None),
            decoder_hidden_states=getattr(decoded, "hidden_states", None),
            decoder_attentions=getattr(decoded, "attentions", None),
            cross_attentions=getattr(decoded, "cross_attentions", None),
            encoder_last_hidden_state=reading.last_hidden_state,
            encoder_hidden_states=reading.hidden_states,
            encoder_attentions=reading.attentions,
        )
        return output.to_tuple() if return_dict is False else output

    def layer(self) -> PointerSoftmax:
        """The paper's output layer, made of parts that belong to this model and to the one below."""
        head = LanguageHead(self.below)
        return PointerSoftmax(head.out_features, head.in_features, self.switch, shortlist=head)

    def _arguments(self, s: Tensor, reading: Reading, x_mask: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The layer's readout, evidence [s_t ; c_t] and log l_t; c_t is the mean of the annotations under l_t."""
        log_l, c = self.locations(s, reading.h_keys, reading.h, x_mask)
        return s * self.config.readout_scale, torch.cat([s, c], -1), log_l

    def chosen(self, labels: Tensor, decoder_input_ids: Tensor, **source: Tensor) -> tuple[Tensor, Tensor]:
        """log p of the labels, and d_t, both (B, T), of sequences that were generated."""
        reading = self.read(**source)
        decoded = self.below.get_decoder()(
            inputs_embeds=self._embed(decoder_input_ids, reading.copied),
            encoder_hidden_states=reading.last_hidden_state,
            encoder_attention_mask=source["attention_mask"],
        )
        arguments = self._arguments(decoded[0], reading, places(source["word_pieces"]))
        log_p = self.layer().log_likelihood(*arguments, labels, labels != IGNORED)
        return log_p, self.switch(arguments[1]).sigmoid()

    def save_pretrained(self, save_directory: str | Path, **options: Any) -> None:
        """A folder with the configuration, the weights (safetensors) and the tokenizer."""
        super().save_pretrained(save_directory, **options)
        if self.tokenizer is not None:
            self.tokenizer.save_pretrained(save_directory)

    @classmethod
    def from_pretrained(cls, folder: str | Path, *arguments: Any, **options: Any) -> PointerModel:
        """What `save_pretrained` wrote, with its tokenizer."""
        model: PointerModel = super().from_pretrained(folder, *arguments, **options)
        model.tokenizer = AutoTokenizer.from_pretrained(folder)
        return model

    def resize_token_embeddings(self, *arguments: Any, **options: Any) -> Any:
        raise Misuse("source words are numbered from the last piece on: resize the embeddings before add_pointer")


AutoModelForSeq2SeqLM.register(PointerConfig, PointerModel)
