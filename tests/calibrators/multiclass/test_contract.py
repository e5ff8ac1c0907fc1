"""Every multiclass calibrator, found through the registry, obeys the same laws."""

import warnings

import numpy as np
import pytest
from scipy.special import log_softmax
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from dichotomies.calibrators.multiclass import MULTICLASS

NAMES = MULTICLASS.names()
CASES = ["absent", "one row", "duplicated", "zero weights", "one class", "impossible"]


def sample(rng, n_rows=120, n_classes=4):
    truth = log_softmax(rng.normal(size=(n_rows, n_classes)) * 1.5, axis=1)
    y = (truth + rng.gumbel(size=truth.shape)).argmax(axis=1)
    return log_softmax(2 * truth + rng.normal(size=n_classes) / 3, axis=1), y


def fit(name, *args, **params):
    """Fit; on tiny separated data maximum likelihood may rightly report that it has no optimum."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return MULTICLASS.create(name, **params).fit(*args)


def nll(log_proba, y):
    return -log_proba[np.arange(len(y)), y].mean()


@pytest.mark.parametrize("name", NAMES)
def test_rows_sum_to_one_and_are_finite_even_far_from_the_fit(name, rng):
    x, y = sample(rng)
    far = np.vstack([x, 50 * x, np.log(np.eye(4) + 1e-300), np.zeros((1, 4))])
    result = fit(name, x, y).predict_log_proba(far)
    assert np.isfinite(result).all()
    assert result.dtype == np.float64
    np.testing.assert_allclose(np.exp(result).sum(axis=1), 1, atol=1e-12)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "case", ["absent", "one row", "duplicated", "zero weights", "one class", "impossible"]
)
def test_degenerate_rows_give_finite_answers(name, case, rng):
    x, y = sample(rng, n_rows=20, n_classes=5)
    weight = None
    if case == "absent":
        x, y = x[y < 3], y[y < 3]
    elif case == "one row":
        x, y = x[:1], y[:1]
    elif case == "duplicated":
        x, y = np.repeat(x[:2], 10, axis=0), np.repeat(y[:2], 10)
    elif case == "zero weights":
        weight = np.where(y == y[0], 1.0, 0.0)
    elif case == "one class":
        y = np.zeros_like(y)
    else:
        x[::2, 1] = -np.inf
    assert np.isfinite(fit(name, x, y, weight).predict_log_proba(x)).all()


@pytest.mark.parametrize("name", NAMES)
def test_the_same_rows_give_the_same_bits_and_are_left_alone(name, rng):
    x, y = sample(rng)
    before = x.copy()
    first, second = fit(name, x, y), fit(name, x, y)
    assert np.array_equal(first.predict_log_proba(x), second.predict_log_proba(x))
    assert np.array_equal(x, before)


@pytest.mark.parametrize("name", NAMES)
def test_weight_two_is_the_row_twice(name, rng):
    x, y = sample(rng)
    weight = rng.integers(0, 3, len(y))
    rows = np.repeat(np.arange(len(y)), weight)
    weighted, repeated = fit(name, x, y, weight), fit(name, x[rows], y[rows])
    np.testing.assert_allclose(weighted.predict_proba(x), repeated.predict_proba(x), atol=2e-4)


@pytest.mark.parametrize("name", NAMES)
def test_permuting_the_columns_permutes_the_answer(name, rng):
    x, y = sample(rng)
    order = rng.permutation(4)
    moved = fit(name, x[:, order], np.argsort(order)[y]).predict_proba(x[:, order])
    np.testing.assert_allclose(moved, fit(name, x, y).predict_proba(x)[:, order], atol=2e-4)


@pytest.mark.parametrize("name", NAMES)
def test_chunks_and_out_give_the_same_bits(name, rng):
    x, y = sample(rng)
    calibrator = fit(name, x, y)
    whole = calibrator.predict_log_proba(x)
    parts = [calibrator.predict_log_proba(x[i : i + 7]) for i in range(0, len(x), 7)]
    assert np.array_equal(np.vstack(parts), whole)
    assert calibrator.predict_log_proba(x, out=x) is x
    assert np.array_equal(x, whole)


@pytest.mark.parametrize("name", NAMES)
def test_unnormalised_logits_mean_what_their_softmax_means(name, rng):
    x, y = sample(rng)
    shift = rng.normal(size=(len(x), 1))
    expected = fit(name, x, y).predict_proba(x)
    np.testing.assert_allclose(fit(name, x + shift, y).predict_proba(x + shift), expected, atol=2e-4)


@pytest.mark.parametrize("name", NAMES)
def test_single_precision_is_accepted_as_it_is(name, rng):
    x, y = sample(rng)
    single = fit(name, x.astype(np.float32), y).predict_proba(x.astype(np.float32))
    np.testing.assert_allclose(single, fit(name, x, y).predict_proba(x), atol=2e-4)


@pytest.mark.parametrize("name", NAMES)
def test_on_its_own_rows_no_calibrator_is_worse_than_none(name, rng):
    x, y = sample(rng)
    assert nll(fit(name, x, y).predict_log_proba(x), y) <= nll(x, y)


@pytest.mark.parametrize("name", NAMES)
def test_calibrators_clone_and_have_a_summary(name):
    calibrator = MULTICLASS.create(name)
    assert clone(calibrator).get_params() == calibrator.get_params()
    assert MULTICLASS.summaries()[name]


@pytest.mark.parametrize("name", NAMES)
def test_labels_of_any_kind_with_classes(name, rng):
    x, y = sample(rng)
    labels = np.array(["d", "a", "c", "b"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        named = MULTICLASS.create(name).fit(x, labels[y], classes=labels)
    assert np.array_equal(named.predict_proba(x), fit(name, x, y).predict_proba(x))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"y": ["a"] * 120}, "give the labels of the columns as classes="),
        ({"y": np.full(120, 4)}, "must be in 0..3"),
        ({"y": [0]}, "one label for each"),
        ({"nan": True}, "NaN"),
        ({"empty": True}, "no finite entry"),
        ({"sample_weight": np.zeros(120)}, "must not be zero for all rows"),
        ({"flat": True}, "shape"),
    ],
)
def test_wrong_input_is_refused_in_a_sentence(change, sentence, rng):
    x, y = sample(rng)
    if "nan" in change:
        x[3, 2] = np.nan
    if "empty" in change:
        x[3] = -np.inf
    x = x[0] if "flat" in change else x
    with pytest.raises(ValueError, match=sentence):
        MULTICLASS.create("vector").fit(x, change.get("y", y), change.get("sample_weight"))


@pytest.mark.parametrize("name", ["matrix", "dirichlet"])
def test_a_matrix_that_is_too_large_is_refused(name):
    with pytest.raises(ValueError, match=r"600 x 600 = 360,000.*Use 'vector'"):
        MULTICLASS.create(name).fit(np.zeros((2, 600)), [0, 1])
