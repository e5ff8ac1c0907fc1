"""What is exported to ONNX gives the same probabilities in onnxruntime."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import BernoulliNB, ComplementNB, GaussianNB, MultinomialNB
from sklearn.svm import SVC

from dichotomies import (
    CalibratedClassifier,
    HistAdaBoostClassifier,
    HistGradientBoostClassifier,
    NestedDichotomyClassifier,
    NestedDichotomyEnsemble,
    TunedLogisticRegression,
)
from dichotomies.calibrators.binary import BINARY
from dichotomies.calibrators.multiclass import MULTICLASS
from dichotomies.export import to_onnx

onnxruntime = pytest.importorskip("onnxruntime")

X, Y = load_digits(return_X_y=True)
TRAIN, TEST = slice(0, 600), slice(600, 1000)


def _answers(model, rows):
    session = onnxruntime.InferenceSession(model.SerializeToString())
    return session.run(["label", "probabilities", "log_probabilities"], {"X": rows})


def _check(clf, rows=X[TEST], tolerance=1e-7):
    label, proba, log_proba = _answers(to_onnx(clf), rows.astype(np.float64))
    np.testing.assert_allclose(log_proba, clf.predict_log_proba(rows), rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(proba, clf.predict_proba(rows), atol=tolerance)
    assert (label == clf.predict(rows)).all()


@pytest.mark.parametrize(
    "estimator",
    [
        LogisticRegression(),
        TunedLogisticRegression(Cs=[0.1, 1.0]),
        GaussianNB(),
        MultinomialNB(),
        ComplementNB(),
        BernoulliNB(binarize=4.0),
        HistAdaBoostClassifier(20),
        HistGradientBoostClassifier(20),
    ],
    ids=lambda each: type(each).__name__,
)
@pytest.mark.parametrize("external", [None, "vector"])
def test_every_learner(estimator, external):
    clf = NestedDichotomyClassifier(estimator, external_calibration=external, random_state=0)
    is_boosted = type(estimator).__name__.startswith("Hist")  # summed in single precision
    _check(clf.fit(X[TRAIN], Y[TRAIN]), tolerance=1e-4 if is_boosted else 1e-7)


def test_nodes_trained_on_sparse_rows():
    clf = NestedDichotomyClassifier(MultinomialNB(), random_state=0).fit(csr_array(X[TRAIN]), Y[TRAIN])
    _check(clf)


def test_gaussian_nodes_with_variances_near_zero():
    narrow = X.copy()
    narrow[:, 0] = 1e-4 * Y + 1.0
    clf = NestedDichotomyClassifier(
        GaussianNB(var_smoothing=1e-12), internal_calibration=None, external_calibration=None, random_state=0
    )
    clf.fit(narrow[TRAIN], Y[TRAIN])
    assert len(clf.model_.scorer.expanded.steep_node)
    label, _, _ = _answers(to_onnx(clf), narrow[TEST])
    assert (label == clf.predict(narrow[TEST])).all()


@pytest.mark.parametrize("name", [name for name in BINARY.names() if name != "venn-abers"])
@pytest.mark.parametrize("average_folds", [False, True])
def test_every_calibrator_of_nodes(name, average_folds):
    clf = NestedDichotomyClassifier(
        GaussianNB(),
        internal_calibration=name,
        external_calibration=None,
        average_folds=average_folds,
        random_state=0,
    )
    _check(clf.fit(X[TRAIN], Y[TRAIN]))


@pytest.mark.parametrize("name", MULTICLASS.names())
def test_every_calibrator_of_classes(name):
    clf = NestedDichotomyClassifier(LogisticRegression(), external_calibration=name, random_state=0)
    _check(clf.fit(X[TRAIN], Y[TRAIN]))


def test_rows_unlike_those_of_training():
    clf = NestedDichotomyClassifier(external_calibration="vector-odds", random_state=0)
    clf.fit(X[TRAIN], Y[TRAIN])
    far = 10 * X[TEST]
    assert clf.predict_proba(far).max() < 0.6 < clf.predict_proba(X[TEST]).max()
    _, proba, _ = _answers(to_onnx(clf), far)
    np.testing.assert_allclose(proba, clf.predict_proba(far), atol=1e-9)


@pytest.mark.parametrize("pooling", ["geometric", "arithmetic"])
def test_ensembles(pooling):
    clf = NestedDichotomyEnsemble(GaussianNB(), n_estimators=4, pooling=pooling, random_state=0)
    _check(clf.fit(X[TRAIN], Y[TRAIN]))


def test_a_chain_as_deep_as_it_has_classes():
    chain = 0
    for label in range(1, 10):
        chain = [chain, label]
    _check(NestedDichotomyClassifier(structure=chain, random_state=0).fit(X[TRAIN], Y[TRAIN]))


@pytest.mark.parametrize(
    "labels", [np.array(list("abcdefghij")), np.arange(10) + 2**40], ids=["text", "integers"]
)
def test_labels_are_those_of_the_classifier(labels):
    _check(NestedDichotomyClassifier(random_state=0).fit(X[TRAIN], labels[Y[TRAIN]]))


def test_rows_in_single_precision():
    clf = NestedDichotomyClassifier(random_state=0).fit(X[TRAIN], Y[TRAIN])
    _, proba, _ = _answers(to_onnx(clf, dtype=np.float32), X[TEST].astype(np.float32))
    np.testing.assert_allclose(proba, clf.predict_proba(X[TEST]), atol=1e-9)


def test_what_cannot_be_exported_is_refused_by_name():
    clf = NestedDichotomyClassifier(SVC(), internal_calibration="platt", random_state=0).fit(
        X[TRAIN], Y[TRAIN]
    )
    with pytest.raises(TypeError, match="Nodes of the kind GenericScorer cannot be exported"):
        to_onnx(clf)
    with pytest.raises(TypeError, match="not LogisticRegression"):
        to_onnx(LogisticRegression(max_iter=5000).fit(X[:50], Y[:50]))
    with pytest.raises(ValueError, match="dtype must be float64 or float32"):
        to_onnx(clf, dtype=np.int32)


@pytest.mark.parametrize("name", ["auto", "nested", "vector-nested"])
def test_a_calibrated_classifier_is_exported_behind_its_classifier(name):
    clf = CalibratedClassifier(GaussianNB(), name).fit(X[TRAIN], Y[TRAIN])
    given = np.clip(clf.estimator_.predict_log_proba(X[TEST]), -1e6, None)
    for exported in (clf, clf.calibrator_):
        label, proba, log_proba = _answers(to_onnx(exported), given)
        np.testing.assert_allclose(log_proba, clf.predict_log_proba(X[TEST]), rtol=1e-7, atol=1e-7)
        assert (label == clf.predict(X[TEST])).all()
        np.testing.assert_allclose(proba.sum(axis=1), 1)
