"""Results made by hand, and a folder with a small dataset under a name the registry knows."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_digits

from experiments.reproduce.trial import PaperResult, PaperTrial
from tests.conftest import digits, real_data, rng

__all__ = ["digits", "real_data", "rng"]  # fixtures

TRIAL = PaperTrial("letter", "naive_bayes", "as-numbers-imply", "none", 0, 0)


@pytest.fixture
def make_result():
    """A result with the given fields of its trial and of itself; the others are always the same."""

    def make(nll=1.0, accuracy=0.5, seconds=2.0, **of_trial):
        return PaperResult(
            replace(TRIAL, **of_trial),
            nll=nll,
            nll_unclipped=float("inf"),
            accuracy=accuracy,
            top5_accuracy=0.75,
            ece=0.125,
            brier=0.25,
            mean_depth=3.5,
            n_train=90,
            n_test=10,
            n_classes=26,
            n_features=16,
            fit_seconds=seconds - 0.5,
            predict_seconds=0.5,
            peak_memory_mb=100.0,
            warnings="",
            finished_at="2026-01-01T00:00:00+00:00",
            versions="{}",
        )

    return make


@pytest.fixture(scope="session")
def data_dir(tmp_path_factory):
    """A data folder whose "optdigits" are a few of scikit-learn's digits."""
    folder = tmp_path_factory.mktemp("data")
    X, y = load_digits(return_X_y=True)
    (folder / "optdigits").mkdir()
    np.savez(folder / "optdigits" / "optdigits.npz", X=X[:400], y=y[:400])
    return folder
