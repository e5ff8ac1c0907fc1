"""The ledger: Proposition 1 as sums that must agree."""

from copy import copy
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.metrics import log_loss
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

from dichotomies import ClassTree, NestedDichotomyClassifier
from dichotomies.diagnostics import ledger
from tests.slow import slow


def mean_nll(clf, X, y, weight=None):
    log_proba = clf.predict_log_proba(X)
    return -np.average(log_proba[np.arange(len(y)), np.searchsorted(clf.classes_, y)], weights=weight)


def like(clf, **changed):
    """The same fitted classifier with some parts of its model changed."""
    copied = copy(clf)
    copied.model_ = replace(clf.model_, **changed)
    return copied


def test_total_is_the_nll_of_the_tree_and_gain_leads_to_that_of_the_model(scored):
    clf, X, y = scored
    book = ledger(clf, X, y)
    assert book.total - book.external_gain == pytest.approx(mean_nll(clf, X, y), abs=1e-10)
    assert book.final_nll == pytest.approx(mean_nll(clf, X, y), abs=1e-10)
    assert (book.external_gain == 0) == (clf.external_calibrator_ is None)
    assert book.total == pytest.approx(mean_nll(like(clf, external=None), X, y), abs=1e-10)


def test_each_node_is_the_binary_log_loss_of_its_own_rows(calibrated):
    clf, X, y = calibrated
    book, tree = ledger(clf, X, y), clf.tree_
    log_odds = clf.model_.scorer.log_odds(X)
    for node in range(tree.n_nodes):
        left = tree.leaf_labels[tree.start[node] : tree.split[node]]
        own = np.isin(y, tree.leaf_labels[tree.start[node] : tree.stop[node]])
        share = log_loss(np.isin(y[own], left), expit(log_odds[own, node]), labels=[False, True])
        assert book.rows[node] == own.sum()
        assert book.nll[node] == pytest.approx(share * own.sum() / len(y), abs=1e-10)


def test_raw_nll_is_the_ledger_of_the_same_nodes_without_calibration(calibrated):
    clf, X, y = calibrated
    book = ledger(clf, X, y)
    plain = like(clf, scorer=clf.model_.scorer.scorer)
    np.testing.assert_allclose(book.raw_nll, ledger(plain, X, y).nll, atol=1e-12)
    np.testing.assert_allclose(book.internal_gain, book.raw_nll - book.nll)
    assert ledger(plain, X, y).raw_nll is None
    assert ledger(plain, X, y).internal_gain is None


def test_depths_and_subtrees_add_up(scored):
    clf, X, y = scored
    book = ledger(clf, X, y)
    depths, subtrees = book.by_depth(), book.by_subtree()
    for column in ("nll", "recoverable"):
        total = getattr(book, column).sum()
        assert depths[column].sum() == pytest.approx(total, abs=1e-12)
        assert subtrees[column][0] == pytest.approx(total, abs=1e-12)
    tree = book.tree
    for node in range(tree.n_nodes):
        below = (tree.start >= tree.start[node]) & (tree.stop <= tree.stop[node])
        assert subtrees["nll"][node] == pytest.approx(book.nll[below].sum(), abs=1e-12)


def test_a_node_that_no_row_touches_contributes_nothing(calibrated):
    clf, X, y = calibrated
    tree = clf.tree_
    absent = tree.leaf_labels[tree.start[-1] : tree.stop[-1]]
    kept = ~np.isin(y, absent)
    book = ledger(clf, X[kept], y[kept])
    assert book.nll[-1] == book.rows[-1] == book.raw_nll[-1] == book.recoverable[-1] == 0
    assert book.total - book.external_gain == pytest.approx(mean_nll(clf, X[kept], y[kept]), abs=1e-10)


def test_weight_two_is_the_row_twice_and_weight_zero_no_row(calibrated, rng):
    clf, X, y = calibrated
    weight = rng.integers(0, 3, len(y))
    weighted, repeated = (
        ledger(clf, X, y, sample_weight=weight),
        ledger(clf, X.repeat(weight, 0), y.repeat(weight)),
    )
    for name in ("nll", "raw_nll", "rows", "class_rows", "mean_square"):
        np.testing.assert_allclose(getattr(weighted, name), getattr(repeated, name), atol=1e-12)
    assert weighted.final_nll == pytest.approx(repeated.final_nll, abs=1e-12)


def test_the_answer_does_not_depend_on_the_number_of_jobs(calibrated):
    clf, X, y = calibrated
    many = copy(clf).set_params(n_jobs=2)
    np.testing.assert_array_equal(ledger(clf, X, y).nll, ledger(many, X, y).nll)


def test_next_nat_orders_nodes_and_recalibration_never_recovers_more_than_there_is(scored):
    clf, X, y = scored
    book = ledger(clf, X, y)
    assert (book.recoverable >= 0).all()
    assert (book.recoverable <= book.nll + 1e-12).all()
    for by in ("nll", "recoverable", "nll_per_row"):
        table = book.next_nat(3, by=by)
        assert len(table) == 3
        assert (np.diff(table[by]) <= 0).all()
    assert book.next_nat(100)["share"].sum() == pytest.approx(1)
    with pytest.raises(ValueError, match="'nll', 'recoverable' or 'nll_per_row', not by 'luck'"):
        book.next_nat(by="luck")


