"""Mutants that are the same program written otherwise, each with the reason: no test can tell them apart.

Module → (before, after) → reason. They are left out of the count of `broken_code`.
"""

LARGER = "any number that no word has will do"
ORDER = "the order of the arguments does not matter"
EQUIVALENT: dict[str, dict[tuple[str, str], str]] = {
    "corpus/pointers": {
        (
            "int(max(source.words.max(), words.max(initial=0))) + 1",
            "int(max(source.words.max(), words.max(initial=0))) + 2",
        ): LARGER,
        ("max(source.words.max(), words.max(initial=0))", "max(words.max(initial=0), source.words.max())"): ORDER,
    }
}
