"""The bare nested dichotomy, of which the exact laws hold."""

from functools import partial

from dichotomies import NestedDichotomyClassifier

Uncalibrated = partial(NestedDichotomyClassifier, internal_calibration=None, external_calibration=None)

#: With one clone of the base learner at every node, whatever it is.
Clones = partial(Uncalibrated, learner="clones")
