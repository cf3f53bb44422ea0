"""The settings of a `PointerModel`, saved as its `config.json`: those of the model below, and our own."""

from __future__ import annotations

from typing import Any, ClassVar

from transformers import AutoConfig
from transformers.configuration_utils import PretrainedConfig


class PointerConfig(PretrainedConfig):  # type: ignore[misc]
    """`base` is the configuration of the encoder–decoder below, with its `model_type`."""

    model_type = "pointer-softmax"
    keys_to_ignore_at_inference: ClassVar[list[str]] = ["past_key_values"]

    def __init__(
        self,
        base: dict[str, Any] | None = None,
        prefix: str = "",
        readout_scale: float = 1.0,
        switch_bias: float = 1.0,
        **others: Any,
    ) -> None:
        """`prefix` is what the model reads before each source line, such as T5's "translate English to French: ".

        What the LM head reads is the decoder's last state times `readout_scale`: T5 with tied weights has one below 1.
        """
        self.base = base or {}
        self.prefix, self.readout_scale, self.switch_bias = prefix, readout_scale, switch_bias
        for name in ("pad_token_id", "eos_token_id", "bos_token_id", "decoder_start_token_id"):
            others.setdefault(name, self.base.get(name))
        super().__init__(**{**others, "is_encoder_decoder": True, "tie_word_embeddings": False})

    def below(self) -> PretrainedConfig:
        """The configuration of the model below, as an object."""
        return AutoConfig.for_model(**self.base)

    def get_text_config(self, decoder: bool | None = None, encoder: bool | None = None) -> PretrainedConfig:
        """What `generate()` asks for the number of layers; before there is a model below, this configuration."""
        return self.below().get_text_config(decoder=decoder, encoder=encoder) if self.base else self


AutoConfig.register("pointer-softmax", PointerConfig)
