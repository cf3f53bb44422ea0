"""Where public corpora come from: each source brings plain parallel text, one example a line, into a folder."""
