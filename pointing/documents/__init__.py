"""Files of translators: the texts that they hold, filled by a model, everything else in them kept as it was."""
