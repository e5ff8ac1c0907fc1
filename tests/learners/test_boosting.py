"""Boosted trees: equal to scikit-learn's up to ties, and at all nodes equal to one clone per node."""

import os
import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import AdaBoostClassifier
from sklearn.metrics import log_loss
from sklearn.tree import DecisionTreeClassifier

from dichotomies._common.parallel import Context
from dichotomies.learners import Wanted, choose
from dichotomies.learners.boosting import HistAdaBoostClassifier, HistGradientBoostClassifier
from dichotomies.learners.boosting.binning import bin_ranges
from dichotomies.tree import ClassTree
from tests.learners.plain_trees import feature_and_threshold, split_at, value
from tests.tasks import in_folds, node_task
from tests.uncalibrated import Uncalibrated

DISCRETE = HistAdaBoostClassifier(8)
REAL = HistAdaBoostClassifier(8, algorithm="real", learning_rate=0.7, min_samples_leaf=3)
GRADIENT = HistGradientBoostClassifier(8, l2_regularization=0.5, min_samples_leaf=2)
ALL = pytest.mark.parametrize("estimator", [DISCRETE, REAL, GRADIENT], ids=["discrete", "real", "gradient"])

CHECK_ESTIMATOR = """
from sklearn.utils.estimator_checks import check_estimator
from dichotomies.learners.boosting import HistAdaBoostClassifier, HistGradientBoostClassifier
for estimator in (
    HistAdaBoostClassifier(), HistAdaBoostClassifier(algorithm="real"), HistGradientBoostClassifier()
):
    results = check_estimator(estimator)
    bad = [r["check_name"] for r in results if r["status"] != "passed"]
    assert len(results) > 50 and not bad, bad
"""


@pytest.mark.slow
def test_scikit_learn_accepts_them_with_no_check_failed_or_skipped():
    """In a process of its own: one check needs SCIPY_ARRAY_API set before scipy is imported."""
    environment = {**os.environ, "SCIPY_ARRAY_API": "1"}
    subprocess.run([sys.executable, "-c", CHECK_ESTIMATOR], env=environment, check=True)


# ------------------------------------------------------------------ equality with scikit-learn


def halves(X, target):
    even = np.arange(len(target)) % 2 == 0
    return X[even], target[even], X[~even], target[~even]


def impurity(target, weight):
    positive = weight[target].sum() / weight.sum()
    return weight.sum() * 2 * positive * (1 - positive)


def decreases(goes_right, target, weight):
    whole = impurity(target, weight)
    return whole - sum(impurity(target[side], weight[side]) for side in (goes_right, ~goes_right))


def compare_tree(trees, t, reference, X, target, weight):
    """Same impurity decrease at every split; return whether all splits are the same as well."""
    pairs, same = [(0, 0, 0, np.arange(len(X)))], True
    while pairs:
        leaf, first, theirs, rows = pairs.pop()
        ours = split_at(trees, t, leaf, first)
        if ours is None:  # scikit-learn may split a pure node, by rounding
            assert reference.feature[theirs] < 0 or impurity(target[rows], weight[rows]) < 1e-12
            continue
        feature, threshold = feature_and_threshold(trees, t, ours)
        all_right, their_all = (
            X[:, feature] > threshold,
            X[:, reference.feature[theirs]] > reference.threshold[theirs],
        )
        right, their_right = all_right[rows], their_all[rows]
        gains = [decreases(side, target[rows], weight[rows]) for side in (right, their_right)]
        assert_allclose(gains[0], gains[1], atol=1e-9)
        same &= feature == reference.feature[theirs] and np.array_equal(all_right, their_all)
        if not np.array_equal(right, their_right):
            continue  # a tie: what lies below is another problem
        pairs += [
            (leaf, ours + 1, reference.children_left[theirs], rows[~right]),
            (ours + 1, ours + 1, reference.children_right[theirs], rows[right]),
        ]
    return same


def test_every_stage_of_discrete_adaboost_is_the_tree_of_scikit_learn_on_its_weights(digits):
    X, y = digits
    X, target, X_test, _ = halves(np.round(16 * X), y % 2 == 1)
    model = HistAdaBoostClassifier(30).fit(X, target)
    weight, same = np.full(len(X), 1 / len(X)), 0
    stages = _votes(model, X), _votes(model, X_test)
    assert model.n_trees_ == 30
    for t, (vote, test_vote) in enumerate(zip(*stages, strict=True)):
        reference = DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, target, weight)
        error = weight[(vote > 0) != target].sum()
        if compare_tree(model._trees, t, reference.tree_, X, target, weight):
            same += 1
            assert np.array_equal(reference.predict(X_test), test_vote > 0)
        assert_allclose(np.abs(vote), np.log((1 - error) / error), rtol=1e-9)
        weight = weight * np.where((vote > 0) != target, np.exp(np.abs(vote)), 1)
        weight /= weight.sum()
    assert same > 20


