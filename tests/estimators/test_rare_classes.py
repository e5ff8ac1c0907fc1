"""Real text with classes of four to six rows runs through every combination of calibrators."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.naive_bayes import MultinomialNB

from dichotomies.calibrators.binary import BINARY
from dichotomies.calibrators.multiclass import MULTICLASS
from dichotomies.inference.prediction import TreeModel, log_proba_of
from dichotomies.learners import NodeTask, Wanted, choose
from dichotomies.rows.folds import fold_of_rows
from dichotomies.structures import STRUCTURES
from dichotomies.training.cross_fitting import CrossFit
from dichotomies.training.plan import Plan

#: Enough that no combination gets away with a row for every class.
N_CLASSES = 1_000
#: They refuse so many classes in a sentence.
TOO_LARGE = {"matrix", "dirichlet"}


def with_internal(crossed, name, ensemble=False):
    """The same trained folds with another calibrator at the nodes."""
    calibrator = None if name is None else BINARY.create(name)
    other = replace(crossed, plan=replace(crossed.plan, internal=calibrator, ensemble=ensemble))
    other.__dict__["scores"] = crossed.scores
    return other


@pytest.mark.parametrize("name", ["onet_titles", "wordnet"])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_every_combination_is_finite(real_data, name):
    data = real_data(name)
    few = np.isin(data.y, np.unique(data.y)[:N_CLASSES])
    frequent = np.argsort(-data.X.sum(axis=0))[:200]
    X, (classes, codes) = data.X[few][:, frequent], np.unique(data.y[few], return_inverse=True)
    tree = STRUCTURES.create("random").grow(None, codes, random_state=0)
    plan = Plan(choose(MultinomialNB()), internal=BINARY.create("platt"))
    task, folds = NodeTask(tree, X, codes), fold_of_rows(codes, 3, np.random.RandomState(0))
    crossed = CrossFit.fit(plan, task, np.random.RandomState(0), folds, wanted=Wanted.MEMBERS)
    full = crossed.fitted.full
    rows = np.random.RandomState(0).permutation(len(codes))[:600]
    raw = full.log_odds(X[rows[:100]])
    for internal in (None, *BINARY.names()):
        calibrated = with_internal(crossed, internal)
        log_proba = np.empty((len(rows), tree.n_classes))
        for fold in range(3):
            model, mine = TreeModel(tree, calibrated.fold_scorer(fold)), folds[rows] == fold
            log_proba[mine] = log_proba_of(model, X[rows[mine]])
        assert np.isfinite(log_proba).all(), internal
        if internal is not None:  # the nodes trained on everything, with the pooled calibrators
            scores = raw.copy()
            calibrated._maps(calibrated.scores.segments()).apply(scores)
            assert np.isfinite(scores).all(), internal
        for external in MULTICLASS.names():
            calibrator = MULTICLASS.create(external)
            if external in TOO_LARGE:
                with pytest.raises(ValueError, match=str(len(classes))):
                    calibrator.fit(log_proba, codes[rows])
                continue
            answer = calibrator.fit(log_proba[:500], codes[rows[:500]]).predict_log_proba(log_proba[500:])
            assert np.isfinite(answer).all(), (internal, external)
            np.testing.assert_allclose(np.exp(answer).sum(axis=1), 1, atol=1e-9)
    averaged = with_internal(crossed, "platt", ensemble=True)
    answer = log_proba_of(TreeModel(tree, averaged.final_scorer()), X[rows[:100]])
    assert np.isfinite(answer).all()
