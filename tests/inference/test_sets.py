"""Prediction sets hold their coverage; tree answers are as deep as the evidence."""

from copy import copy

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.naive_bayes import GaussianNB, MultinomialNB

import dichotomies
from dichotomies import ClassTree, NestedDichotomyClassifier, NestedDichotomyEnsemble
from dichotomies.inference.conformal import GROUPS, SCORES, ConformalRows, Score, quantile
from dichotomies.inference.tree_answers import TreeAnswers, descend, first_without, node_masses

N_CLASSES = 20


def _rows(rng, n_rows):
    """Rows of classes that overlap, so that a set of several is needed."""
    y = rng.integers(N_CLASSES, size=n_rows)
    centers = np.random.default_rng(0).normal(size=(N_CLASSES, 4))
    return centers[y] + rng.normal(scale=0.8, size=(n_rows, 4)), y


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(1)
    clf = NestedDichotomyClassifier(GaussianNB(), "class-balanced", random_state=0).fit(*_rows(rng, 1500))
    return clf.calibrate_sets(*_rows(rng, 1500))


def _within_chance(n_held, n_rows, coverage, n_calibration=1500):
    """The coverage given the calibration rows is beta distributed; both samples vary."""
    error = np.sqrt(coverage * (1 - coverage) * (1 / n_rows + 1 / n_calibration))
    return abs(n_held / n_rows - coverage) < 4 * error


@pytest.mark.parametrize("coverage", [0.8, 0.9, 0.95])
@pytest.mark.parametrize("score", SCORES)
def test_sets_hold_the_true_class_as_often_as_asked(fitted, score, coverage):
    X, y = _rows(np.random.default_rng(2), 2000)
    sets = fitted.predict_set(X, coverage, score=score, allow_empty=True)
    held = sum(label in labels for label, labels in zip(y, sets, strict=True))
    assert _within_chance(held, len(y), coverage)
    filled = fitted.predict_set(X, coverage, score=score)
    for first, labels, other in zip(fitted.predict(X), sets, filled, strict=True):
        assert other[0] == first
        assert set(other) == {first, *labels}


@pytest.mark.parametrize("by", GROUPS)
def test_least_ambiguous_sets_are_the_classes_above_their_thresholds(fitted, by):
    X, _ = _rows(np.random.default_rng(3), 500)
    sets = fitted.predict_set(X, 0.9, by=by)
    thresholds = fitted.conformal_.thresholds(Score(), 0.9, by, N_CLASSES, fitted.class_count_)
    log_proba = fitted.predict_log_proba(X)
    for labels, row in zip(sets, log_proba, strict=True):
        assert set(labels) == set(np.flatnonzero(-row <= thresholds)) | {row.argmax()}
    assert (np.diff([row[labels[0]] for labels, row in zip(sets, log_proba, strict=True)]) != 0).any()


def test_thresholds_of_each_class_cover_each_class(fitted):
    X, y = _rows(np.random.default_rng(4), 6000)
    sets = fitted.predict_set(X, 0.8, by="class")
    held = np.array([label in labels for label, labels in zip(y, sets, strict=True)])
    for c in range(N_CLASSES):
        n_own = (fitted.conformal_.codes == c).sum()
        assert _within_chance(held[y == c].sum(), (y == c).sum(), 0.8, n_own)


def test_rare_and_frequent_classes_are_covered_alike():
    """Rows of rare classes have higher scores here, as they have in practice."""
    rng = np.random.default_rng(0)
    count = np.repeat([1, 5, 50], 200)
    frequency = np.repeat([1.0, 3.0, 10.0], 200) / 2800

    def rows(n):
        codes = rng.choice(600, n, p=frequency)
        log_proba, none = -rng.exponential(5 / np.log1p(count[codes])), np.zeros(n)
        return ConformalRows(codes, log_proba, none, codes, none, none)

    calibration, test = rows(3000), rows(20_000)
    thresholds = calibration.thresholds(Score(), 0.8, "frequency", 600, count)
    assert all(len(np.unique(thresholds[count == each])) == 1 for each in np.unique(count))
    held = -test.log_proba <= thresholds[test.codes]
    for each in np.unique(count):
        mine = count[test.codes] == each
        n_own = (count[calibration.codes] == each).sum()
        assert _within_chance(held[mine].sum(), mine.sum(), 0.8, n_own)


