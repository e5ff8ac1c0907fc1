"""Base learners by their name on the command line: the estimators that have a fast path, or "auto"."""

from inspect import getdoc
from typing import Any

#: The name that leaves the choice of the base learner to the classifier.
AUTO = "auto"

#: The name that leaves the choice of a naive Bayes classifier to the data.
_NAIVE_BAYES = "naive-bayes"


def summaries() -> dict[str, str]:
    """Return one line about each base learner, by name."""
    chosen = {AUTO: "Logistic regression, naive Bayes or boosted trees, by out-of-fold NLL on a sample"}
    lines = {name: f"{cls.__name__}: {_first_line(cls)}" for name, cls in _classes(sparse=False).items()}
    return chosen | lines | {_NAIVE_BAYES: "MultinomialNB for texts and sparse data, GaussianNB for others"}


def estimator_named(name: str, params: dict[str, Any], *, sparse: bool = False) -> Any:
    """Create a base learner with the given parameters; None where it is to be chosen.

    Parameters
    ----------
    name : str
        One of `summaries`.
    params : dict
        Its parameters by name.
    sparse : bool
        True for sparse data, which selects the variant of "naive-bayes".
    """
    return None if name == AUTO else _classes(sparse=sparse)[name]().set_params(**params)


def _classes(*, sparse: bool) -> dict[str, Any]:
    from dichotomies.learners import LEARNERS

    named = {name: cls for each in LEARNERS.names() for name, cls in LEARNERS.get(each).trains.items()}
    return named | {_NAIVE_BAYES: named["multinomial-nb" if sparse else "gaussian-nb"]}


def _first_line(cls: type) -> str:
    return (getdoc(cls) or "").partition("\n")[0]
