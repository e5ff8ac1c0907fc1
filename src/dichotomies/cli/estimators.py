"""Base learners by their name on the command line."""

from typing import Any

#: Descriptions by name.
ESTIMATORS = {
    "logistic": "LogisticRegression",
    "tuned-logistic": "TunedLogisticRegression: the penalty chosen node by node",
    "naive-bayes": "MultinomialNB for texts and sparse data, GaussianNB for others",
    "gaussian-nb": "GaussianNB",
    "multinomial-nb": "MultinomialNB",
    "complement-nb": "ComplementNB",
    "bernoulli-nb": "BernoulliNB",
    "adaboost": "HistAdaBoostClassifier: boosted small trees",
    "gradient-boosting": "HistGradientBoostClassifier: boosted small trees",
}


def estimator_named(name: str, params: dict[str, Any], *, sparse: bool = False) -> Any:
    """Create a base learner with the given parameters.

    Parameters
    ----------
    name : str
        One of `ESTIMATORS`.
    params : dict
        Its parameters by name.
    sparse : bool
        True for sparse data, which selects the variant of "naive-bayes".
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.naive_bayes import BernoulliNB, ComplementNB, GaussianNB, MultinomialNB

    import dichotomies

    classes = {
        "logistic": LogisticRegression,
        "tuned-logistic": dichotomies.TunedLogisticRegression,
        "naive-bayes": MultinomialNB if sparse else GaussianNB,
        "gaussian-nb": GaussianNB,
        "multinomial-nb": MultinomialNB,
        "complement-nb": ComplementNB,
        "bernoulli-nb": BernoulliNB,
        "adaboost": dichotomies.HistAdaBoostClassifier,
        "gradient-boosting": dichotomies.HistGradientBoostClassifier,
    }
    return classes[name]().set_params(**params)
