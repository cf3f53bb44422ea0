"""What the processor and its memory can do faster than PyTorch asks of them. Both change the whole process, once."""

from __future__ import annotations

import ctypes
import os
from contextlib import suppress
from functools import cache
from pathlib import Path

import torch

# The sizes of products for which oneDNN, and PyTorch above it, keep code and memory. With their own default of 1,024
# they kept a gigabyte more in training, where hardly any size comes twice, and were no quicker.
KEPT = {"ONEDNN_PRIMITIVE_CACHE_CAPACITY": "64", "LRU_CACHE_CAPACITY": "64"}
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # of glibc's mallopt
MOST = 2**31 - 1  # that mallopt takes


@cache
def use_wide_products() -> bool:
    """Lets oneDNN compute float32 matrix products where MKL uses half of the processor's width. True if it does.

    PyTorch gives these products to MKL, which uses AVX-512 on Intel's processors alone. It gives them to oneDNN only
    with permission to round to bfloat16. Without AMX, which is Intel's too, oneDNN does not use the permission: the
    products are as exact as before, and one product is looked at to be sure. No time is measured, so that a run that is
    resumed on the same machine goes on with the same digits.
    """
    settings = getattr(torch.backends.mkldnn, "matmul", None)  # None: an older PyTorch
    if settings is None or not (torch.backends.mkldnn.is_available() and _is_wide() and _by_amd()):
        return False
    for name, number in KEPT.items():
        os.environ.setdefault(name, number)  # read at the first product
    before = settings.fp32_precision
    settings.fp32_precision = "bf16"
    if not _is_exact():
        settings.fp32_precision = before
        return False
    return True


def keep_freed_memory() -> None:
    """Lets the process keep the memory of tensors that were freed for those of the next update (glibc only).

    Otherwise the system takes back large tensors, and fills each page with zeros before it gives it to the next ones.
    """
    with suppress(OSError, AttributeError, TypeError):  # another system's C library
        mallopt = ctypes.CDLL(None).mallopt
        for parameter in (M_TRIM_THRESHOLD, M_MMAP_THRESHOLD):
            mallopt(parameter, MOST)


def _is_wide() -> bool:
    """True if the processor has AVX-512."""
    return torch.backends.cpu.get_cpu_capability() == "AVX512"


def _by_amd() -> bool:
    try:
        return "AuthenticAMD" in Path("/proc/cpuinfo").read_text()
    except OSError:  # not Linux
        return False


def _is_exact() -> bool:
    """True if matrix products have the precision of float32."""
    x = torch.linspace(1, 2, 64 * 256, device="cpu").view(64, 256)
    exact = x.double() @ x.double().t()
    return bool(((x @ x.t()) / exact - 1).abs().max() < 1e-5)
