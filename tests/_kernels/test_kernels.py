"""Kernels compile wherever they are, and their elementary functions are numpy's."""

import numba
import numpy as np
import pytest
from numpy.testing import assert_allclose

from dichotomies._kernels.compile import kernel
from dichotomies._kernels.elementary import sum_of_logs, take_exponentials, take_logs


def test_a_kernel_works_where_numba_can_write_its_cache_nowhere(monkeypatch):
    compile_uncached = numba.njit

    def nowhere(*function, cache=False, **options):
        if cache:
            raise RuntimeError("cannot cache function: no locator available")
        return compile_uncached(*function, **options)

    monkeypatch.setattr(numba, "njit", nowhere)

    @kernel
    def double(x, out):
        for i in range(len(x)):
            out[i] = 2 * x[i]

    out = np.empty(3)
    double(np.arange(3.0), out)
    assert out.tolist() == [0, 2, 4]


def numbers(rng):
    """Positive numbers of all sizes, close to 1, whole, and with some that have no ordinary logarithm."""
    some = np.exp(rng.uniform(-690, 690, size=2_000))
    yield from (some, 1 + 1e-6 * rng.normal(size=700), rng.integers(1, 50, size=600).astype(float), some[:0])
    yield np.append(some[:20], [5e-324, 1e-310, 1e308, np.inf])


def test_logarithms_of_arrays_are_numpys(rng):
    for values in numbers(rng):
        logs = values.copy()
        take_logs(logs)
        assert_allclose(logs, np.log(values), rtol=1e-15)
        assert_allclose(sum_of_logs(values), np.log(values).sum(), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("far", [1e-9, 1.0, 700.0])
def test_exponentials_of_arrays_are_numpys_as_far_as_they_go(rng, far):
    values = np.append(rng.uniform(-far, far, size=2_000), [0.0, -0.0])
    exponentials = values.copy()
    take_exponentials(exponentials)
    assert_allclose(exponentials, np.exp(values), rtol=2e-15)
    beyond = np.array([-np.inf, -1e9, 1e9])
    take_exponentials(beyond)
    assert_allclose(beyond, np.exp([-700.0, -700.0, 700.0]), rtol=2e-15)
