"""`NestedDichotomyClassifier` is a scikit-learn classifier in every respect."""

import os
import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.sparse import coo_array, csc_array, csr_array
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.ensemble import BaggingClassifier, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.metrics import get_scorer
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict, cross_validate
from sklearn.naive_bayes import BernoulliNB, GaussianNB, MultinomialNB
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from dichotomies import ClassTree, NestedDichotomyClassifier
from dichotomies._common import chunks
from dichotomies.structures import STRUCTURES
from tests.slow import slow
from tests.uncalibrated import Clones, Uncalibrated

LOGISTIC = LogisticRegression(solver="newton-cholesky", tol=1e-10)


CHECK_ESTIMATOR = """
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import check_estimator
from dichotomies import NestedDichotomyClassifier
for estimator in (None, DecisionTreeClassifier()):
    for structure in {structures!r}:
        results = check_estimator(
            NestedDichotomyClassifier(
                estimator, structure, internal_calibration=None, external_calibration=None
            )
        )
        bad = [r["check_name"] for r in results if r["status"] != "passed"]
        assert len(results) > 50 and not bad, bad
"""


@pytest.mark.slow
def test_scikit_learn_accepts_it_with_no_check_failed_or_skipped():
    """In a process of its own: one check needs SCIPY_ARRAY_API set before scipy is imported."""
    subprocess.run(
        [sys.executable, "-c", CHECK_ESTIMATOR.format(structures=["random", "data-balanced"])],
        env={**os.environ, "SCIPY_ARRAY_API": "1"},
        check=True,
    )


# ------------------------------------------------------------------ two classes, one class, one row


@pytest.mark.parametrize(
    "estimator",
    [
        LogisticRegression(),
        GaussianNB(),
        DecisionTreeClassifier(random_state=0),
        RandomForestClassifier(n_estimators=5, random_state=0),
        SGDClassifier(loss="log_loss", random_state=0),
        MLPClassifier((4,), max_iter=5, random_state=0, solver="lbfgs"),
        HistGradientBoostingClassifier(max_iter=5, random_state=0),
    ],
    ids=lambda e: type(e).__name__,
)
@pytest.mark.parametrize("nested", [["no", "yes"], *slow(["yes", "no"])])
@pytest.mark.filterwarnings("ignore:lbfgs failed to converge")
def test_two_classes_are_the_base_learner_itself(digits, estimator, nested):
    X, y = digits
    label = np.where(y % 3 == 0, "yes", "no")
    ours = Clones(estimator, structure=nested).fit(X, label)
    base = clone(estimator).fit(X, label)
    assert_allclose(ours.predict_proba(X), base.predict_proba(X), rtol=0, atol=1e-12)
    assert np.array_equal(ours.predict(X), base.predict(X))


def test_one_class_is_refused_in_a_sentence():
    with pytest.raises(ValueError, match="at least two classes, but y has only one class: 'a'"):
        Uncalibrated().fit([[0.0], [1.0]], ["a", "a"])


@pytest.mark.parametrize("estimator", [LOGISTIC, GaussianNB(), DecisionTreeClassifier()], ids=repr)
def test_classes_with_one_row(digits, estimator):
    X, y = digits
    rare = y.copy()
    rare[:40] = np.arange(100, 140)  # forty classes of one row
    clf = Uncalibrated(estimator, random_state=0).fit(X, rare)
    proba = clf.predict_proba(X)
    assert proba.shape == (len(y), 50)
    assert np.isfinite(clf.predict_log_proba(X)).all()
    assert_allclose(proba.sum(axis=1), 1, atol=1e-9)


def test_constant_features_do_no_harm(digits):
    X, y = digits
    clf = Uncalibrated(GaussianNB(), random_state=0).fit(np.c_[X, np.ones((len(X), 3))], y)
    assert np.isfinite(clf.predict_log_proba(np.c_[X, np.ones((len(X), 3))])).all()


# ------------------------------------------------------------------ labels and inputs