def _votes(model, X):
    return np.array([value(model._trees, t, X) for t in range(model.n_trees_)])


@pytest.mark.slow
@pytest.mark.parametrize(("name", "labels"), [("letter", "ABCDEFGHIJKLM"), ("optdigits", "01234")])
def test_whole_ensembles_predict_as_well_as_scikit_learns(real_data, name, labels):
    data = real_data(name)
    X, y = data.split("train")
    X_test, y_test = data.split("test")
    classes = np.unique(y)
    first = classes[: len(labels)]
    target, truth = np.isin(y, first)[:4_000], np.isin(y_test, first)
    X = X[:4_000]
    ours = HistAdaBoostClassifier().fit(X, target)
    theirs = AdaBoostClassifier(DecisionTreeClassifier(max_depth=3), random_state=0).fit(X, target)
    assert_allclose(ours.score(X_test, truth), theirs.score(X_test, truth), atol=0.006)
    nll = [log_loss(truth, model.predict_proba(X_test)) for model in (ours, theirs)]
    assert_allclose(nll[0], nll[1], rtol=5e-3)


def test_without_ties_discrete_adaboost_is_scikit_learns(rng):
    """Many rows and few leaves: no leaf is so small that two features divide it in the same way."""
    X = rng.integers(0, 40, size=(4_000, 6)).astype(float)
    target = X[:, 0] + X[:, 1] * X[:, 2] / 20 + rng.normal(0, 8, size=4_000) > 40
    X, target, X_test, _ = halves(X, target)
    weight = rng.uniform(0.5, 2, size=len(X))
    ours = HistAdaBoostClassifier(20, max_depth=2, learning_rate=0.5).fit(X, target, weight)
    tree = DecisionTreeClassifier(max_depth=2)
    theirs = AdaBoostClassifier(tree, n_estimators=20, learning_rate=0.5, random_state=0)
    theirs.fit(X, target, weight)
    assert ours.n_trees_ == len(theirs.estimators_)
    assert_allclose(ours.decision_function(X_test), theirs.decision_function(X_test), atol=1e-8)
    assert_allclose(ours.predict_proba(X_test), theirs.predict_proba(X_test), atol=1e-8)
    staged = ours.staged_decision_function(X_test), theirs.staged_decision_function(X_test)
    for mine, other in zip(*staged, strict=True):
        assert_allclose(mine, other, atol=1e-8)


def test_real_adaboost_is_the_algorithm_scikit_learn_had(rng):
    X = rng.integers(0, 40, size=(600, 6)).astype(float)
    target = X[:, 0] + X[:, 1] * X[:, 2] / 20 + rng.normal(0, 8, size=600) > 40
    X, target, X_test, _ = halves(X, target)
    weight, total, eps = np.full(len(X), 1 / len(X)), 0.0, np.finfo(float).eps
    for _ in range(10):
        tree = DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, target, np.maximum(weight, eps))
        log_proba = np.log(np.maximum(tree.predict_proba(X), eps))
        log_odds = log_proba[:, 1] - log_proba[:, 0]
        weight = weight * np.exp(-0.5 * np.where(target, log_odds, -log_odds))
        weight /= weight.sum()
        test = np.log(np.maximum(tree.predict_proba(X_test), eps))
        total += test[:, 1] - test[:, 0]
    ours = HistAdaBoostClassifier(10, algorithm="real").fit(X, target)
    assert_allclose(ours.decision_function(X_test), total / 10, atol=1e-7)


# ------------------------------------------------------------------ laws of the estimators


@ALL
def test_the_order_of_rows_does_not_matter(digits, rng, estimator):
    X, y = digits
    weight, shuffled = rng.uniform(0.1, 3, size=len(y)), rng.permutation(len(y))
    first = estimator.fit(X, y > 4, weight).decision_function(X)
    second = estimator.fit(X[shuffled], y[shuffled] > 4, weight[shuffled]).decision_function(X)
    assert np.array_equal(first, second)


