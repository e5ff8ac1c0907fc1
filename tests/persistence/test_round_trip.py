"""What comes back from a file is what was saved."""

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, StratifiedKFold

from dichotomies import CalibratedClassifier, ClassTree, NestedDichotomyClassifier, load
from dichotomies.calibrators.binary import BINARY
from dichotomies.calibrators.multiclass import MULTICLASS
from dichotomies.learners import LEARNERS
from dichotomies.persistence import CATALOGUE, save_load
from dichotomies.structures import STRUCTURES
from tests.persistence.models import (
    ESTIMATORS,
    all_models,
    category_model,
    digits,
    frame_model,
    model,
    rows_for,
    table_model,
)


def assert_same_parameters(one, other):
    """Equal as far as parameters can be: by their text, which shows all of theirs, and by their type."""
    assert type(one) is type(other)
    ours, theirs = one.get_params(), other.get_params()
    assert list(ours) == list(theirs)
    for name in ours:
        if not isinstance(ours[name], np.random.RandomState):
            assert repr(ours[name]) == repr(theirs[name]), name


@pytest.mark.parametrize(
    "calibration",
    [{}, {"internal_calibration": "isotonic"}, {"internal_calibration": "platt", "average_folds": True}],
    ids=["plain", "calibrated", "averaged"],
)
@pytest.mark.parametrize("name", ESTIMATORS)
def test_predictions_of_every_learner_come_back_bit_for_bit(name, calibration, through_file):
    X, _ = rows_for(name)
    before = model(name, **calibration)
    after = through_file(before)
    np.testing.assert_array_equal(after.predict_log_proba(X), before.predict_log_proba(X))
    np.testing.assert_array_equal(after.predict(X), before.predict(X))
    assert_same_parameters(after, before)
    assert (after.learner_, after.tree_) == (before.learner_, before.tree_)


def test_every_learner_is_among_the_estimators():
    others = {name for name in LEARNERS.names() if LEARNERS.get(name).only_by_name}  # make the same nodes
    assert {name.partition(" ")[0] for name in ESTIMATORS} == set(LEARNERS.names()) - others
    for name in ESTIMATORS:
        assert model(name).learner_.startswith(name.partition(" ")[0] + ":")


@pytest.mark.slow
def test_every_calibrator_and_structure_comes_back_bit_for_bit(through_file):
    X, _ = digits()
    for before in all_models():
        after = through_file(before)
        np.testing.assert_array_equal(after.predict_log_proba(X), before.predict_log_proba(X))
        assert_same_parameters(after, before)


@pytest.mark.slow
def test_every_savable_class_has_been_through_a_file(tmp_path):
    """So a class that becomes savable must be put into `models`, where all other tests find it."""
    seen = set()

    def look(value):
        if isinstance(value, dict):
            seen.update([value["object"]] if "object" in value else [])
            value = list(value.values())
        for each in value if isinstance(value, list) else []:
            look(each)

    averaged = [model(name, internal_calibration="platt", average_folds=True) for name in ESTIMATORS]
    for each in (*all_models(), *averaged, table_model(), frame_model(), category_model()):
        each.save(tmp_path / "a.model")
        look(save_load.read(tmp_path / "a.model")[0])
    assert seen == set(CATALOGUE.names())


@pytest.mark.parametrize("name", ["tuned-logistic", "clones logistic"])
def test_a_loaded_model_can_be_cloned_and_fitted_again(name, through_file):
    X, y = rows_for(name)
    before = model(name, internal_calibration="platt")
    after = through_file(before)
    again = clone(after).fit(X, y)
    np.testing.assert_array_equal(again.predict_log_proba(X), before.predict_log_proba(X))
    np.testing.assert_array_equal(after.fit(X, y).predict_log_proba(X), before.predict_log_proba(X))


def test_a_random_state_goes_on_where_it_was(through_file):
    X, y = digits()
    before = NestedDichotomyClassifier(random_state=np.random.RandomState(7)).fit(X, y)
    before.random_state.normal()  # so that there is another normal number in store
    after = through_file(before)
    np.testing.assert_array_equal(after.random_state.normal(size=9), before.random_state.normal(size=9))


@pytest.mark.parametrize(
    "labels",
    [
        np.array([3, 1, 2]),
        np.array([3, 1, 2], dtype=np.uint8),
        np.array([3, 1, 2], dtype=">i4"),
        np.array([-0.0, 1.0, 2.0]),
        np.array([True, False, False]),
        np.array(["a", "longer than that", "ö𝄞"]),
        np.array(["a", "", "ö𝄞"], dtype=object),
        np.array([b"a", b"bc", b""]),
        np.array(["2020-02-29", "1950-01-01", "2026-11-16"], dtype="datetime64[D]"),
    ],
    ids=lambda labels: labels.dtype.str,
)
def test_labels_of_every_kind_come_back(labels, through_file):
    X, _ = digits()
    before = NestedDichotomyClassifier(random_state=0).fit(X, labels[np.arange(len(X)) % 3])
    after = through_file(before)
    np.testing.assert_array_equal(after.classes_, before.classes_)
    assert after.classes_.dtype == before.classes_.dtype.newbyteorder("=")
    assert after.tree_.classes.dtype == after.classes_.dtype
    np.testing.assert_array_equal(after.predict(X), before.predict(X))


