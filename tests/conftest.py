"""Small tensors: one thread each, so that a second core is free for what else the machine does."""

import os
import signal

os.environ.setdefault("OMP_NUM_THREADS", "1")
# Some virtual machines announce AMX and do not let programs use it: bfloat16 would then end Python with SIGILL.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")
signal.signal(signal.SIGINT, signal.default_int_handler)  # a suite started with & would ignore it, and its commands too
