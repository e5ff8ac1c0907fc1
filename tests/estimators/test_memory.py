"""Peak memory on 1,623 classes stays within the bounds the user guide states."""

import tracemalloc

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB

from dichotomies._common.chunks import CHUNK_BYTES
from tests.uncalibrated import Clones

NODE_BYTES = 12 * 2**10  # a trained GaussianNB of 288 features: 9.4 KiB of parameters, and its objects


def peak_bytes(work):
    """What a call allocated at its peak beyond what was there before, and its result."""
    tracemalloc.start()
    result = work()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak, result


@pytest.mark.slow
def test_peak_memory_of_fitting_and_predicting_omniglot(real_data):
    data = real_data("omniglot")
    train = data.extra["drawer"] <= 15
    X, X_test = data.X[train] / 255, data.X[~train] / 255
    clf = Clones(GaussianNB(), random_state=0)
    fit_peak, _ = peak_bytes(lambda: clf.fit(X, data.y[train]))
    clf.predict_proba(X_test)  # imports the compiler, in a process that has not yet
    predict_peak, proba = peak_bytes(lambda: clf.predict_proba(X_test))
    assert proba.shape == (8_115, 1_623)
    np.testing.assert_allclose(proba.sum(axis=1), 1, atol=1e-9)
    # the rows of one node, once gathered and once more for what the learner makes of them
    assert fit_peak < 2 * X.nbytes + clf.tree_.n_nodes * NODE_BYTES
    # the answer itself, one chunk of log-odds, and as much again for the learner
    assert predict_peak < proba.nbytes + 2 * CHUNK_BYTES
    label_peak, _ = peak_bytes(lambda: clf.predict(X_test[:4_000]))
    assert label_peak < 3 * CHUNK_BYTES  # the probabilities of one chunk, never of all rows
