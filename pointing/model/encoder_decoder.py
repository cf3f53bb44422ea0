"""What all kinds of models share: an encoder, target embeddings, the pointer softmax on top, and how words are written.

A kind adds a decoder between embeddings and output (`seq2seq.py`: the paper's GRU; `transformer.py`). All of them are
a `Decoder` as model/decoder.py says.

B batch, T target steps, J source positions; widths E embedding, A annotation.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from pointing.config import Model
from pointing.model.decoder import SearchForm
from pointing.model.encoder import Embedding, GRUEncoder, Reads, of_positions
from pointing.model.form_head import FormHead
from pointing.model.transformer_encoder import TransformerEncoder
from pointing.pointer_softmax import AlwaysPoint, NeverPoint, PointerSoftmax, Switch
from pointing.system.processor import use_wide_products
from pointing.text.vocabulary import UNK


class EncoderDecoder(nn.Module):
    """The parts that do not depend on the kind of the decoder."""

    encoder: GRUEncoder | TransformerEncoder
    embedding: Embedding
    copied: nn.Linear | None  # what is fed back after a copied word, with `feed: source`
    dropout: nn.Dropout
    output: PointerSoftmax
    form_head: FormHead | None

    def for_search(self) -> SearchForm[Any]:
        """Its search form, as model/decoder.py says."""
        if self.training:
            raise ValueError("a model in training mode has dropout and noise: call eval() before a search")
        use_wide_products()
        return self.search_form()

    def search_form(self) -> SearchForm[Any]:
        """The search form of this kind."""
        raise NotImplementedError

    def start_output(self, settings: Model) -> None:
        """The output layer's first weights that the settings decide; after the others, which set all biases to 0."""
        if isinstance(self.output.switch, Switch):
            nn.init.constant_(self.output.switch.last.bias, settings.switch.bias)
        if settings.tied and self.output.shortlist is not None:
            self.output.shortlist.weight = self.embedding.weight

    def read_words(self, x: Tensor, x_mask: Tensor, place: Tensor | None) -> Tensor | None:
        """What copying each position feeds back, (B, J, E), where that is not always the unknown word."""
        if self.copied is None:
            return None
        fed: Tensor = self.copied(of_positions(self.encoder.embedding(x), place, x_mask))
        return fed

    def feed(self, y: Tensor, read_words: Tensor | None) -> Tensor:
        """y_{t-1} as the decoder reads it, (B, T, E), from words y (B, T): a target id, or V + the copied position.

        A copied word that the target vocabulary has is fed back as itself. Another one is fed back as UNK, or with
        `feed: source` as what the encoder read.
        """
        copied = y >= self.output.words
        y_prev: Tensor = self.embedding(y.masked_fill(copied, UNK))
        if read_words is not None:
            position = (y - self.output.words).clamp(min=0).unsqueeze(-1)
            from_source = read_words.gather(1, position.expand(-1, -1, read_words.shape[-1]))
            y_prev = torch.where(copied.unsqueeze(-1), from_source, y_prev)
        fed: Tensor = self.dropout(y_prev)
        return fed

    def form_logits(
        self, readout: Tensor, x: Tensor, x_mask: Tensor, y: Tensor, place: Tensor | None = None
    ) -> Tensor | None:
        """(B, T, FORMS) how each word of y (B, T) is written."""
        if self.form_head is None:
            return None
        logits: Tensor = self.form_head(readout, self.feed(y, self.read_words(x, x_mask, place)))
        return logits


def make_encoder(settings: Model, size: int, sparse: bool, reads: Reads) -> tuple[GRUEncoder | TransformerEncoder, int]:
    """The encoder of the settings, and the width of its annotations."""
    E, layers, dropout = settings.embedding, settings.encoder_layers, settings.dropout
    if settings.kind.encoder == "transformer":
        return TransformerEncoder(size, E, settings.hidden, settings.heads, layers, dropout, sparse, reads), E
    hidden = settings.encoder or settings.hidden
    return GRUEncoder(size, E, hidden, layers, dropout, sparse, reads), 2 * hidden


def make_output(settings: Model, words: int, readout: int, evidence: int, hidden: int) -> PointerSoftmax:
    """The output layer: `settings.output` changes it and nothing else."""
    switch: Switch | NeverPoint | AlwaysPoint
    if settings.output == "pointer-softmax":
        switch = Switch(evidence, hidden, activation=settings.switch.activation, residual=settings.switch.residual)
    else:
        switch = NeverPoint() if settings.output == "softmax" else AlwaysPoint()
    # A model that has diverged computes NaN. It has to reach the loss, by which the trainer knows.
    return PointerSoftmax(words, readout, switch, check_values=False)
