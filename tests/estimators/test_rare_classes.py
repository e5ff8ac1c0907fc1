"""Real text with classes of four to six rows runs through every combination of calibrators."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.naive_bayes import MultinomialNB

from dichotomies._common.parallel import Context
from dichotomies.calibrators.binary import BINARY
from dichotomies.calibrators.multiclass import MULTICLASS
from dichotomies.inference.fitted import FittedForest
from dichotomies.learners import Wanted, choose
from dichotomies.rows.folds import fold_of_rows
from dichotomies.structures import STRUCTURES
from dichotomies.training.cross_fitting import CrossFit
from dichotomies.training.plan import Plan
from dichotomies.tree.forest import Forest
from tests.tasks import in_folds, node_task

#: Enough that no combination gets away with a row for every class.
N_CLASSES = 1_000
#: They refuse so many classes in a sentence.
TOO_LARGE = {"matrix", "dirichlet"}


def with_internal(crossed, name, average_folds=False):
    """The same trained folds with another calibrator at the nodes."""
    calibrator = None if name is None else BINARY.create(name)
    plan = replace(crossed.plan, internal_calibration=calibrator, average_folds=average_folds)
    return replace(crossed, plan=plan)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["onet_titles", "wordnet"])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_every_combination_is_finite(real_data, name):
    data = real_data(name)
    few = np.isin(data.y, np.unique(data.y)[:N_CLASSES])
    frequent = np.argsort(-data.X.sum(axis=0))[:200]
    X, (classes, codes) = data.X[few][:, frequent], np.unique(data.y[few], return_inverse=True)
    tree = STRUCTURES.create("random").grow(None, codes, random_state=0)
    plan = Plan(learner=choose(MultinomialNB()), internal_calibration=BINARY.create("platt"))
    folds = fold_of_rows(codes, 3, np.random.RandomState(0))
    everything = Wanted.FULL | Wanted.MEMBERS | Wanted.SCORES
    crossed = CrossFit.fit(plan, in_folds(node_task(tree, X, codes), folds), everything, Context())
    forest = Forest.of([tree])
    rows = np.random.RandomState(0).permutation(len(codes))[:600]
    for internal in (None, *BINARY.names()):
        calibrated = with_internal(crossed, internal)
        log_proba = FittedForest(forest, calibrated.unseen_scorer()).predict_log_proba(rows)
        assert np.isfinite(log_proba).all(), internal
        if internal is not None:  # the nodes trained on everything, with the pooled calibrators
            assert np.isfinite(calibrated.final_scorer().log_odds(X[rows[:100]])).all(), internal
        for external in MULTICLASS.names():
            calibrator = MULTICLASS.create(external)
            if external in TOO_LARGE:
                with pytest.raises(ValueError, match=str(len(classes))):
                    calibrator.fit(log_proba, codes[rows])
                continue
            answer = calibrator.fit(log_proba[:500], codes[rows[:500]]).predict_log_proba(log_proba[500:])
            assert np.isfinite(answer).all(), (internal, external)
            np.testing.assert_allclose(np.exp(answer).sum(axis=1), 1, atol=1e-9)
    averaged = with_internal(crossed, "platt", average_folds=True)
    answer = FittedForest(forest, averaged.final_scorer()).predict_log_proba(X[rows[:100]])
    assert np.isfinite(answer).all()
