"""Kernels compile wherever they are, and their elementary functions are numpy's."""

import numpy as np
from scipy.sparse import csr_array

from dichotomies._kernels.compile import csr_arrays, is_small, kernel
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
