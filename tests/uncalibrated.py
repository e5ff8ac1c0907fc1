"""The bare nested dichotomy, of which the exact laws hold."""

from functools import partial

from dichotomies import NestedDichotomyClassifier

Uncalibrated = partial(NestedDichotomyClassifier, external_calibration=None)
