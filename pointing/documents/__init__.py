"""Files of translators: the texts that they hold, and how they are written back with everything else kept as it was."""
