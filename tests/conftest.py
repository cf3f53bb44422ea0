"""Small tensors: one thread each, so that a second core is free for what else the machine does."""

import os
import signal

os.environ.setdefault("OMP_NUM_THREADS", "1")
signal.signal(signal.SIGINT, signal.default_int_handler)  # a suite started with & would ignore it, and its commands too