@pytest.mark.parametrize(
    "names",
    [
        np.array([f"digit {i}" for i in range(10)]),
        np.array([f"digit {i}" for i in range(10)], dtype=object),
        np.array([5, -3, 100, 7, 8, 2, 1_000, 11, 12, 0]),
        np.arange(10, dtype=np.uint8),
        np.arange(10).astype(float),
    ],
    ids=lambda names: str(names.dtype),
)
def test_labels_of_any_kind_permute_the_columns_only(digits, names):
    X, y = digits
    nested = [[[0, 1], [2, [3, 4]]], [[5, 6], [7, [8, 9]]]]

    def rename(item):
        return (
            [rename(i) for i in item]
            if isinstance(item, list)
            else names[item].item()
            if names.dtype != object
            else names[item]
        )

    plain = Uncalibrated(LOGISTIC, nested).fit(X, y)
    named = Uncalibrated(LOGISTIC, rename(nested)).fit(X, names[y])
    column = np.searchsorted(named.classes_, names)
    assert_allclose(named.predict_proba(X)[:, column], plain.predict_proba(X), atol=1e-10)
    assert np.array_equal(named.predict(X), names[plain.predict(X)])
    assert named.predict(X).dtype == names.dtype


def test_boolean_labels(iris):
    X, y = iris
    clf = Uncalibrated().fit(X, y == 1)
    assert clf.predict(X).dtype == bool
    assert clf.classes_.tolist() == [False, True]


@given(st.permutations(range(5)), st.integers(0, 100))
@settings(max_examples=10, deadline=None)
def test_reordering_the_classes_permutes_columns_for_a_fixed_tree(names, seed):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(60, 3)), np.arange(60) % 5
    names = np.array(names)
    tree = ClassTree(rng.permutation(5), rng.permutation(4))
    renamed = ClassTree(names[tree.leaf_labels], tree.split_depth)
    plain = Uncalibrated(GaussianNB(), tree).fit(X, y).predict_proba(X)
    moved = Uncalibrated(GaussianNB(), renamed).fit(X, names[y]).predict_proba(X)
    assert_allclose(moved[:, names], plain, atol=1e-12)


def test_continuous_targets_are_refused(iris):
    with pytest.raises(ValueError, match="continuous"):
        Uncalibrated().fit(iris[0], np.linspace(0, 1, 150))


def test_float32_and_float64(digits):
    X, y = digits
    base = LogisticRegression(solver="newton-cholesky")
    wide = Uncalibrated(base, random_state=0).fit(X, y)
    narrow = Uncalibrated(base, random_state=0).fit(X.astype(np.float32), y)
    clones = Clones(base, random_state=0).fit(X.astype(np.float32), y)
    assert clones.estimators_[0].coef_.dtype == np.float32
    assert narrow.predict_proba(X.astype(np.float32)).dtype == np.float64
    assert_allclose(narrow.predict_proba(X.astype(np.float32)), wide.predict_proba(X), atol=2e-3)
    assert_allclose(narrow.predict_proba(X.astype(np.float32)).sum(axis=1), 1, atol=1e-9)


@pytest.mark.parametrize("estimator", [LOGISTIC, MultinomialNB(), BernoulliNB(binarize=0.3)], ids=repr)
def test_trained_on_sparse_rows_it_predicts_dense_ones_and_the_reverse(digits, estimator):
    X, y = digits
    for train, test in ((csr_array(X), X), (X, csr_array(X))):
        clf = Uncalibrated(estimator, random_state=0).fit(train, y)
        assert_allclose(clf.predict_log_proba(test), clf.predict_log_proba(train), rtol=1e-10)


@pytest.mark.parametrize("container", [csr_array, csc_array, coo_array])
def test_sparse_input_of_any_format(digits, container):
    X, y = digits
    solver = LogisticRegression(solver="newton-cg", tol=1e-10)
    dense = Uncalibrated(solver, random_state=0).fit(X, y)
    sparse = Uncalibrated(solver, random_state=0).fit(container(X), y)
    assert_allclose(sparse.predict_proba(container(X)), dense.predict_proba(X), atol=1e-8)


def test_sparse_input_for_a_dense_learner_is_refused(digits):
    X, y = digits
    with pytest.raises(TypeError, match="dense data is required"):
        Uncalibrated(GaussianNB()).fit(csr_array(X), y)


