"""The classifiers of the study: a base learner at the nodes of a tree, calibrated inside, outside or both."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB, MultinomialNB

from dichotomies.estimators.classifier import NestedDichotomyClassifier
from dichotomies.learners.boosting import HistAdaBoostClassifier
from dichotomies.structures import STRUCTURES, GrowingTask, Structure
from experiments.datasets import DATASETS
from experiments.running.seeds import derived_seed
from experiments.running.trial import BASE_LEARNERS
from experiments.structures import EXPERIMENTAL

if TYPE_CHECKING:
    from dichotomies.tree import ClassTree
    from experiments.study.trial import StudyTrial

#: The base learners, in the order of the tables.
LEARNERS = tuple(BASE_LEARNERS)
#: The structure that the others are compared with: the paper's.
REFERENCE = "random"
#: Internal and external calibration, by name, in the order of the tables.
CALIBRATIONS: dict[str, tuple[str | None, str | None]] = {
    "none": (None, None),
    "internal": ("platt", None),
    "external": (None, "vector"),
    "both": ("platt", "vector"),
}
#: Settings of the hierarchy for labels that name the groups of their classes.
HIERARCHIES: dict[str, dict[str, Any]] = {
    "onet_titles": {"levels": (2, 4, 6, 7)},  # 11-1011.00: two, three, five and six digits of the code
    "nhcd": {"delimiter": "_"},  # consonant_01, numeral_01, vowel_01
}


def structures() -> list[str]:
    """All structures, the reference first, then by name; "auto" is one of the others."""
    names = {*STRUCTURES.names(), *EXPERIMENTAL} - {REFERENCE, "auto"}
    return [REFERENCE, *sorted(names)]


def structure(name: str, **settings: Any) -> Structure:
    """A structure of the library or of the experiments."""
    return EXPERIMENTAL[name](**settings) if name in EXPERIMENTAL else STRUCTURES.create(name, **settings)


class Clocked(Structure):
    """A structure that notes how long growing took, and grows the same tree whatever else is random.

    Parameters
    ----------
    structure : Structure
        Grows the tree.
    seed : int
        Seeds the tree, so that everything else in a classifier's training is the same for all structures.
    """

    def __init__(self, structure: Structure, seed: int) -> None:
        self.structure = structure
        self.seed = seed

    def grow_from(self, task: GrowingTask, rng: Any) -> ClassTree:  # noqa: ARG002 - it has its own
        """Grow the tree, and note the processor time in `seconds_`."""
        begun = time.process_time()
        tree = self.structure.grow_from(task, np.random.RandomState(self.seed))
        self.seconds_ = time.process_time() - begun
        return tree


def classifier(trial: StudyTrial) -> NestedDichotomyClassifier:
    """The classifier of a trial, not yet fitted; its structure is `Clocked`."""
    internal, external = CALIBRATIONS[trial.calibration]
    settings = HIERARCHIES[trial.dataset] if trial.structure == "hierarchy" else {}
    place = (trial.seed, trial.dataset, trial.repeat)
    return NestedDichotomyClassifier(
        _base(trial),
        Clocked(structure(trial.structure, **settings), derived_seed(*place, "tree")),
        internal_calibration=internal,
        external_calibration=external,
        calibration_size=0.1,
        cv=3,
        n_jobs=1,
        random_state=derived_seed(*place, "training"),
    )


def _base(trial: StudyTrial) -> Any:
    if trial.learner == "logistic_regression":
        return LogisticRegression(max_iter=1_000)
    if trial.learner == "naive_bayes":
        return MultinomialNB() if DATASETS.create(trial.dataset).kind == "sparse" else GaussianNB()
    return HistAdaBoostClassifier(algorithm="real")
