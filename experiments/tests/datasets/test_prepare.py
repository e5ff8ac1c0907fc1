"""Splits, weights and projections as the paper has them."""

import numpy as np
import pytest
from scipy.sparse import csr_array, issparse
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.random_projection import GaussianRandomProjection

from experiments.datasets import (
    DATASETS,
    Dataset,
    Split,
    cross_validation,
    features,
    has_standard_split,
    project,
    splits,
)


@pytest.fixture
def counts(rng):
    y = np.repeat(np.arange(4), [30, 20, 10, 1])
    return Dataset("counts", csr_array(rng.poisson(0.3, (61, 50)).astype(float)), y)


def test_ten_times_ten_folds(counts):
    found = splits(counts)
    assert [(each.repeat, each.fold) for each in found] == [(r, f) for r in range(10) for f in range(10)]
    for repeat in range(10):
        tested = np.concatenate([each.test_rows for each in found if each.repeat == repeat])
        assert np.array_equal(np.sort(tested), np.arange(61))
    for each in found:
        assert np.array_equal(np.setdiff1d(np.arange(61), each.test_rows), each.train_rows)


def test_folds_are_stratified(counts):
    for each in cross_validation(counts.y):
        assert np.bincount(counts.y[each.test_rows], minlength=4)[:3].tolist() == [3, 2, 1]


def test_a_repeat_depends_on_the_seed_and_its_number_alone(counts):
    def tested(**options):
        return {(s.repeat, s.fold): s.test_rows.tolist() for s in splits(counts, **options)}

    few, many = tested(repeats=2), tested(repeats=10)
    assert few == {key: many[key] for key in few}
    assert few != tested(repeats=2, seed=1)
    assert few[0, 0] != few[1, 0]


def test_a_standard_split_is_given_once_per_repeat():
    data = Dataset("own", np.eye(4), np.arange(4), {"train_idx": [0, 2], "val_idx": [1], "test_idx": [3]})
    found = splits(data, repeats=3)
    assert [(s.repeat, s.fold, s.train_rows.tolist(), s.test_rows.tolist()) for s in found] == [
        (repeat, 0, [0, 2], [3]) for repeat in range(3)
    ]


def test_the_papers_small_datasets_are_cross_validated_although_they_have_parts():
    parts = {"train_idx": np.arange(10), "test_idx": np.arange(10, 20)}
    letter = Dataset("letter", np.eye(20), np.repeat([0, 1], 10), parts)
    assert not has_standard_split(letter)
    assert len(splits(letter, repeats=2, folds=5)) == 10
    assert has_standard_split(Dataset("sector", *(letter.X, letter.y), parts))


@pytest.mark.slow
def test_every_dataset_that_is_not_cross_validated_has_a_test_part(real_data):
    for name in DATASETS.names():
        if DATASETS.create(name).files == () and DATASETS.create(name).evaluation != "cross-validation":
            data = real_data(name)
            (split,) = splits(data, repeats=1)
            assert len(np.intersect1d(split.train_rows, split.test_rows)) == 0
            assert 0.05 < len(split.test_rows) / len(data.y) < 0.35


def test_features_are_those_of_the_rows(counts):
    split = Split(0, 0, np.array([5, 1]), np.array([7]))
    X_train, X_test = features(counts, split)
    assert np.array_equal(X_train.toarray(), counts.X.toarray()[[5, 1]])
    assert np.array_equal(X_test.toarray(), counts.X.toarray()[[7]])


def test_tfidf_has_logarithmic_counts_unit_rows_and_training_frequencies(counts):
    split = splits(counts)[0]
    X_train, X_test = (X.toarray() for X in features(counts, split, weighting="tfidf"))
    train, test = (counts.X.toarray()[rows] for rows in (split.train_rows, split.test_rows))
    inverse = 1 + np.log((1 + len(train)) / (1 + (train > 0).sum(axis=0)))
    for given, found in ((train, X_train), (test, X_test)):
        weights = np.where(given > 0, 1 + np.log(np.maximum(given, 1)), 0) * inverse
        norms = np.linalg.norm(weights, axis=1, keepdims=True)
        assert np.allclose(found, weights / np.where(norms > 0, norms, 1))


def test_only_counts_are_weighted(counts):
    split = splits(counts)[0]
    for name, X in {"mine": counts.X.toarray(), "rcv1": counts.X}.items():
        with pytest.raises(ValueError, match=f"which the features of '{name}' are not"):
            features(Dataset(name, X, counts.y), split, weighting="tfidf")
    with pytest.raises(ValueError, match='must be "none", "tfidf" or "unit", got \'idf\''):
        features(counts, split, weighting="idf")


@pytest.mark.parametrize("block", [1, 7, 1 << 23])
def test_the_projection_is_scikit_learns_whatever_is_held_at_a_time(counts, monkeypatch, block):
    monkeypatch.setattr("experiments.datasets.prepare._PROJECTION_BLOCK", block * 50)
    reference = GaussianRandomProjection(20, random_state=3).fit(counts.X)
    sparse, dense = project([counts.X, counts.X.toarray()[:5]], 20, seed=3)
    assert sparse.dtype == np.float32
    assert np.allclose(sparse, reference.transform(counts.X), atol=1e-5)
    assert np.allclose(dense, reference.transform(counts.X)[:5], atol=1e-5)


def test_boosted_trees_get_projected_weights_of_both_parts(counts):
    split = splits(counts)[0]
    X_train, X_test = features(counts, split, weighting="tfidf", projection=8, seed=2)
    weights = TfidfTransformer(sublinear_tf=True).fit(counts.X[split.train_rows])
    reference = GaussianRandomProjection(8, random_state=2).fit(counts.X)
    assert not issparse(X_train)
    assert np.allclose(X_train, reference.transform(weights.transform(counts.X[split.train_rows])), atol=1e-6)
    assert np.allclose(X_test, reference.transform(weights.transform(counts.X[split.test_rows])), atol=1e-6)


def test_a_projection_to_nothing_is_refused(counts):
    with pytest.raises(ValueError, match="at least one dimension, got 0"):
        project([counts.X], 0)


def test_unit_divides_by_the_largest_value_of_the_training_rows():
    grey = Dataset("grey", np.array([[0, 100], [200, 50], [255, 0]], dtype=np.uint8), np.arange(3))
    X_train, X_test = features(grey, Split(0, 0, np.array([0, 1]), np.array([2])), weighting="unit")
    assert X_train.tolist() == [[0, 0.5], [1, 0.25]]
    assert X_test.tolist() == [[1.275, 0]]
    nothing = Dataset("nothing", np.zeros((2, 2)), np.arange(2))
    parts = features(nothing, Split(0, 0, np.array([0]), np.array([1])), weighting="unit")
    assert all((part == 0).all() for part in parts)
