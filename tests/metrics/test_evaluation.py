"""Laws of evaluating everything at once, a chunk at a time."""

import tracemalloc

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import coo_array, csr_array
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Perceptron
from sklearn.naive_bayes import GaussianNB

from dichotomies import NestedDichotomyClassifier, metrics
from dichotomies.metrics import Evaluation, confidence_interval, evaluate

#: Name in an evaluation: the function and its options that give the same number.
FUNCTIONS = {
    "nll": (metrics.negative_log_likelihood, {}),
    "brier": (metrics.brier_score, {}),
    "accuracy": (metrics.accuracy, {}),
    "top_2_accuracy": (metrics.top_k_accuracy, {"k": 2}),
    "ece": (metrics.expected_calibration_error, {}),
    "ece_equal_mass": (metrics.expected_calibration_error, {"strategy": "quantile"}),
    "ece_debiased": (metrics.debiased_calibration_error, {}),
    "ece_smooth": (metrics.smooth_calibration_error, {}),
    "mce": (metrics.maximum_calibration_error, {"strategy": "quantile"}),
    "ece_top_2": (metrics.expected_calibration_error, {"kind": "top-k", "k": 2}),
    "ece_class_wise": (metrics.expected_calibration_error, {"kind": "class-wise"}),
}


def decomposition(loss):
    def parts(y, proba, **options):
        return metrics.loss_decomposition(y, proba, loss=loss, **options)

    return parts


def test_every_metric_is_that_of_its_function(predictions, weights):
    y, proba = predictions
    given = {"labels": range(proba.shape[1]), "sample_weight": weights}
    values = Evaluation.from_predictions(y, proba, top_k=[2], **given).metrics
    for name, (function, options) in FUNCTIONS.items():
        assert values.pop(name) == pytest.approx(function(y, proba, **given, **options), abs=1e-12), name
    for loss in ("nll", "brier"):
        total, calibration, refinement = decomposition(loss)(y, proba, **given)
        assert values.pop(f"{loss}_top_label") == pytest.approx(total)
        assert values.pop(f"{loss}_top_label_calibration") == pytest.approx(calibration)
        assert values.pop(f"{loss}_top_label_refinement") == pytest.approx(refinement)
    assert not values


def test_every_interval_of_rows_is_that_of_its_function(random_predictions, rng):
    y, proba = random_predictions
    groups = rng.integers(50, size=len(y))
    evaluation = Evaluation.from_predictions(y, proba, groups=groups, top_k=[2], n_resamples=20)
    for name, (function, options) in FUNCTIONS.items():
        if name != "ece_class_wise":
            given = {"groups": groups, "n_resamples": 20, "method": "centred"} | options
            expected = confidence_interval(function, y, proba, **given)
            assert evaluation.intervals[name] == pytest.approx(expected, abs=1e-9), name


def test_class_wise_interval_by_batches_is_about_that_by_rows(predictions):
    y, proba = predictions
    labels = range(proba.shape[1])
    evaluation = Evaluation.from_predictions(y, proba, labels=labels, n_resamples=100)
    given = {"labels": labels, "kind": "class-wise", "n_resamples": 100, "method": "centred"}
    by_rows = confidence_interval(metrics.expected_calibration_error, y, proba, **given)
    by_batches = evaluation.intervals["ece_class_wise"]
    assert by_batches.lower < by_batches.estimate < by_batches.upper
    ratio = (by_batches.upper - by_batches.lower) / (by_rows.upper - by_rows.lower)
    assert 0.5 < ratio < 2


def test_class_wise_interval_draws_groups_where_there_are_few(random_predictions, rng):
    y, proba = random_predictions
    groups = rng.integers(8, size=len(y))
    given = {"groups": groups, "n_resamples": 300}
    interval = Evaluation.from_predictions(y, proba, **given).intervals["ece_class_wise"]
    given |= {"kind": "class-wise", "method": "centred"}
    expected = confidence_interval(metrics.expected_calibration_error, y, proba, **given)
    assert interval == pytest.approx(expected, rel=0.15)