@pytest.mark.parametrize("estimator", [DISCRETE, HistGradientBoostClassifier(8)])
def test_a_weight_of_two_is_a_row_twice_and_of_zero_none(digits, rng, estimator):
    X, y = digits[0][:300], digits[1][:300] > 4
    weight = rng.integers(0, 3, size=300)
    weighted = estimator.fit(X, y, weight).decision_function(X)
    repeated = estimator.fit(np.repeat(X, weight, axis=0), np.repeat(y, weight)).decision_function(X)
    assert_allclose(weighted, repeated, atol=1e-6)


def test_a_perfect_tree_ends_boosting_and_no_tree_means_even_odds():
    X = np.array([[0.0], [1.0], [2.0], [3.0]])
    perfect = HistAdaBoostClassifier().fit(X, [0, 0, 1, 1])
    assert perfect.n_trees_ == 1
    assert perfect.decision_function([[1.4], [1.6]]).tolist() == [-2.0, 2.0]
    constant = HistAdaBoostClassifier().fit(np.ones((4, 2)), [0, 1, 0, 1])
    assert constant.n_trees_ == 0
    assert constant.predict_proba(np.ones((1, 2))).tolist() == [[0.5, 0.5]]


def test_a_leaf_has_at_least_as_many_rows_as_asked(digits):
    X, y = digits
    for kind in (HistAdaBoostClassifier, HistGradientBoostClassifier):
        estimator = kind(1, max_depth=3, min_samples_leaf=40)
        leaves = value(estimator.fit(X, y > 4)._trees, 0, X)
        assert np.unique(leaves, return_counts=True)[1].min() >= estimator.min_samples_leaf


def test_many_values_are_cut_into_bins_of_about_equal_weight(rng):
    values = rng.normal(size=10_000)
    low, high = bin_ranges(np.sort(values), np.ones(len(values)), 50)
    assert len(low) == 50
    assert (low <= high).all()
    assert (high[:-1] < low[1:]).all()
    counts = np.histogram(values, np.append(low, np.inf))[0]
    assert counts.min() >= 199
    assert counts.max() <= 201


def test_continuous_features_are_learned_about_as_well_as_by_scikit_learn():
    X, target, X_test, truth = halves(*load_breast_cancer(return_X_y=True))
    ours = HistAdaBoostClassifier(max_bins=32).fit(X, target).score(X_test, truth)
    theirs = AdaBoostClassifier(DecisionTreeClassifier(max_depth=3), random_state=0).fit(X, target)
    assert abs(ours - theirs.score(X_test, truth)) < 0.03


def test_more_than_two_classes_are_sent_to_the_nested_dichotomy(iris):
    with pytest.raises(ValueError, match=r"Only binary.*NestedDichotomyClassifier\(HistAdaBoostClassifier"):
        HistAdaBoostClassifier().fit(*iris)


# ------------------------------------------------------------------ all nodes of a tree


def both(estimator, X, y, **params):
    """Fitted by the fast learner and by clones.

    Where a node has not seen a value between two of its own, thresholds may differ: they lie between the
    bins of all rows, or of the clone's. With three equally spaced values they agree.
    """
    weight = params.pop("sample_weight", None)
    return [
        Uncalibrated(estimator, random_state=0, learner=learner, **params).fit(X, y, weight)
        for learner in ("auto", "clones")
    ]


@ALL
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_all_nodes_together_are_one_clone_per_node(digits, rng, estimator, dtype):
    X, y = np.round(2 * digits[0]).astype(dtype), digits[1]
    weight = rng.uniform(0, 1, size=len(y)) * (rng.random(len(y)) > 0.2)
    for params in ({}, {"sample_weight": weight}):
        fast, slow = both(estimator, X[:600], y[:600], **{k: v[:600] for k, v in params.items()})
        assert fast.learner_.startswith("boosting: ")
        assert_allclose(
            fast.model_.scorer.log_odds(X), slow.model_.scorer.log_odds(X), rtol=1e-12, atol=1e-12
        )


@ALL
def test_nodes_on_the_path_of_a_rows_own_class_are_those_of_clones_whatever_the_values(rng, estimator):
    X = rng.normal(size=(240, 6))
    y = np.digitize(X[:, 0] + X[:, 1] ** 2 + rng.normal(0, 0.5, size=240), [0.0, 0.7, 1.5])
    own = [clf.predict_proba(X)[np.arange(240), y] for clf in both(estimator, X, y)]
    assert_allclose(*own, rtol=1e-12)