def test_data_frames_and_their_column_names(iris):
    X, y = iris
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    clf = Uncalibrated(random_state=0, estimator=LOGISTIC).fit(frame, pd.Series(y))
    assert clf.feature_names_in_.tolist() == ["a", "b", "c", "d"]
    assert clf.n_features_in_ == 4
    plain = Uncalibrated(random_state=0, estimator=LOGISTIC).fit(X, y)
    assert np.array_equal(clf.predict_proba(frame), plain.predict_proba(X))
    with pytest.raises(ValueError, match="feature names"):
        clf.predict(frame[["b", "a", "c", "d"]])


def test_missing_values_go_to_learners_that_take_them_and_no_further(iris):
    X, y = iris
    holes = X.copy()
    holes[::7, 2] = np.nan
    with pytest.raises(ValueError, match="contains NaN"):
        Uncalibrated(LOGISTIC).fit(holes, y)
    clf = Uncalibrated(HistGradientBoostingClassifier(max_iter=5), random_state=0).fit(holes, y)
    assert clf.score(holes, y) > 0.9
    with pytest.raises(ValueError, match="contains NaN"):
        Uncalibrated(LOGISTIC).fit(X, y).predict(holes)


def test_a_users_tree_must_have_exactly_the_classes(iris):
    X, y = iris
    with pytest.raises(ValueError, match="Class 2 is missing from the tree"):
        Uncalibrated(structure=[0, 1]).fit(X, y)
    clf = Uncalibrated(LOGISTIC, structure=[[0, 1], [2, 3]]).fit(X, y)  # no row of class 3
    assert clf.tree_.to_nested() == [[0, 1], 2]


def test_a_users_tree_works_in_meta_estimators_that_code_the_labels(iris):
    X, y = iris
    names = np.array(["ash", "elm", "oak"])[y]
    nested = Uncalibrated(GaussianNB(), ["oak", ["ash", "elm"]])
    proba = cross_val_predict(nested, X, names, method="predict_proba", cv=3)
    assert (proba.argmax(axis=1) == y).mean() > 0.9
    assert BaggingClassifier(nested, 3, random_state=0).fit(X, names).score(X, names) > 0.9
    rare = np.where(np.arange(150) == 7, "yew", names)  # missing from two of three folds
    forest = ClassTree.from_nested([["yew", "oak"], ["ash", "elm"]])
    folds = cross_val_predict(
        Uncalibrated(GaussianNB(), forest), X, rare, cv=KFold(3, shuffle=True, random_state=0)
    )
    assert (folds == names).mean() > 0.8


def test_a_very_deep_tree_can_be_cloned_pickled_and_shown():
    nested = 0
    for label in range(1, 5_000):
        nested = [nested, label]
    clf = Uncalibrated(structure=ClassTree.from_nested(nested))
    assert clone(clf).structure == clf.structure
    assert pickle.loads(pickle.dumps(clf)).structure == clf.structure
    assert "5000 classes" in repr(clf)


def test_rows_of_no_weight_are_not_shown_to_the_learner(iris):
    X, y = iris
    weight = np.where(np.arange(150) % 2, 1.0, 0.0)
    clf = Uncalibrated(DecisionTreeClassifier(), random_state=0).fit(X, y, weight)
    assert clf.estimators_[0].tree_.n_node_samples[0] == 75


def test_unfitted_is_said_so(iris):
    for method in ("predict", "predict_proba", "predict_log_proba"):
        with pytest.raises(NotFittedError):
            getattr(Uncalibrated(), method)(iris[0])
    with pytest.raises(NotFittedError):
        _ = Uncalibrated().estimators_


# ------------------------------------------------------------------ weights


@pytest.mark.parametrize("estimator", [LOGISTIC, GaussianNB()], ids=repr)
@pytest.mark.parametrize("structure", STRUCTURES.names())
def test_weight_two_is_a_row_twice(iris, rng, estimator, structure):
    X, y = iris
    weight = rng.integers(0, 4, size=150)
    weighted = Uncalibrated(estimator, structure, random_state=0).fit(X, y, weight)
    repeated = Uncalibrated(estimator, structure, random_state=0)
    repeated.fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    assert weighted.tree_ == repeated.tree_
    assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), atol=1e-10)


def test_negative_weights_are_refused(iris):
    with pytest.raises(ValueError, match=r"[Nn]egative"):
        Uncalibrated().fit(*iris, sample_weight=-np.ones(150))


