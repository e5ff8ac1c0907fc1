"""What metrics accept, what they refuse and in which words."""

import numpy as np
import pytest

from dichotomies import metrics
from dichotomies.metrics import Evaluation, RowFacts

SCORES = [metrics.negative_log_likelihood, metrics.brier_score, metrics.accuracy, metrics.top_k_accuracy]
OF_EVENTS = [metrics.expected_calibration_error, metrics.maximum_calibration_error, metrics.reliability_curve]
OF_EVENTS += [
    metrics.debiased_calibration_error,
    metrics.smooth_calibration_error,
    metrics.loss_decomposition,
]
METRICS = SCORES + OF_EVENTS
every_metric = pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.__name__)


@every_metric
@pytest.mark.parametrize(
    ("y", "proba", "options", "message"),
    [
        ([0, 1], np.eye(3)[:2], {}, "one column for each of the 2 classes, got 3.*labels="),
        ([0, 1], [[0.5, 0.5], [0.5, 0.5]], {"labels": [0, 1, 2]}, "each of the 3 classes, got 2 columns"),
        (["a", "x"], np.eye(2), {"labels": ["a", "b"]}, "not among the 2 classes with a probability: 'x'"),
        ([0, 1], np.eye(2), {"labels": [0, 0]}, "labels must be different"),
        ([0, 1], [[0.5, 0.6], [0.5, 0.5]], {}, "row 0 sums to 1.1"),
        ([0, 1], [[0.5, 0.5], [1.5, -0.5]], {}, "row 1 has a probability of -0.5"),
        ([0, 1], [[0.5, 0.5], [np.nan, 0.5]], {}, "row 1 has a missing value"),
        ([0, 1, 1], np.eye(2), {}, "y_true has 3 rows and y_proba 2"),
        ([[0, 1]], np.eye(2), {}, "y_true must have one label per row"),
        (np.array(["a", None]), np.eye(2), {}, "missing labels; that of row 1 is None"),
        ([0.0, np.nan], np.eye(2), {}, "missing labels; that of row 1 is nan"),
        ([0, 1], np.zeros((2, 2, 2)), {}, "must have shape"),
        ([0, 1], [["a", "b"], ["c", "d"]], {}, "y_proba must hold numbers"),
        ([0, 1], [0.5, 1.5], {}, "between 0 and 1; row 1 has 1.5"),
        ([0, 1], np.eye(2), {"sample_weight": [1]}, "one value for each of the 2 rows"),
        ([0, 1], np.eye(2), {"sample_weight": [1, -1]}, "finite and not negative"),
        ([0, 1], np.eye(2), {"sample_weight": [0, 0]}, "must not be zero for all rows"),
        ([], np.zeros((0, 2)), {"labels": [0, 1]}, "There are no rows"),
    ],
)
def test_bad_input_is_refused_in_a_sentence(metric, y, proba, options, message):
    with pytest.raises(ValueError, match=message):
        metric(y, proba, **options)


@pytest.mark.parametrize("metric", OF_EVENTS, ids=lambda metric: metric.__name__)
def test_kinds_are_known_and_need_a_matrix(metric):
    with pytest.raises(ValueError, match="kind must be one of 'top-label', 'top-k', 'class-wise', got 'top'"):
        metric([0, 1], np.eye(2), kind="top")
    with pytest.raises(ValueError, match="kind='class-wise' needs a column per class"):
        metric([0, 1], [0.2, 0.7], kind="class-wise")


def test_settings_are_checked():
    ece = metrics.expected_calibration_error
    for call, message in [
        (lambda: ece([0], [0.5], n_bins=0), "n_bins must be a whole number, 1 or more, got 0"),
        (lambda: ece([0], [0.5], n_bins=2.5), "n_bins must be a whole number"),
        (lambda: RowFacts.from_predictions([0], [0.5], top_k=3), r"sequence of numbers from 1 on.*got 3"),
        (lambda: RowFacts.from_predictions([0], [0.5], top_k=(0, 1)), "sequence of numbers from 1 on"),
        (lambda: ece([0], [0.5], strategy="x"), "strategy must be one of"),
        (
            lambda: metrics.debiased_calibration_error([0], [0.5], norm="max"),
            "norm must be one of 'l1', 'l2'",
        ),
        (lambda: metrics.top_k_accuracy([0, 1], np.eye(2), k=0), "k must be at least 1, got 0"),
        (lambda: ece([0, 1], np.eye(2), kind="top-k", k=0), "k must be at least 1"),
        (lambda: metrics.negative_log_likelihood([0], [0.5], clip=0), "clip must lie between 0 and 1"),
        (lambda: metrics.reliability_curve([0], [0.5], interval="x"), "interval must be one of"),
        (lambda: metrics.reliability_curve([0], [0.5], confidence_level=1), "confidence_level must lie"),
        (lambda: RowFacts.from_predictions([0], [0.5]).events(3), r"computed for top_k=\(5,\), not for k=3"),
    ]:
        with pytest.raises(ValueError, match=message):
            call()


@every_metric
def test_one_row_and_certainty_are_fine(metric):
    metric([1], [[0.2, 0.8]], labels=[0, 1])
    metric([1], [1.0])
    metric(["b"], [[1.0, 0.0]], labels=["a", "b"])
    metric([0, 1], np.eye(2, dtype=int))


@every_metric
def test_rows_of_weight_zero_are_no_rows(metric, random_predictions):
    y, proba = random_predictions
    weight = np.arange(len(y)) % 3 == 0
    some = metric(y[weight], proba[weight], labels=range(6))
    weighted = metric(y, proba, labels=range(6), sample_weight=weight)
    for one, other in zip(numbers_of(some), numbers_of(weighted), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-12)


def numbers_of(result):
    """What a metric answered, as a list of arrays."""
    return list(vars(result).values()) if isinstance(result, metrics.ReliabilityCurve) else [result]


@every_metric
def test_absent_classes_and_any_order_of_labels_are_fine(metric, rng):
    names = np.array(["d", "a", "c", "b"])
    proba = rng.dirichlet(np.ones(4), size=30)
    y = rng.choice(["a", "d"], size=30)
    result = metric(y, proba, labels=names)
    order = np.argsort(names)
    sorted_result = metric(y, proba[:, order], labels=names[order])
    if isinstance(result, float):
        assert result == pytest.approx(sorted_result)


def test_only_one_outcome_of_a_binary_score_is_fine():
    assert metrics.expected_calibration_error([True, True], [0.9, 0.7]) == pytest.approx(0.2)
    ece = metrics.expected_calibration_error(["yes", "yes"], [0.9, 0.7], labels=["no", "yes"])
    assert ece == pytest.approx(0.2)
    assert metrics.negative_log_likelihood([0, 0], [0.5, 0.5]) == pytest.approx(np.log(2))


def test_ten_thousand_classes_in_single_precision(rng):
    proba = rng.random((20, 10_000), dtype=np.float32)
    proba /= proba.sum(axis=1, keepdims=True)
    evaluation = Evaluation.from_predictions(np.arange(20), proba, labels=range(10_000), n_resamples=3)
    own = proba[np.arange(20), np.arange(20)].astype(float)
    assert evaluation.metrics["nll"] == pytest.approx(-np.log(own).mean())
    assert str(evaluation).startswith("20 rows, 10,000 classes")


def test_unknown_labels_are_named_but_not_all():
    with pytest.raises(ValueError, match=r"with a probability: 5, 6, 7, 8, 9 and 5 more\. Leave out"):
        metrics.accuracy(np.arange(15), np.full((15, 5), 0.2), labels=range(5))