def test_chunks_do_not_matter(predictions):
    y, proba = predictions
    given = {"labels": range(proba.shape[1]), "n_resamples": 5}
    whole = Evaluation.from_predictions(y, proba, **given)
    pieces = np.array_split(proba, [1, 70, 71, 300])
    chunked = Evaluation.from_chunks(y, iter(pieces), **given)
    assert chunked.metrics == whole.metrics
    assert chunked.intervals == whole.intervals


@pytest.mark.parametrize("container", [np.asarray, pd.DataFrame, csr_array, coo_array])
def test_any_container_and_chunk_gives_the_same(iris, container):
    X, y = iris
    clf = LogisticRegression(max_iter=1000).fit(container(X[::2]), y[::2])
    expected = Evaluation.from_predictions(y, clf.predict_proba(container(X))).metrics
    assert evaluate(clf, container(X), y, chunk_rows=40).metrics == pytest.approx(expected, abs=1e-9)


def test_a_nested_dichotomy_is_evaluated_in_logarithms(digits):
    X, y = digits
    none = {"internal_calibration": None, "external_calibration": None, "learner": "clones"}
    clf = NestedDichotomyClassifier(GaussianNB(), **none, random_state=0).fit(X[:500], y[:500])
    evaluation = evaluate(clf, X[500:], y[500:], chunk_rows=64)
    own = clf.predict_log_proba(X[500:])[np.arange(len(y) - 500), y[500:]]
    assert np.exp(own).min() == 0  # the probability underflows, its logarithm does not
    assert evaluation.metrics["nll"] == pytest.approx(-own.mean())
    assert np.isfinite(evaluation.metrics["nll"])
    assert np.isfinite(evaluation.metrics["nll_top_label"])


def test_a_little_doubt_is_not_lost():
    # the confidence rounds to 1, and then also the other probabilities to 0; the prediction is wrong
    for doubt in (40.0, 2000.0):
        log_proba = np.array([[0.0, -doubt, -doubt - np.log(2)]])
        evaluation = Evaluation.from_predictions([1], log_proba, labels=[0, 1, 2], is_log=True)
        assert evaluation.facts.confidence == 1
        assert evaluation.metrics["nll_top_label"] == pytest.approx(doubt - np.log(1.5))


def test_probabilities_of_exactly_zero_are_fine(iris):
    X, y = iris
    clf = RandomForestClassifier(3, random_state=0).fit(X[::2], y[::2])
    evaluation = evaluate(clf, X, y, n_resamples=20)
    assert evaluation.metrics["brier"] == pytest.approx(metrics.brier_score(y, clf.predict_proba(X)))
    assert "inf" in str(evaluation) or np.isfinite(evaluation.metrics["nll"])


def test_never_more_than_a_chunk_is_asked_for():
    class Uniform:
        classes_ = np.arange(10_000)
        asked = ()

        def predict_proba(self, X):
            self.asked = (*self.asked, len(X))
            return np.full((len(X), 10_000), 1e-4)

    model = Uniform()
    y = np.arange(8000) % 10_000
    evaluation = evaluate(model, np.zeros((8000, 1)), y)
    assert max(model.asked) * 10_000 * 8 <= 128 * 2**20
    assert sum(model.asked) == 8000
    assert evaluation.metrics["nll"] == pytest.approx(np.log(10_000))
    assert evaluation.metrics["ece_class_wise"] < 1e-4


def test_memory_does_not_grow_with_rows_times_classes(rng):
    labels = np.arange(1000)

    def chunks():
        for _ in range(100):
            proba = rng.random((200, 1000))
            yield proba / proba.sum(axis=1, keepdims=True)

    y = rng.integers(1000, size=20_000)
    Evaluation.from_chunks(y[:200], [next(chunks())], labels=labels)  # compiles
    tracemalloc.start()
    evaluation = Evaluation.from_chunks(y, chunks(), labels=labels)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(evaluation.facts) == 20_000
    assert peak < 160e6 / 4  # a quarter of the whole matrix: mostly the bins of every class


