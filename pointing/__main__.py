"""`python -m pointing`, the same as `pointing`; what torchrun starts."""

import os
import sys

from pointing.cli import main
from pointing.system.program import process_count

try:
    main()
except SystemExit as stop:
    if process_count() == 1:
        raise
    # Threads of torch.distributed can crash while Python shuts down: one of several processes leaves without that.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(stop.code if isinstance(stop.code, int) else 0 if stop.code is None else 1)
