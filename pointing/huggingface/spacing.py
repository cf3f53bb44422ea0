"""Where a copied word is written with a space before it.

A piece of the tokenizer says itself whether it begins with a space; a copied word does not. The rule of this module
decides, in training as in use. Where a text has a space that the rule does not write, a piece that is a space alone
stands before the pointer; where it has none and the rule writes one, the word is not taught as a pointer.
"""

from __future__ import annotations

import re

_OPENS = re.compile(r"[(\[{“‘„«‹¿¡$£€]\Z|\S[/=\\–—-]\Z")
_ELIDED = re.compile(r"(?i:\b(?:[ldjmtsnc]|(?:jus|lors|puis|quoi)?qu))['’]\Z")
_CLOSES = re.compile(r"\A[,.;:!?%)\]}”’»›…]")
_UNSPACED = re.compile(  # Thai, Lao, Burmese, Khmer, kana, Han, and their punctuation
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3000-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uff00-\uff0f\U00020000-\U0003ffff]"
)


def has_space(before: str, word: str) -> bool:
    """True if a space is written between the text so far and a copied word."""
    if not before or before[-1].isspace() or not word:
        return False
    if _OPENS.search(before) or _ELIDED.search(before) or _CLOSES.match(word):
        return False
    if before[-1] in "\"'`":  # an opening quotation mark has no letter before it
        return len(before) > 1 and not before[-2].isspace()
    return not (_UNSPACED.match(before[-1]) or _UNSPACED.match(word[0]))
