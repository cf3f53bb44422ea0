"""How many plural forms a language has, which number takes which, and from which English form each is translated."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from gettext import c2py

MOST_FORMS = 6  # no language is known that has more
NUMBERS = 1001  # forms are judged by the numbers from 0 to 1000, as msgfmt does
RARE = 5  # a form for no more numbers than this may leave the number out: "one file"
_HEADER = re.compile(r"\s*nplurals\s*=\s*(\d{1,3})\s*;\s*plural\s*=\s*([^;]+);?\s*")

_ONE, _TWO = "nplurals=1; plural=0;", "nplurals=2; plural=(n != 1);"
_FRENCH = "nplurals=2; plural=(n > 1);"
_SLAVIC = (
    "nplurals=3; plural=(n%10==1 && n%100!=11 ? 0 : n%10>=2 && n%10<=4 && (n%100<10 || n%100>=20) ? 1 : 2);"
)  # fmt: skip
_GROUPS = {
    _ONE: "id ja ko lo ms my th vi yue zh",
    _FRENCH: "ak am br fa fil fr ln mg mi oc pt_BR ti tg tl tr uz wa",
    _TWO: "af an ast az bg bn ca da de el en eo es et eu fi fo fur fy gl gu ha he hi hu hy ia it ka kk kn ku ky lb "
    "ml mn mr nb ne nl nn no or pa pms ps pt rm sq sv sw ta te tk ur",
    _SLAVIC: "be bs hr ru sr uk",
    "nplurals=3; plural=(n==1) ? 0 : (n>=2 && n<=4) ? 1 : 2;": "cs sk",
    "nplurals=3; plural=(n==1 ? 0 : n%10>=2 && n%10<=4 && (n%100<10 || n%100>=20) ? 1 : 2);": "pl",
    "nplurals=3; plural=(n%10==1 && n%100!=11 ? 0 : n%10>=2 && (n%100<10 || n%100>=20) ? 1 : 2);": "lt",
    "nplurals=3; plural=(n%10==1 && n%100!=11 ? 0 : n != 0 ? 1 : 2);": "lv",
    "nplurals=3; plural=(n==1 ? 0 : (n==0 || (n%100 > 0 && n%100 < 20)) ? 1 : 2);": "ro",
    "nplurals=4; plural=(n%100==1 ? 0 : n%100==2 ? 1 : n%100==3 || n%100==4 ? 2 : 3);": "sl",
    "nplurals=5; plural=(n==1 ? 0 : n==2 ? 1 : n<7 ? 2 : n<11 ? 3 : 4);": "ga",
    "nplurals=4; plural=(n==1) ? 0 : (n==2) ? 1 : (n != 8 && n != 11) ? 2 : 3;": "cy",
    "nplurals=2; plural=(n%10!=1 || n%100==11);": "is",
    "nplurals=2; plural=(n%10==1 && n%100!=11 ? 0 : 1);": "mk",
    "nplurals=4; plural=(n==1 ? 0 : n==0 || (n%100>1 && n%100<11) ? 1 : (n%100>10 && n%100<20) ? 2 : 3);": "mt",
    "nplurals=6; plural=(n==0 ? 0 : n==1 ? 1 : n==2 ? 2 : n%100>=3 && n%100<=10 ? 3 : n%100>=11 ? 4 : 5);": "ar",
}  # fmt: skip
HEADERS = {language: header for header, languages in _GROUPS.items() for language in languages.split()}


@dataclass(frozen=True)
class Plurals:
    """The forms of a language: `form(n)` is the number of the form that n things take."""

    count: int
    form: Callable[[int], int]

    def sources(self, singular: str, plural: str, same_spans: bool) -> tuple[str, ...]:
        """What each form is translated from: the form for one thing from the singular, all others from the plural.

        The singular may lack the number (`one file`, `%d files`): `same_spans` is False then. It serves a form for a
        few numbers only; a form for 1, 21, 31, … needs the number, and msgfmt insists on it.
        """
        if self.count == 1:
            return (plural,)
        counts = Counter(map(self.form, range(NUMBERS)))
        one = self.form(1)
        if not same_spans and counts[one] > RARE:
            return (plural,) * self.count
        return tuple(singular if form == one else plural for form in range(self.count))


def read_plurals(header: str) -> Plurals | None:
    """What a header's Plural-Forms says; None if it says nothing that can be used."""
    match = _HEADER.fullmatch(header)
    if match is None or not 1 <= int(match[1]) <= MOST_FORMS:
        return None
    count = int(match[1])
    try:
        form = c2py(match[2])
        if all(0 <= form(n) < count for n in range(NUMBERS)):
            return Plurals(count, form)
    except (ValueError, ArithmeticError, RecursionError):  # no expression, a division by 0, a thousand brackets
        pass
    return None


def plural_header(language: str) -> str | None:
    """The Plural-Forms of a language, such as fr, pt_BR or de-AT; None if it is not in our table."""
    name = language.replace("-", "_").partition(".")[0].partition("@")[0]
    return HEADERS.get(name) or HEADERS.get(name.partition("_")[0].lower())