def test_weights_are_routed(iris, rng):
    X, y = iris
    weight = rng.random(150)
    with sklearn.config_context(enable_metadata_routing=True):
        expected = Clones(GaussianNB().set_fit_request(sample_weight=True), random_state=0)
        expected.set_fit_request(sample_weight=True).set_score_request(sample_weight=False)
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        pipeline = make_pipeline(scaler, expected).fit(X, y, sample_weight=weight)
        nodes = pipeline[-1].estimators_
        assert not np.allclose(nodes[0].class_count_, np.round(nodes[0].class_count_))
        ignoring = Clones(GaussianNB().set_fit_request(sample_weight=False))
        ignoring.set_fit_request(sample_weight=True).fit(X, y, sample_weight=weight)
        assert ignoring.estimators_[0].class_count_.sum() == 150
        unset = Uncalibrated(GaussianNB()).set_fit_request(sample_weight=True)
        with pytest.raises(sklearn.exceptions.UnsetMetadataPassedError, match="sample_weight"):
            unset.fit(X, y, sample_weight=weight)
        step = LogisticRegression(max_iter=500).set_fit_request(sample_weight=True)
        inner = Uncalibrated(make_pipeline(scaler, step)).set_fit_request(sample_weight=True)
        assert inner.fit(X, y, sample_weight=weight).score(X, y) > 0.5
        results = cross_validate(expected, X, y, params={"sample_weight": weight}, cv=3)
        assert results["test_score"].min() > 0.7


# ------------------------------------------------------------------ in company


def test_pipelines_grid_search_and_cross_validation(digits):
    X, y = digits
    model = make_pipeline(StandardScaler(), Uncalibrated(GaussianNB(), random_state=0))
    model.set_output(transform="pandas")
    grid = {
        "nesteddichotomyclassifier__structure": ["random", "class-balanced"],
        "nesteddichotomyclassifier__estimator__var_smoothing": [1e-9, 1e-1],
    }
    search = GridSearchCV(model, grid, cv=3, scoring="neg_log_loss").fit(X, y)
    assert search.best_params_["nesteddichotomyclassifier__estimator__var_smoothing"] == 1e-1
    proba = cross_val_predict(search.best_estimator_, X, y, method="predict_proba", cv=3)
    assert proba.shape == (len(y), 10)
    assert get_scorer("neg_log_loss")(search.best_estimator_, X, y) < 0


def test_it_can_be_bagged_and_be_a_base_learner_itself(digits):
    X, y = digits
    bag = BaggingClassifier(Uncalibrated(GaussianNB(var_smoothing=0.1)), 5, random_state=0).fit(X, y)
    single = Uncalibrated(GaussianNB(var_smoothing=0.1), random_state=0).fit(X, y)
    assert bag.score(X, y) > single.score(X, y)


def test_pickle_and_clone(digits):
    X, y = digits
    clf = Uncalibrated(GaussianNB(), random_state=0, n_jobs=2).fit(X, y)
    again = pickle.loads(pickle.dumps(clf))
    assert np.array_equal(again.predict_log_proba(X), clf.predict_log_proba(X))
    assert again.tree_ == clf.tree_
    copy = clone(clf)
    assert copy.get_params()["n_jobs"] == 2
    assert not hasattr(copy, "tree_")


def test_random_state_decides_everything(digits):
    X, y = digits
    base = RandomForestClassifier(n_estimators=3)

    def proba(seed):
        return Uncalibrated(base, random_state=seed).fit(X, y).predict_proba(X)

    assert np.array_equal(proba(1), proba(1))
    assert not np.array_equal(proba(1), proba(2))
    assert np.array_equal(proba(np.random.RandomState(5)), proba(np.random.RandomState(5)))


@pytest.mark.parametrize(
    "estimator", [LOGISTIC, GaussianNB(), DecisionTreeClassifier(random_state=0)], ids=repr
)
def test_the_chunk_size_does_not_matter(digits, estimator, monkeypatch):
    X, y = digits
    X = np.tile(X, (4, 1))
    clf = Uncalibrated(estimator, random_state=0).fit(X[: len(y)], y)
    whole = clf.predict_log_proba(X)
    for rows in (64, 128, 192, 1_024):
        monkeypatch.setattr(chunks, "CHUNK_BYTES", rows * 9 * 8)
        # a matrix product takes its sums in an order that depends on the number of rows
        answer = clf.predict_log_proba(X)
        assert_allclose(answer, whole, rtol=1e-12)
        assert np.array_equal(clf.set_params(n_jobs=2).predict_log_proba(X), answer)
        assert np.array_equal(clf.predict(X), clf.classes_[answer.argmax(axis=1)])
        clf.set_params(n_jobs=None)