def test_nodes_that_are_too_sure_have_most_to_recover(digits):
    X, y = digits
    params = {"random_state": 0, "external_calibration": None}
    raw = NestedDichotomyClassifier(GaussianNB(), internal_calibration=None, **params).fit(X[:900], y[:900])
    calibrated = NestedDichotomyClassifier(GaussianNB(), internal_calibration="isotonic", **params)
    calibrated.fit(X[:900], y[:900])
    before, after = (ledger(clf, X[900:], y[900:]) for clf in (raw, calibrated))
    assert before.recoverable.sum() > 0.8 * before.total
    assert after.recoverable.sum() < 0.3 * after.total


def test_standard_error_of_a_depth_is_that_of_the_mean(scored):
    clf, X, y = scored
    book = ledger(clf, X, y)
    sides = y[:, None] == clf.tree_.leaf_labels[: clf.tree_.split[0]]
    log_odds = clf.model_.scorer.log_odds(X)[:, 0]
    losses = np.logaddexp(0, np.where(sides.any(axis=1), -log_odds, log_odds))
    assert book.by_depth()["standard_error"][0] == pytest.approx(losses.std() / np.sqrt(len(y)))
    assert book.standard_error[0] == book.by_depth()["standard_error"][0]


def test_two_classes_and_one_row(digits):
    X, y = digits
    few = y < 2
    clf = NestedDichotomyClassifier(GaussianNB(), internal_calibration=None, external_calibration=None).fit(
        X[few], y[few]
    )
    row = np.flatnonzero(few)[:1]
    book = ledger(clf, X[row], y[row])
    assert book.nll.shape == (1,)
    assert book.total == pytest.approx(mean_nll(clf, X[row], y[row]), abs=1e-10)


def test_float32_rows_and_a_pipeline(digits):
    X, y = digits
    model = make_pipeline(MinMaxScaler(), NestedDichotomyClassifier(GaussianNB(), random_state=0))
    model.fit(X[:900].astype(np.float32), y[:900])
    book = ledger(model, X[900:].astype(np.float32), y[900:])
    transformed = model[0].transform(X[900:].astype(np.float32))
    assert book.final_nll == pytest.approx(mean_nll(model[-1], transformed, y[900:]), abs=1e-10)


def test_a_chain_of_many_classes(rng):
    k = 3000
    labels = np.arange(k)
    X = rng.normal(size=(2 * k, 3))
    y = np.concatenate([labels, labels])
    chain = ClassTree(labels, labels[:-1])
    clf = NestedDichotomyClassifier(
        GaussianNB(var_smoothing=1), chain, internal_calibration=None, external_calibration=None
    ).fit(X, y)
    book = ledger(clf, X[:100], y[:100])
    assert book.total == pytest.approx(mean_nll(clf, X[:100], y[:100]), abs=1e-10)


def test_bad_input_is_answered_with_a_sentence(calibrated):
    clf, X, y = calibrated
    with pytest.raises(ValueError, match="not among the 10 classes with a probability: 10, 77"):
        ledger(clf, X[:3], [10, 77, 1])
    with pytest.raises(ValueError, match="zero"):
        ledger(clf, X, y, sample_weight=np.zeros(len(y)))
    with pytest.raises(ValueError, match="one label for each of the 3 rows"):
        ledger(clf, X[:3], y[:2])
    with pytest.raises(TypeError, match="not a GaussianNB"):
        ledger(GaussianNB().fit(X, y), X, y)


DATASETS = {
    "optdigits": MultinomialNB(),
    "letter": GaussianNB(),
    "micromass": GaussianNB(var_smoothing=1e-3),
    "nhcd": GaussianNB(var_smoothing=1e-3),
    "reuters52": MultinomialNB(),
    "clinc150": MultinomialNB(),
    "omniglot_100": GaussianNB(var_smoothing=1e-2),
    "omniglot": GaussianNB(var_smoothing=1e-2),
    "kanji_fonts": GaussianNB(var_smoothing=1e-2),
    "wordnet": MultinomialNB(),
    "onet_titles": MultinomialNB(),
    "cifar100_probs": GaussianNB(var_smoothing=1e-2),
}


@pytest.mark.parametrize(
    "name", ["omniglot_100", "clinc150", *slow(*sorted(DATASETS.keys() - {"omniglot_100", "clinc150"}))]
)
def test_ledger_sums_to_the_log_loss_on_every_dataset(name, real_data):
    data = real_data(name)
    rng = np.random.default_rng(0)
    some = rng.choice(np.unique(data.y), size=min(200, len(np.unique(data.y))), replace=False)
    rows = rng.permutation(np.flatnonzero(np.isin(data.y, some)))[:3000]
    X, y = data.X[rows], data.y[rows]
    if not isinstance(X, np.ndarray):
        X = TfidfTransformer().fit_transform(X)
    n = 2 * len(y) // 3
    clf = NestedDichotomyClassifier(DATASETS[name], internal_calibration="platt", random_state=0)
    clf.fit(X[:n], y[:n])
    known = np.flatnonzero(np.isin(y[n:], clf.classes_)) + n
    book = ledger(clf, X[known], y[known])
    assert book.total - book.external_gain == pytest.approx(mean_nll(clf, X[known], y[known]), abs=1e-10)
    assert book.by_depth()["nll"].sum() == pytest.approx(book.total, abs=1e-10)
    composed = like(clf, external=None)
    assert book.total == pytest.approx(mean_nll(composed, X[known], y[known]), abs=1e-10)
