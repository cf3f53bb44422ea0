"""The pointer softmax on top of any encoder–decoder of Hugging Face `transformers`: T5, BART, Marian, mBART, NLLB.

`add_pointer(model, tokenizer)` is the way in; docs/huggingface.md shows all of it.
"""

from __future__ import annotations

from importlib.util import find_spec

from pointing.errors import missing_extra

if find_spec("transformers") is None:
    raise missing_extra("transformers", "transformers")

from pointing.huggingface.adding import add_pointer
from pointing.huggingface.collator import PointerCollator
from pointing.huggingface.config import PointerConfig
from pointing.huggingface.model import PointerModel
from pointing.huggingface.targets import count_words

__all__ = ["PointerCollator", "PointerConfig", "PointerModel", "add_pointer", "count_words"]
