"""Small tensors: one thread each, so that a second core is free for what else the machine does."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
