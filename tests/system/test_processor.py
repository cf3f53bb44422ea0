"""Products by oneDNN are as exact as MKL's, or stay MKL's; freed memory is kept for what comes next."""

import subprocess
import sys

import pytest
import torch

from pointing.system import processor

SETTINGS = getattr(torch.backends.mkldnn, "matmul", None)


@pytest.fixture
def asked_anew():
    """`use_wide_products` as if the process had just begun."""
    before = SETTINGS.fp32_precision if SETTINGS else None
    processor.use_wide_products.cache_clear()
    yield
    processor.use_wide_products.cache_clear()
    if SETTINGS:
        SETTINGS.fp32_precision = before


def test_products_have_all_digits_of_float32_afterwards(asked_anew):
    processor.use_wide_products()
    for rows, width, columns in ((3, 500, 40), (64, 384, 1152), (700, 129, 300)):
        x, weight = torch.rand(rows, width), torch.rand(columns, width)
        exact = x.double() @ weight.double().t()
        torch.testing.assert_close(torch.nn.functional.linear(x, weight).double(), exact, rtol=2e-6, atol=0)


@pytest.mark.skipif(SETTINGS is None, reason="this PyTorch gives no float32 products to oneDNN")
@pytest.mark.parametrize(("exact", "wide", "amd"), [(False, True, True), (True, False, True), (True, True, False)])
def test_products_stay_as_they_are_unless_all_speaks_for_it(asked_anew, monkeypatch, exact, wide, amd):
    before = SETTINGS.fp32_precision
    for name, value in (("_is_exact", exact), ("_is_wide", wide), ("_by_amd", amd)):
        monkeypatch.setattr(processor, name, lambda value=value: value)
    assert not processor.use_wide_products()
    assert SETTINGS.fp32_precision == before


@pytest.mark.skipif(SETTINGS is None, reason="this PyTorch gives no float32 products to oneDNN")
def test_products_are_given_to_onednn_where_all_speaks_for_it(asked_anew, monkeypatch):
    for name in ("_is_exact", "_is_wide", "_by_amd"):
        monkeypatch.setattr(processor, name, lambda: True)
    assert processor.use_wide_products()
    assert SETTINGS.fp32_precision == "bf16"


def test_digits_that_bfloat16_would_lose_are_seen(monkeypatch):
    assert processor._is_exact()
    multiply = torch.Tensor.__matmul__

    def rounded(x, y):
        x, y = (z.bfloat16().float() if z.dtype == torch.float32 else z for z in (x, y))
        return multiply(x, y)

    monkeypatch.setattr(torch.Tensor, "__matmul__", rounded)
    assert not processor._is_exact()


GROWTH = """
import resource, torch
from pointing.system.processor import use_wide_products
torch.set_num_threads(1)
wide, weight = use_wide_products(), torch.randn(384, 1152)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for rows in range(65, 865):
    torch.randn(rows, 384) @ weight
print(wide, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def test_memory_does_not_grow_with_the_number_of_sizes():
    done = subprocess.run([sys.executable, "-c", GROWTH], capture_output=True, text=True, check=True)
    wide, kilobytes = done.stdout.split()
    if wide == "False":
        pytest.skip("products stay MKL's on this processor")
    assert int(kilobytes) < 200_000


FAULTS = """
import resource, torch
from pointing.system.processor import keep_freed_memory
def faults(numbers):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    torch.empty(numbers).zero_()
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
faults(1 << 24)
print(faults(1 << 22))
keep_freed_memory()
faults(1 << 24)
print(faults(1 << 22))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="glibc's")
def test_freed_memory_comes_back_without_being_filled_with_zeros_again():
    done = subprocess.run([sys.executable, "-c", FAULTS], capture_output=True, text=True, check=True)
    before, after = map(int, done.stdout.split())
    assert after < 100 < 1000 < before
