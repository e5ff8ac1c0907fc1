"""Arrays of other libraries than numpy, for tests of scikit-learn's array API dispatch."""

import importlib

import pytest
import sklearn


@pytest.fixture(params=["array_api_strict", "torch"])
def asarray(request, monkeypatch):
    """Return a function from numpy's arrays to those of another library, whose dispatch is on."""
    pytest.importorskip(request.param)
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    with sklearn.config_context(array_api_dispatch=True):
        yield importlib.import_module(request.param).asarray