def test_log_probabilities_and_probabilities_agree(digits):
    X, y = digits
    clf = Uncalibrated(LOGISTIC, random_state=0).fit(X, y)
    assert_allclose(np.exp(clf.predict_log_proba(X)), clf.predict_proba(X), rtol=1e-12)


def test_the_way_nodes_were_trained_is_told(iris, capfd):
    clf = Clones(LOGISTIC, verbose=1).fit(*iris)
    assert clf.learner_ == "clones: one LogisticRegression per node"
    assert f"[dichotomies] {clf.learner_}\n" in capfd.readouterr().err
    told = Uncalibrated(DecisionTreeClassifier()).fit(*iris).learner_
    assert told.endswith("per node, because there is no fast path for DecisionTreeClassifier")


def test_a_learner_that_cannot_train_the_estimator_says_so(iris):
    with pytest.raises(ValueError, match=r"no learner named 'logistics'.*Did you mean 'logistic'"):
        Uncalibrated(LOGISTIC, learner="logistics").fit(*iris)
    with pytest.raises(ValueError, match="LogisticRegression, because it trains only GaussianNB,"):
        Uncalibrated(LOGISTIC, learner="naive-bayes").fit(*iris)


def test_trained_clones_exist_only_where_clones_were_trained(iris):
    with pytest.raises(AttributeError, match="learner='clones'"):
        _ = Uncalibrated(GaussianNB()).fit(*iris).estimators_


def test_two_classes_report_progress_too(iris, capfd):
    X, y = iris
    Clones(GaussianNB(), verbose=1).fit(X, y == 1)
    assert "fitting: 100%, took" in capfd.readouterr().err


def test_verbose_reports_progress_on_stderr(digits, capfd):
    Clones(GaussianNB(), random_state=0, verbose=1).fit(*digits)
    captured = capfd.readouterr()
    assert "fitting: 100%, took" in captured.err
    assert not captured.out
    Uncalibrated(GaussianNB(), random_state=0).fit(*digits)
    assert not capfd.readouterr().err


def test_a_chain_of_many_classes_predicts_without_recursion():
    k = 1_500
    X = np.repeat(np.arange(k, dtype=float)[:, None], 2, axis=0)
    y = np.repeat(np.arange(k), 2)
    nested = 0
    for label in range(1, k):
        nested = [nested, label]
    clf = Uncalibrated(DecisionTreeClassifier(max_depth=1), nested).fit(X, y)
    assert clf.tree_.max_depth == k - 1
    assert clf.score(X, y) == 1
    assert_allclose(clf.predict_proba(X[:50]).sum(axis=1), 1, atol=1e-9)


class WithFewerParameters(NestedDichotomyClassifier):
    def __init__(self, estimator=None, *, random_state=None):
        super().__init__(estimator, random_state=random_state)


def test_a_subclass_may_have_a_constructor_with_fewer_parameters(iris):
    X, y = iris
    assert clone(WithFewerParameters(random_state=0)).fit(X, y).score(X, y) > 0.9


def test_an_unknown_parameter_is_refused_in_the_name_of_the_class():
    with pytest.raises(TypeError, match=r"NestedDichotomyClassifier.*'ensemble'"):
        NestedDichotomyClassifier(ensemble=True)


def test_failures_of_linear_algebra_are_sentences_and_leave_what_was_fitted(monkeypatch):
    X, y = load_iris(return_X_y=True)
    clf = NestedDichotomyClassifier(GaussianNB(), random_state=0).fit(X, y)

    def fail(*_):
        raise np.linalg.LinAlgError("Eigenvalues did not converge")

    monkeypatch.setattr("dichotomies.estimators.base.train", fail)
    with pytest.raises(ValueError, match="scale them, as StandardScaler does") as caught:
        clf.fit(X * 1e50, y)
    assert not isinstance(caught.value, np.linalg.LinAlgError)
    assert clf.score(X, y) > 0.9
