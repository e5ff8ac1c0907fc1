"""Calibrators of several packages as functions of calibration rows, their labels, and test rows."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch  # with the packages below: see benchmarks/calibrators.py
from betacal import BetaCalibration
from netcal import binning, scaling
from probmetrics.calibrators import get_calibrator
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from venn_abers import VennAbers

from dichotomies.calibrators.binary import BINARY
from dichotomies.calibrators.multiclass import MULTICLASS
from dichotomies.structures import STRUCTURES

if TYPE_CHECKING:
    from dichotomies._common.typing import FloatArray, IntArray

Method = Callable[[Any, Any, Any], Any]

#: Classes up to which methods run that take minutes beyond.
MOST_CLASSES = {"dirichlet": 60, "netcal: BBQ": 60, "probmetrics: ivap-ovr": 60}

torch.set_num_threads(1)


def uncalibrated(proba: FloatArray, y: IntArray, test: FloatArray) -> FloatArray:  # noqa: ARG001
    """Leave the probabilities as they are."""
    return test


def our_multiclass(name: str, proba: FloatArray, y: IntArray, test: FloatArray) -> FloatArray:
    """Fit one of our multiclass calibrators."""
    return MULTICLASS.create(name).fit(np.log(proba), y).predict_proba(np.log(test))


def pooled(proba: FloatArray, y: IntArray, test: FloatArray) -> FloatArray:
    """Fit nested calibration along its own tree and two others, and take the geometric mean.

    The others are trees of 2-means and average linkage of the classes' mean log-probabilities.
    """
    k, log_proba = proba.shape[1], np.log(proba)
    known = np.unique(y)
    means = np.full((k, k), log_proba.mean(axis=0))
    means[known] = [log_proba[y == c].mean(axis=0) for c in known]
    trees = [STRUCTURES.create(name).grow(means, np.arange(k)) for name in ("2-means", "average")]
    total = np.zeros(test.shape)
    for tree in (None, *trees):
        calibrator = MULTICLASS.create("nested", tree=tree).fit(log_proba, y)
        total += calibrator.predict_log_proba(np.log(test))
    return np.asarray(softmax(total / (1 + len(trees)), axis=1))


def our_binary(name: str, proba: FloatArray, y: IntArray, test: FloatArray) -> FloatArray:
    """Fit one of our binary calibrators."""
    scores, test_scores = (np.log(p[:, 1]) - np.log(p[:, 0]) for p in (proba, test))
    return BINARY.create(name).fit(scores, y).predict_proba(test_scores)


class _Given(ClassifierMixin, BaseEstimator):
    """A classifier whose features are its log-probabilities."""

    def fit(self, X: Any, y: Any) -> _Given:  # noqa: ARG002
        self.classes_ = np.arange(X.shape[1])
        return self

    def decision_function(self, X: Any) -> Any:
        return X

    def predict(self, X: Any) -> Any:
        return X.argmax(axis=1)


def of_sklearn(proba: FloatArray, y: IntArray, test: FloatArray) -> Any:
    """Fit scikit-learn's temperature scaling."""
    model = FrozenEstimator(_Given().fit(proba, y))
    present = np.arange(proba.shape[1])  # a class without a row would be missing
    rows = np.concatenate([np.log(proba), np.full((len(present), len(present)), -np.log(len(present)))])
    labels = np.concatenate([y, present])
    weight = np.concatenate([np.ones(len(y)), np.full(len(present), 1e-9)])
    everything = np.arange(len(rows))
    fitted = CalibratedClassifierCV(
        model, method="temperature", ensemble=False, cv=[(everything, everything)]
    ).fit(rows, labels, weight)
    return fitted.predict_proba(np.log(test))


def of_netcal(make: Callable[[], Any], proba: FloatArray, y: IntArray, test: FloatArray) -> Any:
    """Fit a calibrator of netcal, which takes the positive column of binary problems."""
    if proba.shape[1] == 2:
        positive = np.clip(make().fit(proba[:, 1], y).transform(test[:, 1]), 0, 1)
        return np.column_stack([1 - positive.ravel(), positive.ravel()])
    return make().fit(proba, y).transform(test)


def of_probmetrics(name: str, proba: FloatArray, y: IntArray, test: FloatArray) -> Any:
    """Fit a calibrator of probmetrics."""
    return np.asarray(get_calibrator(name).fit(proba, y).predict_proba(test))


def of_betacal(proba: FloatArray, y: IntArray, test: FloatArray) -> Any:
    """Fit betacal's calibration with three parameters."""
    positive = BetaCalibration(parameters="abm").fit(proba[:, 1], y).predict(test[:, 1])
    return np.column_stack([1 - positive, positive])


def of_venn_abers(proba: FloatArray, y: IntArray, test: FloatArray) -> Any:
    """Fit the package venn-abers."""
    fitted = VennAbers()
    fitted.fit(proba, y)
    return fitted.predict_proba(test)[0]


def multiclass() -> dict[str, Method]:
    """Return the methods for many classes, by name; those of other packages have its name before a colon."""
    ours = ("temperature", "vector", "vector-odds", "nested", "vector-nested", "auto", "dirichlet")
    theirs = {
        "temperature": scaling.TemperatureScaling,
        "isotonic": binning.IsotonicRegression,
        "histogram": binning.HistogramBinning,
        "BBQ": binning.BBQ,
    }
    others = ("temp-scaling", "svs", "sms", "isotonic", "ivap-ovr")
    return (
        {"uncalibrated": uncalibrated}
        | {name: partial(our_multiclass, name) for name in ours}
        | {"nested, three trees": pooled, "scikit-learn: temperature": of_sklearn}
        | {f"netcal: {name}": partial(of_netcal, make) for name, make in theirs.items()}
        | {f"probmetrics: {name}": partial(of_probmetrics, name) for name in others}
    )


def binary() -> dict[str, Method]:
    """Return the methods for two classes, by name."""
    theirs = {
        "logistic": scaling.LogisticCalibration,
        "beta": scaling.BetaCalibration,
        "isotonic": binning.IsotonicRegression,
        "histogram": binning.HistogramBinning,
        "BBQ": binning.BBQ,
        "ENIR": binning.ENIR,
    }
    others = ("affine-scaling", "quadratic-scaling", "isotonic")
    return (
        {"uncalibrated": uncalibrated}
        | {name: partial(our_binary, name) for name in BINARY.names()}
        | {"betacal: abm": of_betacal, "venn-abers: VennAbers": of_venn_abers}
        | {f"netcal: {name}": partial(of_netcal, make) for name, make in theirs.items()}
        | {f"probmetrics: {name}": partial(of_probmetrics, name) for name in others}
    )
