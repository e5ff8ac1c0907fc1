"""The package's own names: all there, found on first use."""

import subprocess
import sys
from pathlib import Path

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


@pytest.mark.parametrize("name", ["calibrators", "structures", "learners", "metrics"])
def test_public_classes_are_found_by_completion_and_imported_by_name(name):
    module = getattr(dichotomies, name)
    found = dir(module)
    assert found == sorted(found)
    assert all(getattr(module, each) is not None for each in found)
    expected = {
        "calibrators": {"PlattScaling", "VectorScaling", "binary", "multiclass"},
        "structures": {"TwoMeans", "RandomPair"},
        "learners": {"LogisticLearner", "HistGradientBoostClassifier", "ScaledLogisticRegression"},
        "metrics": {"expected_calibration_error", "Evaluation"},
    }
    assert expected[name] <= set(found)


def test_estimators_link_to_their_page():
    docs = Path(__file__).parents[1] / "docs"
    clf = dichotomies.NestedDichotomyClassifier()
    for each in (clf, dichotomies.NestedDichotomyEnsemble(), dichotomies.CalibratedClassifier(clf)):
        assert (docs / each._get_doc_link().rpartition("/")[2]).is_file()
