"""The tree cut at each depth, against cuts made by hand."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import accuracy_score

from dichotomies import ClassTree, NestedDichotomyClassifier
from dichotomies.diagnostics import depth_cuts, predict_groups
from dichotomies.metrics import expected_calibration_error, reliability_curve


def group_probabilities(clf, X, depth, external):
    model = clf.model_ if external else replace(clf.model_, external=None)
    proba = np.exp(model.predict_log_proba(X))
    cut = clf.tree_.cut(depth)
    return np.stack([proba[:, cut.group_of_class == g].sum(axis=1) for g in range(len(cut))], axis=1), cut


@pytest.mark.parametrize("stage", ["before", "after"])
def test_every_cut_is_what_the_summed_class_probabilities_give(calibrated, stage):
    clf, X, y = calibrated
    cuts = depth_cuts(clf, X, y, n_bins=10)
    measured = getattr(cuts, stage)
    assert cuts.depths.tolist() == list(range(1, clf.tree_.max_depth + 1))
    for i, depth in enumerate(cuts.depths):
        groups, cut = group_probabilities(clf, X, depth, stage == "after")
        truth = cut.group_of_class[np.searchsorted(clf.classes_, y)]
        assert cuts.n_groups[i] == len(cut)
        assert measured.accuracy[i] == accuracy_score(truth, groups.argmax(axis=1))
        assert measured.confidence[i] == pytest.approx(groups.max(axis=1).mean())
        labels = np.arange(len(cut))
        ece = expected_calibration_error(truth, groups, labels=labels, n_bins=10)
        assert measured.ece_top_label[i] == pytest.approx(ece, abs=1e-12)
        pooled = reliability_curve((truth[:, None] == labels).ravel(), groups.clip(0, 1).ravel(), n_bins=10)
        np.testing.assert_allclose(measured.pooled.count[i], pooled.count)
        np.testing.assert_allclose(measured.pooled[i].observed, pooled.accuracy)
        np.testing.assert_allclose(measured.pooled[i].mean_score, pooled.confidence)
        assert measured.ece_pooled[i] == pytest.approx(pooled.expected_calibration_error, abs=1e-12)


def test_the_deepest_cut_is_the_classifier_itself(scored):
    clf, X, y = scored
    cuts = depth_cuts(clf, X, y)
    last = cuts.before if cuts.after is None else cuts.after
    assert (cuts.after is None) == (clf.external_calibrator_ is None)
    assert last.accuracy[-1] == accuracy_score(y, clf.predict(X))
    assert last.confidence[-1] == pytest.approx(clf.predict_proba(X).max(axis=1).mean())
    assert cuts.n_groups[-1] == len(clf.classes_)


def test_the_first_cut_is_the_classifier_at_the_root(scored):
    clf, X, y = scored
    log_odds = clf.model_.scorer.log_odds(X)[:, 0]
    decided = np.abs(log_odds) > 1e-9  # isotonic nodes may be undecided, and then either side will do
    X, y, log_odds = X[decided], y[decided], log_odds[decided]
    cuts = depth_cuts(clf, X, y, depths=[1])
    is_left = np.isin(y, clf.tree_.leaf_labels[: clf.tree_.split[0]])
    assert cuts.before.accuracy[0] == accuracy_score(is_left, log_odds > 0)
    assert cuts.before.confidence[0] == pytest.approx((1 / (1 + np.exp(-np.abs(log_odds)))).mean())


def test_chosen_depths_are_those_among_all(calibrated):
    clf, X, y = calibrated
    every, some = depth_cuts(clf, X, y), depth_cuts(clf, X, y, depths=[2, 4])
    for name in ("accuracy", "confidence", "ece_top_label", "ece_pooled", "accuracy_error"):
        np.testing.assert_allclose(getattr(some.after, name), getattr(every.after, name)[[1, 3]])


def test_equal_probabilities_go_to_the_first_class_as_in_predict(rng):
    tree = ClassTree.from_nested([[2, 1], [3, 0]])
    X, y = np.zeros((40, 2)), np.arange(40) % 4
    clf = NestedDichotomyClassifier(structure=tree, internal_calibration=None, external_calibration=None).fit(
        X, y
    )
    cuts = depth_cuts(clf, X, y)
    assert cuts.before.accuracy[-1] == accuracy_score(y, clf.predict(X))


def test_weight_two_is_the_row_twice(calibrated, rng):
    clf, X, y = calibrated
    weight = rng.integers(0, 3, len(y))
    one, two = (
        depth_cuts(clf, X, y, sample_weight=weight),
        depth_cuts(clf, X.repeat(weight, 0), y.repeat(weight)),
    )
    for name in ("accuracy", "confidence", "ece_top_label", "ece_pooled"):
        np.testing.assert_allclose(getattr(one.after, name), getattr(two.after, name))


def test_standard_errors_are_about_those_of_the_bootstrap(calibrated, rng):
    clf, X, y = calibrated
    cuts = depth_cuts(clf, X, y)
    share = cuts.after.accuracy
    np.testing.assert_allclose(cuts.after.accuracy_error, np.sqrt(share * (1 - share) / len(y)), rtol=0.6)
    drawn = [depth_cuts(clf, X[i], y[i]).after.ece_pooled for i in rng.integers(0, len(y), (30, len(y)))]
    assert (cuts.after.ece_pooled_error / np.std(drawn, axis=0) < 3).all()
    assert (cuts.after.ece_pooled_error / np.std(drawn, axis=0) > 1 / 3).all()


def test_fewer_rows_than_parts_have_no_standard_error(calibrated):
    clf, X, y = calibrated
    cuts = depth_cuts(clf, X[:1], y[:1])
    assert np.isnan(cuts.after.ece_top_label_error).all()
    assert set(cuts.after.accuracy) <= {0.0, 1.0}


def test_very_deep_trees_are_cut_at_some_depths_only(rng):
    labels = np.arange(300)
    X, y = rng.normal(size=(600, 2)), np.arange(600) % 300
    clf = NestedDichotomyClassifier(
        structure=ClassTree(labels, labels[:-1]), internal_calibration=None, external_calibration=None
    )
    cuts = depth_cuts(clf.fit(X, y), X, y)
    assert len(cuts.depths) <= 64
    assert cuts.depths[[0, -1]].tolist() == [1, 299]
    assert cuts.before.accuracy[-1] == accuracy_score(y, clf.predict(X))


def test_tables_have_a_line_for_each_depth(scored):
    clf, X, y = scored
    cuts = depth_cuts(clf, X, y)
    table = cuts.to_table()
    assert table["depth"].tolist() == cuts.depths.tolist()
    assert ("ece_pooled_after" in table.columns) == (cuts.after is not None)


@pytest.mark.parametrize("external", [True, False])
def test_predicted_groups_are_the_most_probable_ones(calibrated, external):
    clf, X, _ = calibrated
    for depth in (0, 1, 3, 99):
        groups, _ = group_probabilities(clf, X, depth, external)
        predicted = predict_groups(clf, X, depth, external=external)
        np.testing.assert_array_equal(predicted.group, groups.argmax(axis=1))
        np.testing.assert_allclose(predicted.probability, groups.max(axis=1))


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"depths": [3, 2]}, "increasing order"),
        ({"depths": []}, "increasing order"),
        ({"depths": [1.5]}, "whole numbers"),
        ({"n_bins": 0}, "n_bins must be a whole number"),
    ],
)
def test_bad_parameters_are_answered_with_a_sentence(calibrated, wrong, sentence):
    clf, X, y = calibrated
    with pytest.raises(ValueError, match=sentence):
        depth_cuts(clf, X, y, **wrong)
