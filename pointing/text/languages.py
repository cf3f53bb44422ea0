"""Which language a column, a file or a text is in, as far as names and common words tell."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

NAMES = {
    "ar": "arabic",
    "bg": "bulgarian",
    "ca": "catalan català",
    "cs": "czech čeština",
    "da": "danish dansk",
    "de": "german deutsch allemand",
    "el": "greek",
    "en": "english anglais englisch inglés",
    "es": "spanish español espagnol castellano",
    "et": "estonian",
    "eu": "basque",
    "fa": "persian farsi",
    "fi": "finnish suomi",
    "fr": "french français francais französisch",
    "gl": "galician",
    "he": "hebrew",
    "hi": "hindi",
    "hr": "croatian",
    "hu": "hungarian magyar",
    "it": "italian italiano",
    "ja": "japanese",
    "ko": "korean",
    "lt": "lithuanian",
    "lv": "latvian",
    "nb": "norwegian norsk bokmål",
    "nl": "dutch nederlands",
    "pl": "polish polski",
    "pt": "portuguese português",
    "ro": "romanian română",
    "ru": "russian",
    "sk": "slovak",
    "sl": "slovenian",
    "sr": "serbian",
    "sv": "swedish svenska",
    "tr": "turkish türkçe",
    "uk": "ukrainian",
    "vi": "vietnamese",
    "zh": "chinese",
}
_CODES = {name: code for code, names in NAMES.items() for name in names.split()}
COMMON_WORDS = {  # of text, also of short strings, that other languages do not have or have less often
    "cs": "je na se pro není nebo při soubor",
    "da": "og er ikke til for det af på kan",
    "de": "der die das und nicht ist ein eine zu für mit den von werden auf im",
    "en": "the of to and is not for in you your are with this be or file",
    "es": "el los las de y no es para con una un del por que se su",
    "fi": "ei ja on tai että ole tiedosto",
    "fr": "le la les de des et est pas pour une un du dans en vous ne à que sur",
    "hu": "a az és nem egy hogy fájl",
    "it": "il di e non è per una un del che con la si dei",
    "nl": "de het een en van niet is voor met naar te op dit",
    "pl": "nie jest na do się lub plik dla",
    "pt": "o os as de e não é para com uma um do da que em",
    "ro": "și nu este pentru cu la fișier un o de",
    "sv": "och är inte att för det en ett på till av kan",
    "tr": "bir ve bu için değil dosya ile",
}
_WORDS = {code: frozenset(words.split()) for code, words in COMMON_WORDS.items()}
LEAST_SHARE = 0.05  # of a text's words that must be common words of its language
LEAST_LEAD = 1.2  # times as many of them as of the next language


def language_of_name(name: str) -> str | None:
    """The language that a name of a column or the end of a file's name says: `French`, `fr_FR`, `text (de)`, `en`."""
    parts = [part for part in re.split(r"[^a-zà-ž]+", name.strip().lower()) if part]
    for part in parts:
        if part in _CODES:
            return _CODES[part]
    ends = parts[:1] + parts[-1:]
    return next((part for part in ends if part in NAMES), None)


def language_of_text(lines: Iterable[str]) -> str | None:
    """The language whose common words the lines have; None if there is no clear one, as in scripts without a list."""
    words, counts = _count_common(lines)
    (code, most), (_, next_most) = counts[:2]
    return code if words and most >= LEAST_SHARE * words and most >= LEAST_LEAD * next_most else None


def language_scores(lines: Iterable[str]) -> list[tuple[str, float]]:
    """Languages with common words in the lines, best first; each with its part of all common words that were found."""
    _, counts = _count_common(lines)
    total = sum(count for _, count in counts)
    return [(code, count / total) for code, count in counts if count]


def _count_common(lines: Iterable[str]) -> tuple[int, list[tuple[str, int]]]:
    """How many words the lines have, and of each language how many of them are its common words, most first."""
    words = Counter(word for line in lines for word in re.findall(r"[^\W\d_]+", line.lower()))
    counts = [(sum(words[word] for word in common), code) for code, common in _WORDS.items()]
    return sum(words.values()), [(code, count) for count, code in sorted(counts, reverse=True)]


def language_name(code: str) -> str:
    """The English name of a language, if it is known."""
    return NAMES[main_language(code)].split()[0].capitalize() if main_language(code) in NAMES else code


def main_language(code: str) -> str:
    """`en` of `en-GB` and `en_GB`."""
    return code.replace("_", "-").partition("-")[0].lower()
