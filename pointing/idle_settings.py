"""Settings that were changed but do nothing in their combination with others: they are refused, with the reason."""

from __future__ import annotations

from operator import attrgetter

from pointing.config import Config, Data, HeldOut, SwitchSettings, Table


def idle_settings(config: Config) -> dict[str, str]:
    """The keys that were changed from their default but do nothing in this combination, each with the reason."""
    reasons: dict[str, str] = {}
    if not config.model.uses_switch:
        reason = f"there is no switch with model.output: {config.model.output}"
        reasons |= dict.fromkeys(("pointers.unreachable", "training.loss"), reason)
        reasons |= {f"model.switch.{name}": reason for name in SwitchSettings.model_fields}
    if config.model.output == "softmax":
        reasons["model.feed"] = "nothing is copied with model.output: softmax"
    if config.model.output == "pointer-network":
        reason = "there is no shortlist with model.output: pointer-network"
        reasons |= dict.fromkeys(("model.tied", "training.smoothing"), reason)
    if config.training.loss == "marginal":
        reasons["training.smoothing"] = "it is for training.loss: joint, where the choice is known"
    if not config.model.uses_gru:
        reasons |= dict.fromkeys(("model.init", "model.encoder"), "it is a GRU's, and this model has none")
    if not config.model.uses_transformer:
        reasons["model.heads"] = "it is a Transformer's, and this model has none"
    if "word2vec" not in (config.embeddings.source, config.embeddings.target):
        reasons["embeddings.width"] = "it is for word2vec; vectors from a file have their own width"
    data, no_columns = config.data, Table.model_construct()
    if not data.split_off():
        reason = "data.dev is given, so nothing is split off"
        reasons |= {f"data.held_out.{name}": reason for name in HeldOut.model_fields}
    elif data.test is not None:
        reasons["data.held_out.test"] = "data.test is given, so it is not split off"
    for name, files in data.given().items():
        if isinstance(files, Table) and not (name == "train" and data.split_off()):
            reasons[f"data.{name}.key_column"] = "it is for a split-off dev part, and nothing is split off here"
    default = Config.model_construct(
        data=Data.model_construct(held_out=HeldOut(), train=no_columns, dev=no_columns, test=no_columns)
    )
    return {key: reason for key, reason in reasons.items() if attrgetter(key)(config) != attrgetter(key)(default)}
