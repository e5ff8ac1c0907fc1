"""Laws of the proper scores and accuracies."""

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.metrics import accuracy_score, brier_score_loss, log_loss, top_k_accuracy_score

from dichotomies.metrics import (
    RowFacts,
    accuracy,
    brier_score,
    negative_log_likelihood,
    top_k_accuracy,
)


def labels_of(proba):
    return np.arange(proba.shape[1])


def test_scores_equal_scikit_learns(predictions, weights):
    y, proba = predictions
    labels = labels_of(proba)
    for weight in (None, weights):
        given = {"labels": labels, "sample_weight": weight}
        assert negative_log_likelihood(y, proba, **given, clip=1e-15) == pytest.approx(
            log_loss(y, proba, **given), rel=1e-12
        )
        assert brier_score(y, proba, **given) == pytest.approx(brier_score_loss(y, proba, **given), rel=1e-12)
        best = proba.argmax(axis=1)
        assert accuracy(y, proba, **given) == pytest.approx(accuracy_score(y, best, sample_weight=weight))
        for k in (2, 5):
            assert top_k_accuracy(y, proba, **given, k=k) == pytest.approx(
                top_k_accuracy_score(y, proba, **given, k=k)
            )


def test_two_columns_are_one_score(rng):
    score, y = rng.random(50), rng.integers(2, size=50)
    for metric in (negative_log_likelihood, brier_score, accuracy):
        assert metric(y, score) == pytest.approx(metric(y, np.column_stack([1 - score, score])))
    assert brier_score(y, score, scale_by_half=True) == pytest.approx(brier_score_loss(y, score))
    assert negative_log_likelihood(y, score) == pytest.approx(log_loss(y, score))


def test_impossible_truth_is_infinitely_bad_unless_clipped():
    proba = [[1.0, 0.0], [0.5, 0.5]]
    assert negative_log_likelihood([1, 0], proba) == np.inf
    clipped = (-np.log(1e-15) + np.log(2)) / 2
    assert negative_log_likelihood([1, 0], proba, clip=1e-15) == pytest.approx(clipped)
    assert negative_log_likelihood([1, 0], proba, sample_weight=[0, 1]) == pytest.approx(np.log(2))


def test_logarithms_do_not_underflow():
    log_proba = np.array([[0.0, -1000.0, -2000.0], [-2000.0, 0.0, -1000.0]])
    assert negative_log_likelihood([1, 0], log_proba, labels=[0, 1, 2], is_log=True) == 1500
    # the order of underflowed classes is still known
    facts = RowFacts.from_predictions([1, 0], log_proba, labels=[0, 1, 2], is_log=True)
    assert facts.rank.tolist() == [1, 2]


def test_logarithms_give_what_probabilities_give(predictions):
    y, proba = predictions
    logarithms = np.log(np.maximum(proba, 1e-300))
    plain = RowFacts.from_predictions(y, np.exp(logarithms), labels=labels_of(proba))
    from_logarithms = RowFacts.from_predictions(y, logarithms, labels=labels_of(proba), is_log=True)
    for name in ("log_proba", "brier", "confidence", "top_k_confidence"):
        np.testing.assert_allclose(getattr(plain, name), getattr(from_logarithms, name), atol=1e-12)
    np.testing.assert_array_equal(plain.predicted, from_logarithms.predicted)


def test_facts_are_what_their_names_say(rng):
    proba = softmax(rng.normal(size=(40, 7)), axis=1)
    y = rng.integers(7, size=40)
    facts = RowFacts.from_predictions(y, proba, labels=range(7), top_k=(1, 3, 9))
    order = np.argsort(-proba, axis=1)
    np.testing.assert_array_equal(facts.predicted, order[:, 0])
    np.testing.assert_array_equal(facts.rank, (order == y[:, None]).argmax(axis=1))
    decreasing = -np.sort(-proba, axis=1)
    expected = np.column_stack([decreasing[:, 0], decreasing[:, :3].sum(axis=1), np.ones(40)])
    np.testing.assert_allclose(facts.top_k_confidence, expected)
    np.testing.assert_allclose(np.exp(facts.log_complement), 1 - facts.confidence)
    np.testing.assert_allclose(facts.brier, ((proba - np.eye(7)[y]) ** 2).sum(axis=1))


def test_equally_probable_classes_are_taken_in_order():
    proba = np.full((4, 4), 0.25)
    facts = RowFacts.from_predictions(range(4), proba)
    assert facts.rank.tolist() == [0, 1, 2, 3]
    assert accuracy(range(4), proba) == 0.25
    assert top_k_accuracy(range(4), proba, k=2) == 0.5


def test_parts_put_together_are_the_whole(predictions):
    y, proba = predictions
    labels = labels_of(proba)
    whole = RowFacts.from_predictions(y, proba, labels=labels)
    parts = [RowFacts.from_predictions(y[i::3], proba[i::3], labels=labels) for i in range(3)]
    joined = RowFacts.concatenate(parts)
    order = np.concatenate([np.arange(i, len(y), 3) for i in range(3)])
    for name in ("codes", "log_proba", "brier", "rank", "top_k_confidence"):
        np.testing.assert_array_equal(getattr(joined, name), getattr(whole, name)[order])


def test_single_precision_gives_nearly_the_same(predictions):
    y, proba = predictions
    for metric in (negative_log_likelihood, brier_score):
        exact = metric(y, proba, labels=labels_of(proba))
        assert metric(y, proba.astype(np.float32), labels=labels_of(proba)) == pytest.approx(exact, rel=1e-4)
