"""Results of the study made by hand, and a folder with two small datasets under names the study knows."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_digits

from experiments.study.trial import StudyResult, StudyTrial

TRIAL = StudyTrial("letter", "naive_bayes", "random", "none", 0)


@pytest.fixture
def make_result():
    """A result with the given fields of its trial and of itself; the others are always the same."""

    def make(nll=1.0, fit_seconds=2.0, mean_depth=3.5, accuracy=0.5, **of_trial):
        return StudyResult(
            replace(TRIAL, **of_trial),
            nll=nll,
            nll_unclipped=float("inf"),
            accuracy=accuracy,
            top5_accuracy=0.75,
            ece=0.125,
            brier=0.25,
            mean_depth=mean_depth,
            n_train=90,
            n_test=10,
            n_classes=26,
            n_features=16,
            fit_seconds=fit_seconds,
            predict_seconds=0.5,
            peak_memory_mb=100.0,
            warnings="",
            finished_at="2026-01-01T00:00:00+00:00",
            versions="{}",
            max_depth=7,
            grow_seconds=0.25,
        )

    return make


@pytest.fixture(scope="session")
def study_data(tmp_path_factory):
    """A data folder whose "optdigits" are a few digits, and whose "reuters52" are words drawn at random."""
    folder = tmp_path_factory.mktemp("data")
    X, y = load_digits(return_X_y=True)
    (folder / "optdigits").mkdir()
    np.savez(folder / "optdigits" / "optdigits.npz", X=X[:240].astype(np.uint8), y=y[:240])
    (folder / "reuters52").mkdir()
    np.savez(folder / "reuters52" / "reuters52.npz", **_words())
    return folder


def _words():
    """Counts of 30 words in 120 stories on 6 topics with words of their own; every third is for testing."""
    rng = np.random.default_rng(0)
    y = np.repeat(list("abcdef"), 20)
    rate = 0.3 + 2 * (np.arange(30) % 6 == np.arange(6).repeat(20)[:, None])
    counts = rng.poisson(rate) + np.eye(30, dtype=int)[rng.integers(30, size=120)]  # no story without words
    rows, indices = np.nonzero(counts)
    indptr = np.searchsorted(rows, np.arange(121))
    is_test = np.arange(120) % 3 == 0
    return {
        "data": counts[rows, indices],
        "indices": indices,
        "indptr": indptr,
        "shape": np.array(counts.shape),
        "y": y,
        "train_idx": np.flatnonzero(~is_test),
        "test_idx": np.flatnonzero(is_test),
    }
