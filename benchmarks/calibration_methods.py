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
from scipy.special import expit
from venn_abers import VennAbers

from dichotomies.calibrators.binary import BINARY, Segments
from dichotomies.calibrators.multiclass import MULTICLASS

if TYPE_CHECKING:
    from dichotomies._common.typing import FloatArray, IntArray

Method = Callable[[Any, Any, Any], Any]

#: Classes up to which methods run that take minutes beyond.
MOST_CLASSES = {"netcal: logistic": 60, "netcal: beta": 10, "netcal: BBQ": 60, "dirichlet": 60}

torch.set_num_threads(1)


def uncalibrated(proba: FloatArray, y: IntArray, test: FloatArray) -> FloatArray:  # noqa: ARG001
    """Leave the probabilities as they are."""
    return test


def our_multiclass(name: str, proba: FloatArray, y: IntArray, test: FloatArray) -> FloatArray:
    """Fit one of our multiclass calibrators."""
    return MULTICLASS.create(name).fit(np.log(proba), y).predict_proba(np.log(test))


def log_odds(p: FloatArray) -> FloatArray:
    """Log-odds of probabilities, finite at 1."""
    return np.log(p) - np.log(np.maximum(1 - p, np.finfo(float).eps / 2))


def our_one_vs_rest(name: str, proba: FloatArray, y: IntArray, test: FloatArray) -> FloatArray:
    """Fit one of our binary calibrators to every class against the others, all at once, and normalise."""
    n, k = proba.shape
    is_class = (y == np.arange(k)[:, None]).ravel()
    maps = BINARY.create(name).fit_segments(
        Segments(log_odds(proba).T.ravel(), is_class, np.arange(k + 1) * n)
    )
    columns = log_odds(test)
    maps.apply(columns)
    p: FloatArray = expit(columns)
    p /= p.sum(axis=1, keepdims=True)
    return p


def our_binary(name: str, proba: FloatArray, y: IntArray, test: FloatArray) -> FloatArray:
    """Fit one of our binary calibrators."""
    scores, test_scores = (np.log(p[:, 1]) - np.log(p[:, 0]) for p in (proba, test))
    return BINARY.create(name).fit(scores, y).predict_proba(test_scores)


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
    """Return the methods for many classes, by name."""
    ours = ("temperature", "bias-temperature", "vector", "vector-ml", "dirichlet", "isotonic", "auto")
    in_turn = [name for name in BINARY.names() if name != "auto"]
    theirs = {
        "temperature": scaling.TemperatureScaling,
        "logistic": scaling.LogisticCalibration,
        "beta": scaling.BetaCalibration,
        "isotonic": binning.IsotonicRegression,
        "histogram": binning.HistogramBinning,
        "BBQ": binning.BBQ,
    }
    others = ("temp-scaling", "svs", "sms", "isotonic", "ivap-ovr")
    return (
        {"uncalibrated": uncalibrated}
        | {name: partial(our_multiclass, name) for name in ours}
        | {f"{name}, one-vs-rest": partial(our_one_vs_rest, name) for name in in_turn}
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