def test_it_prints_as_a_table_with_a_line_for_every_metric(random_predictions):
    y, proba = random_predictions
    evaluation = Evaluation.from_predictions(y, proba, top_k=[2, 3], n_resamples=10)
    head, *lines = str(evaluation).splitlines()
    assert head.split() == ["600", "rows,", "6", "classes", "95%", "interval"]
    assert len(lines) == len(evaluation.metrics)
    assert "top-2 accuracy" in str(evaluation)
    assert "top-3 accuracy" in str(evaluation)
    assert repr(evaluation) == "<Evaluation of 600 rows, 6 classes; print it to see it>"


def test_classes_have_errors_and_curves_of_their_own(random_predictions):
    y, proba = random_predictions
    names = np.array(list("abcdef"))
    evaluation = Evaluation.from_predictions(names[y], proba, labels=names)
    errors = [metrics.expected_calibration_error(y == c, proba[:, c]) for c in range(6)]
    np.testing.assert_allclose(evaluation.class_calibration_errors, errors)
    curve, expected = evaluation.class_reliability_curve("c"), metrics.reliability_curve(y == 2, proba[:, 2])
    np.testing.assert_allclose(curve.accuracy, expected.accuracy)
    with pytest.raises(ValueError, match="no class 'z'"):
        evaluation.class_reliability_curve("z")


def test_its_reliability_curve_is_that_of_the_function(predictions):
    y, proba = predictions
    labels = range(proba.shape[1])
    evaluation = Evaluation.from_predictions(y, proba, labels=labels, top_k=[3])
    for k, kind in ((None, "top-label"), (3, "top-k")):
        expected = metrics.reliability_curve(y, proba, labels=labels, kind=kind, k=3, n_bins=7)
        curve = evaluation.reliability_curve(k=k, n_bins=7)
        np.testing.assert_allclose(curve.accuracy, expected.accuracy)
        np.testing.assert_allclose(curve.upper, expected.upper)


def test_labels_the_classifier_does_not_know_are_named(iris):
    X, y = iris
    clf = LogisticRegression(max_iter=1000).fit(X[y < 2], y[y < 2])
    with pytest.raises(ValueError, match="not among the 2 classes with a probability: 2"):
        evaluate(clf, X, y)


def test_outcomes_of_one_kind_only_are_read_as_by_the_metrics():
    score = [0.5, 0.75]
    evaluation = Evaluation.from_predictions([1, 1], score)
    assert evaluation.metrics["nll"] == pytest.approx(metrics.negative_log_likelihood([1, 1], score))
    assert evaluation.labels.tolist() == [0, 1]


def test_unfitted_classifiers_and_wrong_chunks_are_refused(iris, random_predictions):
    with pytest.raises(ValueError, match="LogisticRegression has no classes_"):
        evaluate(LogisticRegression(), *iris)
    with pytest.raises(TypeError, match="Perceptron gives no probabilities"):
        evaluate(Perceptron().fit(*iris), *iris)
    with pytest.raises(ValueError, match="chunk_rows must be a whole number, 1 or more, got 0"):
        evaluate(LogisticRegression(max_iter=1000).fit(*iris), *iris, chunk_rows=0)
    y, proba = random_predictions
    for chunks, message in [
        ([proba[:100]], "y_true has 600 rows, but the chunks of probabilities only 100"),
        ([proba, proba], "more rows of probabilities than the 600 labels"),
        ([proba[:, :5]], "A chunk has 5 columns; there are 6 classes"),
    ]:
        with pytest.raises(ValueError, match=message):
            Evaluation.from_chunks(y, chunks, labels=range(6))


def test_intervals_end_where_the_metric_does():
    rng = np.random.default_rng(6)  # with these rows the interval would begin below 0
    proba = rng.dirichlet(np.ones(6), size=60)
    y = [rng.choice(6, p=p) for p in proba]  # calibrated: errors are close to 0
    evaluation = Evaluation.from_predictions(y, proba, labels=range(6), n_resamples=100)
    for name, (estimate, lower, upper) in evaluation.intervals.items():
        assert lower <= estimate <= upper
        assert lower >= 0 or name == "ece_debiased"
    assert evaluation.intervals["ece_top_5"].lower == 0
