"""Names, titles and values of all metrics of a set of rows."""

from __future__ import annotations

from dichotomies.metrics.binning import binned
from dichotomies.metrics.calibration import debiased_expected_error, expected_error, maximum_error
from dichotomies.metrics.decomposition import decomposed
from dichotomies.metrics.facts import RowFacts
from dichotomies.metrics.scores import nll_of
from dichotomies.metrics.smooth import smooth_error

#: Titles of the metrics by name; {k} is expanded for every k of `top_k`.
TITLES = {
    "nll": "negative log-likelihood (NLL)",
    "brier": "Brier score",
    "accuracy": "accuracy",
    "top_{k}_accuracy": "top-{k} accuracy",
    "ece": "calibration error (ECE)",
    "ece_equal_mass": "  in bins of equal mass",
    "ece_debiased": "  debiased",
    "ece_smooth": "  by a kernel (smooth)",
    "mce": "  largest, in bins of equal mass",
    "ece_top_{k}": "  of the {k} most probable classes",
    "ece_class_wise": "  class by class",
    "nll_top_label": "NLL of being right",
    "nll_top_label_calibration": "  calibration",
    "nll_top_label_refinement": "  refinement",
    "brier_top_label": "squared error of being right",
    "brier_top_label_calibration": "  calibration",
    "brier_top_label_refinement": "  refinement",
}


def titles_for(top_k: tuple[int, ...]) -> dict[str, str]:
    """Return names and titles of the metrics, in display order."""
    titles = {}
    for name, title in TITLES.items():
        for k in top_k if "{k}" in name else top_k[:1]:
            titles[name.format(k=k)] = title.format(k=k)
    return titles


def range_of(name: str) -> tuple[float, float]:
    """Return the lower and upper bound of a metric."""
    if name == "ece_debiased":  # negative if there is no evidence of miscalibration
        return -1.0, 1.0
    is_share = "accuracy" in name or name.startswith(("ece", "mce"))
    return 0.0, 1.0 if is_share else float("inf")


def row_metrics(facts: RowFacts, n_bins: int) -> dict[str, float]:
    """Compute every metric that depends on `RowFacts` alone."""
    events = facts.events()
    uniform, equal_mass = (binned(events, n_bins, strategy) for strategy in ("uniform", "quantile"))
    values = {
        "nll": nll_of(facts),
        "brier": facts.mean(facts.brier),
        "accuracy": facts.mean(facts.rank == 0),
        "ece": float(expected_error(uniform)),
        "ece_equal_mass": float(expected_error(equal_mass)),
        "ece_debiased": float(debiased_expected_error(uniform)),
        "ece_smooth": smooth_error(events),
        "mce": float(maximum_error(equal_mass)),
    }
    for k in facts.top_k:
        values[f"top_{k}_accuracy"] = facts.mean(facts.rank < k)
        values[f"ece_top_{k}"] = float(expected_error(binned(facts.events(k), n_bins, "uniform")))
    for loss in ("nll", "brier"):
        total, calibration, refinement = decomposed(events, loss)
        name = f"{loss}_top_label"
        values |= {name: total, f"{name}_calibration": calibration, f"{name}_refinement": refinement}
    return values
