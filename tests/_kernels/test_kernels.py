"""Kernels compile wherever they are, and their elementary functions are numpy's."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.sparse import csr_array

from dichotomies._kernels.compile import csr_arrays, is_small, kernel
from dichotomies._kernels.elementary import take_exponentials, take_logs
from dichotomies._kernels.weights import dense_pairs


def _read_only(values):
    values = np.array(values)
    values.flags.writeable = False
    return values


def test_read_only_arrays_are_read():
    rows, nodes, out = np.array([1, 0]), np.array([0, 0]), np.empty(2)
    for X in (np.arange(4.0).reshape(2, 2), _read_only([[0.0, 1.0], [2.0, 3.0]])):
        dense_pairs(X, rows, _read_only(nodes), _read_only([[1.0, 10.0]]), np.zeros(1), out)
        assert out.tolist() == [32.0, 10.0]


def test_indices_of_sparse_rows_have_one_type(rng):
    X = csr_array(rng.poisson(0.5, size=(5, 4)).astype(float))
    wide = csr_array((X.data, X.indices.astype(np.int64), X.indptr.astype(np.int64)), X.shape)
    for each in (X, wide):
        assert [array.dtype for array in csr_arrays(each)[1:]] == [np.int32, np.int64]


def test_what_a_kernel_calls_runs_plainly_if_it_does():
    @kernel
    def inner(x):
        raise AssertionError("the loop")

    @inner.plainly
    def _(x):
        return x + 1

    @kernel
    def outer(x):
        return 2 * inner(x)

    assert outer.when(True)(3) == 8


def test_kernels_call_kernels_whether_they_are_inlined_or_not():
    @kernel(inline=True)
    def square(x):
        return x * x

    @kernel
    def half(x):
        return 0.5 * square(x)

    @kernel
    def total(x):
        found = 0.0
        for i in range(len(x)):
            found += half(x[i])
        return found

    assert total(np.arange(4.0)) == 7.0


def test_the_rule_for_plain_code_knows_sizes_alone():
    assert is_small(100, 0.01)
    assert not is_small(100, 10.0)
    assert not is_small(10**6, 0.01)
    assert is_small(100, 1e-4, is_answer=True)
    assert not is_small(100, 0.01, is_answer=True)


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


@pytest.mark.parametrize("far", [1e-9, 1.0, 700.0])
def test_exponentials_of_arrays_are_numpys_as_far_as_they_go(rng, far):
    values = np.append(rng.uniform(-far, far, size=2_000), [0.0, -0.0])
    exponentials = values.copy()
    take_exponentials(exponentials)
    assert_allclose(exponentials, np.exp(values), rtol=2e-15)
    beyond = np.array([-np.inf, -1e9, 1e9])
    take_exponentials(beyond)
    assert_allclose(beyond, np.exp([-700.0, -700.0, 700.0]), rtol=2e-15)