def test_models_of_earlier_versions_do_not_know_frequencies(fitted):
    old = copy(fitted)
    del old.class_count_
    with pytest.raises(ValueError, match="class_count_"):
        old.predict_set(_rows(np.random.default_rng(3), 5)[0], 0.9, by="frequency")


def test_classes_with_too_few_rows_share_a_threshold():
    rng = np.random.default_rng(0)
    codes = np.r_[np.zeros(100, int), np.repeat(np.arange(1, 21), 2)]
    log_proba = -np.r_[rng.random(100), 5 + rng.random(40)]
    none = np.zeros(len(codes))
    rows = ConformalRows(codes, log_proba, none, codes, none, none)
    thresholds = rows.thresholds(Score(), 0.9, "class", 22)
    assert thresholds[0] == quantile(-log_proba[:100], 0.9)
    assert (thresholds[1:] == quantile(-log_proba[100:], 0.9)).all()


def test_the_quantile_is_the_least_that_covers():
    scores = np.array([3.0, 1.0, 2.0, 5.0, 4.0])
    for coverage in (0.1, 0.5, 0.6, 0.8, 0.83):
        q = quantile(scores, coverage)
        # at least coverage * (n + 1) of the n + 1 exchangeable scores, the new one last
        assert (scores <= q).sum() >= coverage * 6 - 1e-9 > (scores < q).sum()
    assert quantile(scores, 0.9) == np.inf


@pytest.mark.parametrize(
    ("kind", "parameters"),
    [
        (NestedDichotomyClassifier, {}),
        (NestedDichotomyClassifier, {"internal_calibration": None, "external_calibration": None}),
        (NestedDichotomyClassifier, {"external_calibration": "vector", "calibration_size": 0.3}),
        (NestedDichotomyClassifier, {"internal_calibration": "isotonic", "average_folds": True}),
        (NestedDichotomyEnsemble, {"n_estimators": 2}),
    ],
)
def test_sets_from_the_folds_of_calibration_hold_their_coverage(kind, parameters):
    rng = np.random.default_rng(5)
    X, y = _rows(rng, 3000)
    clf = kind(GaussianNB(), "random", prediction_sets=2, random_state=0, **parameters).fit(X, y)
    X_test, y_test = _rows(np.random.default_rng(6), 2000)
    sets = clf.predict_set(X_test, 0.9, allow_empty=True)
    held = np.mean([c in s for c, s in zip(y_test, sets, strict=True)])
    assert 0.87 < held < 0.93
    for groups in (1, 2):
        assert clf.predict_node(X_test, coverage=0.9, groups=groups).holds(y_test).mean() > 0.87


def test_scores_from_folds_are_those_of_models_fitted_on_the_other_folds():
    X, y = _rows(np.random.default_rng(5), 300)
    fold = np.arange(len(y)) % 3
    splits = [(np.flatnonzero(fold != f), np.flatnonzero(fold == f)) for f in range(3)]
    tree = ClassTree(range(N_CLASSES), np.arange(N_CLASSES - 1) % 5)
    plain = NestedDichotomyClassifier(
        GaussianNB(), tree, internal_calibration=None, external_calibration=None, cv=splits
    )
    rows = clone(plain).set_params(prediction_sets=1).fit(X, y).conformal_
    expected = np.empty(len(y))
    for train, test in splits:
        expected[test] = plain.fit(X[train], y[train]).predict_log_proba(X[test])[
            np.arange(len(test)), y[test]
        ]
    assert np.array_equal(rows.codes, y)
    np.testing.assert_allclose(rows.log_proba, expected, rtol=1e-5)


@pytest.mark.parametrize("coverage", [0.8, 0.95])
def test_nodes_hold_the_true_class_as_often_as_asked(fitted, coverage):
    X, y = _rows(np.random.default_rng(7), 2000)
    answers = fitted.predict_node(X, coverage=coverage)
    assert _within_chance(answers.holds(y).sum(), len(y), coverage)
    assert 1 < answers.size.mean() < N_CLASSES


def test_confident_nodes_are_the_deepest_that_are_probable_enough(fitted):
    X, _ = _rows(np.random.default_rng(8), 200)
    tree, proba = fitted.tree_, fitted.predict_proba(X)
    for confidence in (0.6, 0.9, 1.0):
        answers = fitted.predict_node(X, confidence)
        for i in range(len(X)):
            groups = [tree.leaf_labels[a:b] for a, b in zip(tree.start, tree.stop, strict=True)]
            groups += [np.array([c]) for c in tree.classes]
            probable = [g for g in groups if proba[i, g].sum() >= confidence - 1e-12] or [tree.leaf_labels]
            assert set(answers.labels(i)) == set(min(probable, key=len))
            assert answers.proba[i] == pytest.approx(proba[i, answers.labels(i)].sum())