def test_names_of_features_come_back(through_file):
    X, y = digits()
    frame = pd.DataFrame(X, columns=[f"Größe {i}" for i in range(X.shape[1])])
    before = NestedDichotomyClassifier(random_state=0).fit(frame, y)
    after = through_file(before)
    np.testing.assert_array_equal(after.feature_names_in_, frame.columns)
    with pytest.raises(ValueError, match="feature names"):
        after.predict(frame.rename(columns={"Größe 0": "size 0"}))


def test_classes_of_one_row_come_back(through_file):
    X, y = digits()
    y = np.concatenate([[f"only {i}" for i in range(20)], y[20:]])
    before = NestedDichotomyClassifier(random_state=0, internal_calibration="auto", cv=3).fit(X, y)
    np.testing.assert_array_equal(through_file(before).predict_log_proba(X), before.predict_log_proba(X))


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("estimator", LogisticRegression(C=np.float64(0.5), class_weight={0: 1.0, 1: 2.0})),
        ("structure", [["a", ("b", "c")], "d"]),
        ("cv", StratifiedKFold(4)),
        ("cv", KFold(2, shuffle=True, random_state=8)),
        ("cv", [(np.arange(5), np.arange(5, 8))]),
        ("calibrated_nodes", (0, 2)),
        ("calibration_size", float("nan")),
        ("random_state", np.int64(2**40)),
        ("random_state", 10**40),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, str) else value,
)
def test_parameters_of_every_kind_come_back(parameter, value, through_file):
    X, y = digits()
    clf = NestedDichotomyClassifier(random_state=0).fit(X, y).set_params(**{parameter: value})
    again = through_file(clf).get_params()[parameter]
    assert type(again) is type(value)
    assert repr(again) == repr(value)


@pytest.mark.parametrize("registry", [BINARY, MULTICLASS, STRUCTURES], ids=lambda registry: registry.kind)
def test_registered_objects_are_files_of_their_own(registry, through_file):
    for name in registry.names():
        assert repr(through_file(registry.create(name))) == repr(registry.create(name))


def test_fitted_calibrators_and_trees_are_files_of_their_own(rng, through_file):
    scores, side = rng.normal(size=50), rng.random(50) < 0.5
    log_proba, y = np.log(rng.dirichlet([1, 1, 1], size=90)), rng.integers(0, 3, 90)
    for name in BINARY.names():
        before = BINARY.create(name).fit(scores, side)
        after = through_file(before)
        np.testing.assert_array_equal(after.predict_proba(scores), before.predict_proba(scores))
    for name in MULTICLASS.names():
        before = MULTICLASS.create(name).fit(log_proba, y)
        after = through_file(before)
        np.testing.assert_array_equal(after.predict_proba(log_proba), before.predict_proba(log_proba))
    tree = ClassTree.from_nested([["b", "a"], "c"])
    again = through_file(tree)
    assert again == tree
    assert not again.left.flags.writeable


def test_arrays_that_models_share_are_stored_once(tmp_path):
    shared = model("logistic sparse", internal_calibration="platt", average_folds=True)
    shared.save(tmp_path / "a.model")
    _, tensors = save_load.read(tmp_path / "a.model")
    assert sum(name.endswith(".node") for name in tensors) == 1
    members = load(tmp_path / "a.model").model_.scorer.members
    assert members[0].scorer.node is members[1].scorer.node


def test_another_process_gets_the_same_bits_and_needs_no_more_than_load(tmp_path):
    X, _ = digits()
    before = model("naive-bayes multinomial", internal_calibration="beta", external_calibration="matrix")
    before.save(tmp_path / "a.model")
    np.save(tmp_path / "X.npy", X[:5])
    program = (
        "import sys, json, numpy as np; from dichotomies import load;"
        "clf = load(sys.argv[1]); print(json.dumps(clf.predict_log_proba(np.load(sys.argv[2])).tolist()))"
    )
    arguments = [sys.executable, "-c", program, str(tmp_path / "a.model"), str(tmp_path / "X.npy")]
    done = subprocess.run(arguments, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == before.predict_log_proba(X[:5]).tolist()


def test_a_calibrated_classifier_of_scikit_learn_comes_back(through_file):
    X, y = digits()
    before = CalibratedClassifier(LogisticRegression().fit(X[:100], y[:100])).fit(X[100:], y[100:])
    np.testing.assert_array_equal(through_file(before).predict_proba(X), before.predict_proba(X))


@pytest.mark.parametrize("name", [name for name in ESTIMATORS if not name.startswith("clones")])
def test_two_classes_in_single_precision_come_back_bit_for_bit(name, through_file):
    X, y = rows_for(name)
    X, y = X.astype(np.float32), y == y[0]
    before = clone(model(name)).set_params(internal_calibration=None, external_calibration=None).fit(X, y)
    np.testing.assert_array_equal(through_file(before).predict_log_proba(X), before.predict_log_proba(X))
