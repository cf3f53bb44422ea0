"""Public corpora: a module for each source, which writes parallel text, one example on each line, to a folder."""
