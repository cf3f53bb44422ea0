"""Mutants that are the same program written otherwise, each with the reason: no test can tell them apart.

Module → (before, after) → reason. They are left out of the count of `broken_code`.
"""

LARGER = "any number that no word has will do"
PIECES = "pieces of any size give the same numbers; this size is the quickest"
EQUIVALENT: dict[str, dict[tuple[str, str], str]] = {
    "corpus/pointers": {
        (
            "int(max(source.words.max(), words.max(initial=0))) + 1",
            "int(max(source.words.max(), words.max(initial=0))) + 2",
        ): LARGER
    },
    "training/optimizers": {
        ("2 ** 16", "3 ** 16"): PIECES,
        ("2 ** 16", "2 ** 17"): PIECES,
        ("2 ** 16", "2 * 16"): PIECES,
    },
}
