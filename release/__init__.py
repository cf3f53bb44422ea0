"""Checks a release: builds it, installs it in an empty environment, runs it there. `python -m release` does it."""
