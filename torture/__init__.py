"""The campaign against this program: kills, full disks, two writers, damaged files, made-up inputs, broken code."""

import os
import sys
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"  # before torch is loaded: commands are small, and run side by side

ROOT = Path(__file__).parent.parent
sys.path.insert(
    0, str(ROOT / "tests")
)  # which has the mutator of files, tiny corpora, and commands in forked processes
