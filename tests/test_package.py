"""The package's own names: all there, found on first use."""

import subprocess
import sys

import pytest

import dichotomies


def in_a_fresh_process(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("name", dir(dichotomies))
def test_every_listed_name_can_be_had(name):
    assert getattr(dichotomies, name) is not None


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        dichotomies.nonsense  # noqa: B018


def test_importing_the_package_does_not_import_the_heavy_libraries():
    loaded = "print([name for name in ('sklearn', 'numba', 'scipy') if name in sys.modules])"
    assert in_a_fresh_process(f"import sys, dichotomies; {loaded}") == "[]\n"


def test_load_knows_every_class_that_a_model_file_may_hold():
    names = "from dichotomies.persistence import CATALOGUE; print(CATALOGUE.names())"
    found = in_a_fresh_process(f"from dichotomies import load; {names}")
    for name in ("nested-dichotomy-classifier", "calibrated-classifier", "table-model"):
        assert name in found
