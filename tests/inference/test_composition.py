"""Laws of composition: from log-odds at the nodes to log-probabilities of the classes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.special import log_expit
from sklearn.naive_bayes import GaussianNB

from dichotomies import ClassTree, NestedDichotomyClassifier
from dichotomies._common import chunks
from dichotomies._common.chunks import chunk_rows, for_each_chunk
from dichotomies._common.progress import Progress
from dichotomies._kernels.composition import class_log_proba
from tests.tree.test_class_tree import chain, trees


@st.composite
def scored_trees(draw, bound=50.0):
    tree = draw(trees())
    rows = draw(st.integers(1, 4))
    scores = draw(arrays(np.float64, (rows, tree.n_nodes), elements=st.floats(-bound, bound)))
    return tree, scores


@given(scored_trees())
def test_a_class_is_the_sum_along_its_path(scored):
    """Proposition 1: the NLL of a class is the sum of the binary NLLs on its path."""
    tree, log_odds = scored
    log_proba = class_log_proba(tree, log_odds)
    for column, label in enumerate(tree.classes):
        nodes, goes_left = tree.path(label)
        binary_nll = -log_expit(np.where(goes_left, 1, -1) * log_odds[:, nodes])
        np.testing.assert_allclose(-log_proba[:, column], binary_nll.sum(axis=1), rtol=1e-12, atol=1e-14)


@given(scored_trees())
def test_rows_sum_to_one(scored):
    np.testing.assert_allclose(np.exp(class_log_proba(*scored)).sum(axis=1), 1, atol=1e-12)


@given(scored_trees(), st.randoms(use_true_random=False))
def test_renaming_the_classes_permutes_the_columns(scored, random):
    tree, log_odds = scored
    names = random.sample(range(1000), tree.n_classes)
    renamed = ClassTree([names[i] for i in tree.leaf_labels.tolist()], tree.split_depth)
    column = np.searchsorted(renamed.classes, names)
    assert np.array_equal(class_log_proba(renamed, log_odds)[:, column], class_log_proba(tree, log_odds))


def test_rows_sum_to_one_at_ten_thousand_classes(rng):
    tree = ClassTree(rng.permutation(10_000), rng.permutation(9_999))
    log_odds = rng.normal(scale=5, size=(20, 9_999))
    np.testing.assert_allclose(np.exp(class_log_proba(tree, log_odds)).sum(axis=1), 1, atol=1e-9)


@pytest.mark.parametrize("size", [1e-3, 1.0, 30.0, 700.0, 1e5])
def test_no_underflow_or_overflow_at_depth_a_thousand(rng, size):
    tree = ClassTree.from_nested(chain(1_001))
    assert tree.max_depth == 1_000
    log_odds = rng.choice([-size, size], size=(10, 1_000)) * rng.random((10, 1_000))
    log_proba = class_log_proba(tree, log_odds)
    assert np.isfinite(log_proba).all()
    assert (log_proba <= 0).all()
    np.testing.assert_allclose(np.exp(log_proba).sum(axis=1), 1, atol=1e-9)


def test_the_deepest_log_probability_is_exact_where_the_probability_underflows():
    tree = ClassTree.from_nested(chain(1_001))  # class 0 is the leftmost, at the end of the chain
    log_proba = class_log_proba(tree, np.full((1, 1_000), -10.0))
    assert log_proba[0, 0] == pytest.approx(1_000 * log_expit(-10.0), rel=1e-12)


def test_chunks_depend_on_the_tree_alone_and_fit_the_budget():
    for n_nodes in (1, 10, 1_622, 9_999, 50_000, 10**6):
        rows = chunk_rows(n_nodes)
        budget = chunks.CHUNK_BYTES if rows > 256 else 4 * chunks.CHUNK_BYTES
        assert rows % 64 == 0
        assert rows == 64 or rows * n_nodes * 8 <= budget


def test_every_row_is_scored_once_whatever_the_chunk_size(rng, monkeypatch):
    class Identity:
        def log_odds(self, X):
            return X

    tree = ClassTree(rng.permutation(9), rng.permutation(8))
    X = rng.normal(size=(1_000, 8))
    monkeypatch.setattr(chunks, "CHUNK_BYTES", 64 * 8 * 8)
    seen = np.zeros(1_000, dtype=int)
    out = np.empty_like(X)

    def consume(rows, log_odds):
        seen[rows] += 1
        out[rows] = log_odds

    for_each_chunk(tree.n_nodes, Identity(), X, consume, n_jobs=2)
    assert (seen == 1).all()
    assert np.array_equal(out, X)


def test_long_predictions_of_verbose_estimators_report_their_progress(monkeypatch, capsys):
    X, y = np.random.default_rng(0).normal(size=(400, 3)), np.arange(400) % 4
    clf = NestedDichotomyClassifier(GaussianNB(), random_state=0).fit(X, y)
    monkeypatch.setattr("dichotomies._common.chunks.CHUNK_BYTES", 1)
    monkeypatch.setattr("dichotomies._common.chunks.Progress", lambda title, patience: Progress(title))
    clf.predict_proba(X)
    assert capsys.readouterr().err == ""
    clf.set_params(verbose=1)
    for answer in (clf.predict_proba, clf.predict_top_k, clf.predict):
        answer(X)
        assert "[dichotomies] predict: 100%" in capsys.readouterr().err
