"""Plain code, compiled kernels and the same kernels run by the interpreter give the same answers."""

import os
import subprocess
import sys

import numpy as np
import pytest

from dichotomies._kernels import compile as kernels
from tests._kernels.every_way import answers


@pytest.fixture(scope="module")
def plain():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernels, "PATIENCE", kernels.PATIENCE)
        patch.setattr(kernels, "PATIENCE_OF_ANSWERS", kernels.PATIENCE_OF_ANSWERS)
        yield answers(np.inf)


LOOSE = {f"logistic{solver} {kind}" for solver in ("", ", liblinear") for kind in ("asarray", "csr_array")}


def _assert_equal(found, expected):
    assert set(found) == set(expected)
    for name, values in expected.items():
        # at scikit-learn's default tol, solvers stop at different distances from the optimum
        atol = 5e-2 if name.removeprefix("search of ") in LOOSE else 1e-5
        np.testing.assert_allclose(found[name], values, rtol=1e-9, atol=atol, err_msg=name)


def test_compiled_kernels_answer_as_plain_code_does(plain):
    _assert_equal(answers(-1.0), plain)


def test_interpreted_kernels_answer_as_plain_code_does(plain, tmp_path):
    """The whole library runs without a compiler, so that kernels can be debugged and covered by tests."""
    file = tmp_path / "answers.npz"
    subprocess.run(
        [sys.executable, "-W", "error::RuntimeWarning", "-m", "tests._kernels.every_way", str(file)],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        check=True,
        timeout=1200,
    )
    _assert_equal(dict(np.load(file)), plain)
