"""Laws of nested calibration."""

import numpy as np
import pytest
from scipy.special import log_softmax, logsumexp

from dichotomies import ClassTree
from dichotomies.calibrators.binary import Segments
from dichotomies.calibrators.binary.shrunk import shrunk_platt
from dichotomies.calibrators.multiclass import MULTICLASS
from dichotomies.calibrators.multiclass.nested import _WIDTHS

NAMES = ("nested", "vector-nested")


def families(rng, n_rows, n_families=4, size=3, wrong=0.5):
    """Rows whose classes come in families; the model is too sure which member of the family it is."""
    k = n_families * size
    y = rng.integers(0, k, n_rows)
    log_proba = rng.normal(size=(n_rows, k)) - 6
    family = np.arange(k) // size
    log_proba[family == family[y][:, None]] += 6
    shown = np.where(rng.random(n_rows) < wrong, family[y] * size + rng.integers(0, size, n_rows), y)
    log_proba[np.arange(n_rows), shown] += 5
    return log_softmax(log_proba, axis=1), y


def nll(log_proba, y):
    return -log_proba[np.arange(len(y)), y].mean()


def test_probabilities_are_products_of_calibrated_nodes(rng):
    """Recomputed from sums over the classes of each node, by the fitted slopes and biases."""
    x, y = families(rng, 600)
    calibrator = MULTICLASS.create("nested").fit(x, y)
    p = np.exp(log_softmax(calibrator.scale_ * x, axis=1))
    p = (1 - calibrator.noise_) * p + calibrator.noise_ / p.shape[1]
    tree, expected = calibrator.tree_, np.zeros(x.shape)
    for node in range(tree.n_nodes):
        left = tree.leaf_order[tree.start[node] : tree.split[node]]
        right = tree.leaf_order[tree.split[node] : tree.stop[node]]
        s = np.log(p[:, left].sum(axis=1)) - np.log(p[:, right].sum(axis=1))
        z = (calibrator.slope_[node] * s + calibrator.bias_[node])[:, None]
        expected[:, left] += -np.logaddexp(0, -z)
        expected[:, right] += -np.logaddexp(0, z)
    np.testing.assert_allclose(calibrator.predict_log_proba(x), expected, atol=1e-10)


def test_slopes_of_one_and_biases_of_zero_change_nothing(rng):
    x, y = families(rng, 200)
    calibrator = MULTICLASS.create("nested").fit(x, y)
    calibrator.slope_[:], calibrator.bias_[:], calibrator.scale_, calibrator.noise_ = 1.0, 0.0, 1.0, 0.0
    np.testing.assert_allclose(calibrator.predict_log_proba(x), x, atol=1e-10)


def test_two_classes_are_shrunken_platt_scaling(rng):
    s = rng.normal(scale=3, size=400)
    y = (rng.random(400) > 1 / (1 + np.exp(-s / 2 + 0.5))).astype(int)  # of the right class, 1
    x = log_softmax(np.stack([s, np.zeros(400)], axis=1), axis=1)
    calibrator = MULTICLASS.create("nested").fit(x, y)
    t, e = calibrator.scale_, calibrator.noise_
    p = (1 - e) / (1 + np.exp(-t * s)) + e / 2
    odds = np.log(p) - np.log1p(-p)
    rows = np.argsort(y, kind="stable")
    nodes = Segments(odds[rows], y[rows] == 0, [0, 400], None, np.zeros(1, dtype=int))
    slope, bias = shrunk_platt(nodes, _WIDTHS)
    sign = 1 if calibrator.tree_.leaf_order[0] == 0 else -1
    np.testing.assert_allclose(
        [calibrator.slope_[0], sign * calibrator.bias_[0]], [slope[0], bias[0]], rtol=1e-6
    )


