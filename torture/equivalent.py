"""Mutants that are the same program written otherwise, each with the reason: no test can tell them apart.

Module → (before, after) → reason. They are left out of the count of `broken_code`.
"""

LARGER = "any number that no word has will do"
FIRST_STEP = "before the first step there is no word, and nothing looks at the place"
LATER = "sources that are done leave the search sooner or later: that changes its time alone"
ALL_OF_THEM = "where all continuations fit into the beam, both ways take all of them"
SORTED = "the words are sorted, whichever come first"
PIECES = "pieces of any size give the same numbers; this size is the quickest"
EQUIVALENT: dict[str, dict[tuple[str, str], str]] = {
    "corpus/pointers": {
        (
            "int(max(source.words.max(), words.max(initial=0))) + 1",
            "int(max(source.words.max(), words.max(initial=0))) + 2",
        ): LARGER
    },
    "generation/beam": {
        (
            "torch.empty(B, 1, dtype=torch.long, device=device)",
            "torch.empty(B, 2, dtype=torch.long, device=device)",
        ): FIRST_STEP,
        (
            "torch.empty(B, 1, 0, dtype=torch.long, device=device)",
            "torch.empty(B, 2, 0, dtype=torch.long, device=device)",
        ): FIRST_STEP,
        ("self.any_ended or self.any_kept", "self.any_ended and self.any_kept"): LATER,
        ("SHARE_AT_WORK * len(done)", "SHARE_AT_WORK / len(done)"): LATER,
        ("settings.beam > K * M", "settings.beam >= K * M"): ALL_OF_THEM,
    },
    "pointer_softmax": {("_different(candidates, word)", "_different(word, candidates)"): SORTED},
    "training/optimizers": {
        ("2 ** 16", "3 ** 16"): PIECES,
        ("2 ** 16", "2 ** 17"): PIECES,
        ("2 ** 16", "2 * 16"): PIECES,
    },
}