@ALL
def test_models_of_folds_are_those_of_clones(digits, estimator):
    X, y = (
        np.round(2 * digits[0][:300]),
        np.where(np.arange(300) == 7, 10, digits[1][:300]),
    )  # one class has one row
    for params in ({}, {"average_folds": True}):
        fast, slow = both(estimator, X, y, internal_calibration="platt", **params)
        assert_allclose(fast.predict_proba(X), slow.predict_proba(X), atol=1e-9)


def test_folds_without_a_side_give_no_score_and_only_what_is_wanted_is_made(iris):
    X, y = iris[0], np.where(np.arange(150) == 149, 3, iris[1])
    task = node_task(ClassTree.from_nested([[0, 1], [2, 3]]), X, y)
    folds = np.arange(150) % 3
    learner = choose(DISCRETE)
    made = learner.cross_fit(in_folds(task, folds), Wanted.SCORES, Context())
    assert made.full is None
    assert made.members == []
    pairs = task.own_pairs()
    node = np.repeat(np.arange(3), task.node_size)
    expected = (node == 2) & (folds[pairs.rows] == folds[149])
    assert np.array_equal(np.isnan(made.scores), expected)
    assert learner.cross_fit(in_folds(task, folds), Wanted.FULL, Context()).members == []


@ALL
def test_pairs_are_scored_as_whole_rows_are(digits, rng, estimator):
    X, y = digits
    scorer = Uncalibrated(estimator, random_state=0).fit(X, y).model_.scorer
    rows, nodes = rng.integers(len(X), size=500), rng.integers(9, size=500)
    assert_allclose(
        scorer.pair_log_odds(X, rows, nodes), scorer.log_odds(X)[rows, nodes], rtol=1e-12, atol=1e-12
    )


@ALL
def test_the_answer_does_not_depend_on_n_jobs(digits, estimator):
    X, y = digits
    answers = [
        Uncalibrated(estimator, random_state=0, internal_calibration="platt", n_jobs=n_jobs)
        .fit(X[:500], y[:500])
        .predict_proba(X)
        for n_jobs in (1, 2)
    ]
    assert np.array_equal(*answers)


@ALL
def test_deep_chains_constant_columns_and_classes_without_weight(rng, estimator):
    n = 60
    X = np.c_[np.repeat(np.arange(n), 2), np.zeros(2 * n), rng.integers(0, 3, size=2 * n)].astype(float)
    y = np.repeat(np.arange(n), 2)
    chain = ClassTree(np.arange(n), np.arange(n - 1))
    weight = np.where(y == 5, 0.0, 1.0)
    fast, slow = both(estimator, X, y, structure=chain, sample_weight=weight)
    assert_allclose(fast.predict_proba(X), slow.predict_proba(X), atol=1e-9)
    assert_allclose(fast.predict_proba(X).sum(axis=1), 1, atol=1e-9)


def test_scikit_learns_adaboost_is_left_to_clones_and_bad_parameters_are_refused(iris):
    assert choose(AdaBoostClassifier()).description.startswith("clones: ")
    with pytest.raises(ValueError, match="'max_depth' parameter"):
        Uncalibrated(HistAdaBoostClassifier(max_depth=9)).fit(*iris)
    with pytest.raises(ValueError, match="NaN"):
        Uncalibrated(DISCRETE).fit(np.where(iris[0] > 6, np.nan, iris[0]), iris[1])


@ALL
@pytest.mark.parametrize("scale", [5e-324, 1e-310, 1e-295, 1e-200, 1e-30, 1e30, 1e200, 1e307])
def test_weights_of_any_magnitude_give_finite_answers(iris, rng, estimator, scale):
    X, y = iris
    weight = np.maximum(rng.uniform(0.1, 1, size=len(y)) * scale, 5e-324)
    assert np.isfinite(estimator.fit(X, y > 0, weight).decision_function(X)).all()
    clf = Uncalibrated(estimator, "class-balanced", random_state=0).fit(X, y, weight)
    assert np.isfinite(clf.predict_log_proba(X)).all()
    mixed = np.where(np.arange(len(y)) % 3 == 0, 1.0, weight)
    assert np.isfinite(clf.fit(X, y, mixed).predict_log_proba(X)).all()


def test_the_scale_of_weights_does_not_matter_to_adaboost(iris, rng):
    X, y = iris
    weight = rng.uniform(0.1, 1, size=len(y))
    answers = [
        DISCRETE.fit(X, y > 0, weight * scale).decision_function(X) for scale in (1, 2.0**-900, 2.0**900)
    ]
    assert np.array_equal(answers[0], answers[1])
    assert np.array_equal(answers[0], answers[2])
