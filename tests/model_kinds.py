"""All kinds of models, for tests that run over each of them."""

KINDS = ["gru", "transformer", {"encoder": "transformer", "decoder": "ssru"}]
KINDS += [{"encoder": "gru", "decoder": "transformer"}, {"encoder": "transformer", "decoder": "gru"}]
NAMES = [kind if isinstance(kind, str) else "-".join(kind.values()) for kind in KINDS]


def settings_of(kind, **more):
    """The settings of a small model of a kind, without those that do nothing for it."""
    parts = {kind} if isinstance(kind, str) else set(kind.values())
    settings = {"kind": kind, "feed": "source"} | more
    if parts != {"gru"}:
        settings["heads"] = 2
    return settings | ({"init": 0.1} if "gru" in parts else {"encoder": None})
