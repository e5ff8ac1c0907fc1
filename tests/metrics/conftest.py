"""Predictions to measure: random ones, and a neural network's over-confident ones."""

import numpy as np
import pytest


def sampled(proba, rng):
    """Labels drawn from the probabilities: predictions that are calibrated by construction."""
    return (proba.cumsum(axis=1) > rng.random((len(proba), 1))).argmax(axis=1)


@pytest.fixture
def random_predictions(rng):
    """Labels and probabilities of six classes, over-confident: the labels come from tempered ones."""
    proba = rng.dirichlet(np.full(6, 0.4), size=600)
    tempered = np.sqrt(proba + 1e-3)
    return sampled(tempered / tempered.sum(axis=1, keepdims=True), rng), proba


@pytest.fixture(params=["random", "real"])
def predictions(request, random_predictions):
    """Labels and double-precision probabilities."""
    if request.param == "random":
        return random_predictions
    data = request.getfixturevalue("real_data")("cifar100_probs")
    proba = data.X[:2000].astype(np.float64)
    return data.y[:2000].astype(int), proba / proba.sum(axis=1, keepdims=True)


@pytest.fixture
def weights(predictions, rng):
    """Whole numbers as weights, zeros among them."""
    return rng.integers(4, size=len(predictions[0]))


@pytest.fixture
def repeated(predictions, weights):
    """The predictions with every row as often as its weight says."""
    y, proba = predictions
    return np.repeat(y, weights), np.repeat(proba, weights, axis=0)