@pytest.mark.parametrize("name", NAMES)
def test_confusions_within_families_are_found(name, rng):
    x, y = families(rng, 6000)
    new, truth = families(rng, 4000)
    calibrated = MULTICLASS.create(name).fit(x, y).predict_log_proba(new)
    vector = MULTICLASS.create("vector").fit(x, y).predict_log_proba(new)
    assert nll(calibrated, truth) < 0.99 * nll(vector, truth)
    tree = MULTICLASS.create("nested").fit(x, y).tree_
    groups = {frozenset(tree.leaf_order[a:b].tolist()) for a, b in zip(tree.start, tree.stop, strict=True)}
    assert {frozenset(range(f, f + 3)) for f in range(0, 12, 3)} <= groups


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("rows_per_class", [1, 2, 5, 50])
def test_few_rows_do_no_harm(name, rows_per_class, rng):
    """Rows of a calibrated model: with any number of rows nothing is to be gained, and little lost."""
    k = 40
    truth = log_softmax(2 * rng.normal(size=(k * rows_per_class + 4000, k)), axis=1)
    y = (truth + rng.gumbel(size=truth.shape)).argmax(axis=1)
    old, new = slice(0, k * rows_per_class), slice(k * rows_per_class, None)
    calibrated = MULTICLASS.create(name).fit(truth[old], y[old]).predict_log_proba(truth[new])
    assert nll(calibrated, y[new]) < 1.02 * nll(truth[new], y[new])


def test_a_class_without_rows_keeps_its_probability_nearly(rng):
    x, y = families(rng, 3000)
    seen = y != 5
    calibrator = MULTICLASS.create("nested").fit(x[seen], y[seen])
    p, before = calibrator.predict_proba(x[~seen])[:, 5], np.exp(x[~seen, 5])
    assert np.isfinite(np.log(p)).all()
    assert 0 < np.median(p) < np.median(before)


def test_a_given_tree_is_followed(rng):
    x, y = families(rng, 300)
    tree = ClassTree.from_nested([[[0, 1], [2, 3]], [[[4, 5], [6, 7]], [[8, 9], [10, 11]]]])
    for name in (*NAMES, "auto"):
        calibrator = MULTICLASS.create(name, tree=tree).fit(x, y)
        assert calibrator.grown_tree() in (tree, None)
    with pytest.raises(ValueError, match=r"The tree has 12 classes and log_proba 11 columns"):
        MULTICLASS.create("nested", tree=tree).fit(x[:, 1:], np.maximum(y, 1) - 1)


@pytest.mark.parametrize("n_classes", [3, 700])
def test_trees_are_not_deep(n_classes, rng):
    x = log_softmax(8 * rng.normal(size=(300, n_classes)), axis=1)
    tree = MULTICLASS.create("nested").fit(x, x.argmax(axis=1)).tree_
    assert tree.max_depth <= np.ceil(np.log2(n_classes)) + 10


def test_the_chain_is_fitted_to_what_vector_scaling_leaves_of_other_rows(rng):
    x, y = families(rng, 400)
    calibrator = MULTICLASS.create("vector-nested").fit(x, y)
    scaled = calibrator.vector_.predict_log_proba(x)
    expected = calibrator.nested_.predict_log_proba(np.maximum(scaled, -100))
    np.testing.assert_allclose(calibrator.predict_log_proba(x), expected, rtol=1e-12)


def test_impossible_classes_have_finite_log_odds(rng):
    x, y = families(rng, 500)
    x[:, rng.permutation(12)[:6]] = -np.inf
    for name in NAMES:
        calibrated = MULTICLASS.create(name).fit(x, y).predict_log_proba(x)
        assert np.isfinite(calibrated).all()
        np.testing.assert_allclose(logsumexp(calibrated, axis=1), 0, atol=1e-9)


def test_auto_is_never_far_from_the_better_of_temperature_and_vector(rng):
    for rows in (60, 600, 6000):
        x, y = families(rng, rows)
        new, truth = families(rng, 4000)
        found = {
            name: nll(MULTICLASS.create(name).fit(x, y).predict_log_proba(new), truth)
            for name in ("temperature", "vector", "auto")
        }
        assert found["auto"] < 1.01 * min(found["temperature"], found["vector"])
