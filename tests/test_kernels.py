"""Kernels compile wherever they are."""

import numba
import numpy as np

from dichotomies._kernels.compile import kernel


def test_a_kernel_works_where_numba_can_write_its_cache_nowhere(monkeypatch):
    compile_uncached = numba.njit

    def nowhere(cache=False, **options):
        if cache:
            raise RuntimeError("cannot cache function: no locator available")
        return compile_uncached(**options)

    monkeypatch.setattr(numba, "njit", nowhere)

    @kernel
    def double(x, out):
        for i in range(len(x)):
            out[i] = 2 * x[i]

    out = np.empty(3)
    double(np.arange(3.0), out)
    assert out.tolist() == [0, 2, 4]
