"""Estimates of the seconds that the stages of `fit` take, for the progress bar; no result depends on them."""

from __future__ import annotations

from dichotomies._common.progress import CALIBRATING, CHOOSING, GROWING, TRAINING
from dichotomies.learners.naive_bayes import NaiveBayesLearner
from dichotomies.rows import Rows
from dichotomies.rows.folds import fold_count
from dichotomies.training.judging import JUDGING_FOLDS
from dichotomies.training.learner_choice import LearnerChoice
from dichotomies.training.plan import Plan


def before(plan: Plan, rows: Rows, *, chooses: bool) -> dict[str, float]:
    """Seconds by stage, from the size of the problem alone."""
    cells = float(len(rows)) * rows.n_features
    per_cell = 1e-8 if isinstance(plan.learner, NaiveBayesLearner) else 3e-8
    training = per_cell * cells * plan.n_estimators * (1 + _n_folds(plan, rows))
    return {
        CHOOSING: 1.0 + 2e-8 * cells if chooses else 0.0,
        GROWING: 2.5e-8 * cells * plan.n_estimators,
        TRAINING: training,
        CALIBRATING: 5e-6 * len(rows) * plan.n_estimators + 2.0 if plan.uses_folds else 0.0,
    }


def after(choice: LearnerChoice, plan: Plan, rows: Rows) -> dict[str, float]:
    """Seconds of training, from those that the chosen learner took in its trial."""
    if not choice.n_rows:
        return {}
    trained = (1 + _n_folds(plan, rows)) / (1 + JUDGING_FOLDS) * plan.n_estimators
    return {TRAINING: choice.seconds * len(rows) / choice.n_rows * trained}


def _n_folds(plan: Plan, rows: Rows) -> int:
    if not plan.uses_folds:
        return 0
    if plan.cv == "auto":
        return fold_count(len(rows), rows.n_classes, plan.learner.folds)
    return plan.cv if isinstance(plan.cv, int) else 5
