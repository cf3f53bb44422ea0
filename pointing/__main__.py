"""`python -m pointing`, the same as `pointing`; what torchrun starts."""

from pointing.cli import main

main()