def test_the_tree_cut_at_a_depth_gives_its_most_probable_group(fitted):
    X, _ = _rows(np.random.default_rng(9), 50)
    tree, proba = fitted.tree_, fitted.predict_proba(X)
    for depth in (0, 2, 99):
        cut = tree.cut(depth)
        sums = np.stack([proba[:, cut.group_of_class == g].sum(axis=1) for g in range(len(cut))], axis=1)
        answers = fitted.predict_at_depth(X, depth)
        assert np.array_equal(answers.start, cut.start[sums.argmax(axis=1)])
        np.testing.assert_allclose(answers.proba, sums.max(axis=1))
        assert (answers.depth <= depth).all()


def test_an_answer_holds_a_class_unless_it_goes_beyond_the_first_node_without_it(rng):
    tree = ClassTree(rng.permutation(9), rng.permutation(8))
    sums = node_masses(tree, rng.dirichlet(np.ones(9), size=100))
    leaf = rng.integers(9, size=100)
    wrong = first_without(tree, sums, leaf)
    for t in (0.2, 0.5, 0.8):
        start, stop = descend(tree, sums, np.nextafter(t, 2))
        assert np.array_equal((start <= leaf) & (leaf < stop), wrong <= t)


def test_names_of_groups_are_what_hierarchical_labels_have_in_common():
    tree = ClassTree.from_nested([["bird/duck", "bird/owl"], "fish/eel"])
    answers = TreeAnswers(tree, np.array([0, 0, 2]), np.array([2, 3, 3]), np.ones(3))
    assert answers.names == ["bird", "3 classes: bird/duck, bird/owl, fish/eel", "fish/eel"]
    assert answers.depth.tolist() == [1, 0, 1]
    assert answers.holds(np.array(["fish/eel", "fish/eel", "owl"])).tolist() == [False, True, False]


def test_ensembles_have_sets_and_they_are_saved(tmp_path):
    rng = np.random.default_rng(10)
    clf = NestedDichotomyEnsemble(GaussianNB(), n_estimators=2, random_state=0).fit(*_rows(rng, 400))
    X, y = _rows(rng, 400)
    clf.calibrate_sets(X, y).save(tmp_path / "sets.model")
    again = dichotomies.load(tmp_path / "sets.model")
    for one, other in zip(clf.predict_set(X), again.predict_set(X), strict=True):
        assert np.array_equal(one, other)
    clf.fit(X, y)
    assert not hasattr(clf, "conformal_")


def test_rare_classes_get_finite_sets_or_all_classes():
    rows = ConformalRows(np.array([0, 0]), np.log([0.5, 0.2]), *np.zeros((2, 2)), *np.zeros((2, 2)))
    assert np.isinf(rows.thresholds(Score(), 0.9, "class", 3)).all()
    assert np.isfinite(rows.thresholds(Score(), 0.5, "cluster", 3)).all()


def test_what_is_missing_is_said():
    X, y = np.eye(6), np.arange(6) % 3
    clf = NestedDichotomyClassifier(MultinomialNB(), "random", external_calibration=None).fit(X, y)
    with pytest.raises(NotFittedError, match="call calibrate_sets"):
        clf.predict_set(X)
    clf.calibrate_sets(X, y)
    with pytest.raises(ValueError, match="coverage must be a float between 0 and 1"):
        clf.predict_set(X, 1.0)
    with pytest.raises(ValueError, match="score must be one of"):
        clf.predict_set(X, score="best")
    with pytest.raises(ValueError, match="by must be one of"):
        clf.predict_set(X, by="label")
    with pytest.raises(ValueError, match="either confidence or coverage"):
        clf.predict_node(X)
    with pytest.raises(ValueError, match="confidence must be a probability"):
        clf.predict_node(X, 2.0)
    with pytest.raises(ValueError, match="y has 2 labels"):
        clf.calibrate_sets(X, y[:2])
    assert len(clf.predict_set(X, 0.99)[0]) == 3  # too few rows for less than all classes
