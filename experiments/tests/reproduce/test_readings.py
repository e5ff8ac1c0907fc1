"""What the two readings run, and that they differ in nothing else."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_digits

from dichotomies.calibrators.multiclass.vector import VectorScaling
from experiments.datasets import DATASETS
from experiments.reproduce import readings
from experiments.reproduce.readings import AS_NUMBERS_IMPLY, AS_PRINTED, BASES, READINGS, SCHEMES, SMALL
from experiments.reproduce.stand_ins import PAPER_DATASETS
from experiments.reproduce.trial import PaperTrial

TRIAL = PaperTrial("optdigits", "naive_bayes", AS_NUMBERS_IMPLY, "none", 0, 0)


def base_of(**changes):
    return type(readings.classifier(replace(TRIAL, **changes)).estimator).__name__


def test_all_trials_of_a_split_have_the_same_tree():
    X, y = load_digits(return_X_y=True)
    classifiers = [
        readings.classifier(replace(TRIAL, base=base, reading=reading, scheme=scheme))
        for base in BASES
        for reading in READINGS
        for scheme in readings.schemes_of(base)[:2]
    ]
    rows = np.r_[0:300]
    trees = [
        clf.set_params(internal_calibration=None, external_calibration=None).fit(X[rows], y[rows]).tree_
        for clf in classifiers
    ]
    assert all(tree == trees[0] for tree in trees)
    other = readings.classifier(replace(TRIAL, fold=1)).fit(X[rows], y[rows]).tree_
    assert other != trees[0]


@pytest.mark.parametrize("dataset", SMALL)
def test_the_base_learners_are_those_of_the_text_or_of_the_numbers(dataset):
    printed, implied = ({"dataset": dataset, "reading": each} for each in READINGS)
    assert base_of(**printed) == "GaussianNB"
    assert base_of(**implied) == "MultinomialNB"
    assert base_of(**printed, base="boosted_trees") == "HistAdaBoostClassifier"
    assert base_of(**implied, base="boosted_trees") == "DecisionTreeClassifier"


def test_text_has_multinomial_naive_bayes_and_large_sets_boosting_in_both():
    for reading in READINGS:
        assert base_of(dataset="wordnet", reading=reading) == "MultinomialNB"
        assert base_of(dataset="omniglot", reading=reading, base="boosted_trees") == "HistAdaBoostClassifier"


def test_internal_calibration_is_scikit_learns_only_where_the_numbers_imply_it():
    for scheme in ("internal_ps", "both_ir"):
        clf = readings.classifier(replace(TRIAL, scheme=scheme))
        assert isinstance(clf.estimator, CalibratedClassifierCV)
        assert clf.internal_calibration is None
        assert clf.estimator.cv == 3
        for elsewhere in ({"reading": AS_PRINTED}, {"dataset": "reuters52"}):
            ours = readings.classifier(replace(TRIAL, scheme=scheme, **elsewhere))
            assert ours.internal_calibration == SCHEMES[scheme].internal


def test_logistic_regression_has_no_internal_calibration_in_the_paper():
    assert readings.schemes_of("logistic_regression") == ("none", "external_vs")
    assert readings.schemes_of("naive_bayes") == tuple(SCHEMES)


def test_the_floor_is_all_that_floored_vector_scaling_adds(rng):
    log_proba = np.log(rng.dirichlet(np.full(5, 0.02), size=200) + 1e-300)
    y = log_proba.argmax(axis=1)
    floored = readings.FlooredVectorScaling().fit(log_proba, y)
    raised = np.maximum(log_proba, np.log(1e-7))
    expected = VectorScaling().fit(raised, y).predict_log_proba(raised)
    assert np.array_equal(floored.predict_log_proba(log_proba), expected)
    assert not np.allclose(VectorScaling().fit(log_proba, y).predict_log_proba(log_proba), expected)


@pytest.mark.parametrize("subject", PAPER_DATASETS, ids=lambda subject: subject.dataset)
def test_every_dataset_can_be_prepared_for_every_base_learner(subject):
    for base in BASES:
        prepared = readings.preparation(replace(TRIAL, dataset=subject.dataset, base=base))
        projects = base == "boosted_trees" and DATASETS.create(subject.dataset).kind == "sparse"
        assert (prepared.get("projection") == 1_000) == projects


def test_an_unknown_base_learner_is_named():
    with pytest.raises(ValueError, match=r"no base learner 'svm'; choose from \['logistic_regression'"):
        readings.classifier(replace(TRIAL, base="svm"))
