"""`add_pointer`: the pointer softmax on top of a model that the user has loaded."""

from __future__ import annotations

from typing import Any

import torch

from pointing.errors import Misuse
from pointing.huggingface.config import PointerConfig
from pointing.huggingface.model import PointerModel

SAME = 1e-2  # how far two computations of the same logits may be apart, of their largest


def add_pointer(model: Any, tokenizer: Any, *, prefix: str = "", switch_bias: float = 1.0) -> PointerModel:
    """The model with the pointer softmax on top, to be fine-tuned. Its LM head is the shortlist; nothing is copied.

    `prefix` is what the model reads before each source line, such as T5's "translate English to French: ". A positive
    `switch_bias` starts the switch towards the shortlist.
    """
    name = type(model).__name__
    if not getattr(model.config, "is_encoder_decoder", False) or model.get_output_embeddings() is None:
        raise Misuse(
            f"{name} is no encoder–decoder with an LM head: load it with AutoModelForSeq2SeqLM.from_pretrained(...)"
        )
    if len(tokenizer) > model.get_output_embeddings().weight.shape[0]:
        raise Misuse(f"the tokenizer has {len(tokenizer)} pieces, but {name} has fewer: is it this model's tokenizer?")
    base = {name: value for name, value in model.config.to_dict().items() if name not in ("dtype", "torch_dtype")}
    config = PointerConfig(base, prefix, _readout_scale(model), switch_bias)
    with_pointer = PointerModel(config, model, tokenizer)
    with_pointer.to(device=model.device, dtype=model.dtype)
    with_pointer.generation_config = model.generation_config
    with_pointer.train(model.training)
    return with_pointer


@torch.no_grad()
def _readout_scale(model: Any) -> float:
    """What the decoder's last state is multiplied by before the LM head reads it: 1, or E^-½ in T5 with tied weights.

    It is found by computing logits both ways, so that an architecture which does anything else is refused.
    """
    was_training = model.training
    model.eval()
    head = model.get_output_embeddings()
    not_padding = [k for k in range(head.weight.shape[0]) if k != model.config.pad_token_id]
    ids = torch.tensor([not_padding[:3]], device=model.device)
    h = model.get_encoder()(ids)[0]
    embedded = model.get_decoder().get_input_embeddings()(ids)
    s = model.get_decoder()(inputs_embeds=embedded, encoder_hidden_states=h, use_cache=False)[0]
    logits = model(input_ids=ids, decoder_input_ids=ids, use_cache=False).logits
    logits = logits - getattr(model, "final_logits_bias", 0.0)
    model.train(was_training)
    for scale in (1.0, s.shape[-1] ** -0.5):
        if (head(s * scale) - logits).abs().max() <= SAME * logits.abs().max():
            return float(scale)
    raise Misuse(f"{type(model).__name__} does more between its decoder and its LM head than pointing knows of")
