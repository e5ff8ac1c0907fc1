"""Small models of every kind, one of each registered thing, for the tests of model files."""

import warnings
from functools import cache
from unittest.mock import patch

import numpy as np
import pandas as pd
from scipy.sparse import csr_array
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.naive_bayes import BernoulliNB, ComplementNB, GaussianNB, MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from dichotomies import (
    CalibratedClassifier,
    HistAdaBoostClassifier,
    HistGradientBoostClassifier,
    NestedDichotomyClassifier,
    NestedDichotomyEnsemble,
    TunedLogisticRegression,
)
from dichotomies._kernels.compile import compiling_always
from dichotomies.calibrators.binary import BINARY
from dichotomies.calibrators.multiclass import MULTICLASS
from dichotomies.learners import LEARNERS
from dichotomies.structures import STRUCTURES, FixedTree
from dichotomies.tables import Table, TableModel

#: Estimators by the learner that takes them and the kind of rows they get.
ESTIMATORS = {
    "logistic": LogisticRegression(),
    "logistic sparse": LogisticRegression(),
    "tuned-logistic": TunedLogisticRegression(Cs=[0.1, 1.0]),
    "tuned-logistic sparse": TunedLogisticRegression(Cs=[0.1, 1.0], per="depth"),
    "naive-bayes gaussian": GaussianNB(),
    "naive-bayes multinomial": MultinomialNB(),
    "naive-bayes multinomial sparse": MultinomialNB(),
    "naive-bayes complement": ComplementNB(norm=True),
    "naive-bayes bernoulli": BernoulliNB(binarize=0.4),
    "naive-bayes bernoulli sparse": BernoulliNB(),
    "boosting ada": HistAdaBoostClassifier(4, max_depth=2),
    "boosting gradient": HistGradientBoostClassifier(4, max_depth=2),
    "clones logistic": LogisticRegression(),
    "clones boosting": HistGradientBoostClassifier(4, max_depth=2),
    "clones tuned": TunedLogisticRegression(Cs=[0.1, 1.0]),
}
ESTIMATORS |= {
    f"{name} {kind.__name__}": kind()
    for name in LEARNERS.names()
    for kind in LEARNERS.get(name).trains.values()
    if kind not in map(type, ESTIMATORS.values())
}


@cache
def digits():
    """Some rows of handwritten digits, in few and narrow columns, with labels in several scripts."""
    X, y = load_digits(return_X_y=True)
    X, y = X[y < 6][:200, 17:40:2] / 16, y[y < 6][:200]
    return X, np.array(["zéro", "один", "δύο", "三", "four 4️⃣", ""])[y]


def rows_for(name):
    """Rows of the kind that a key of `ESTIMATORS` says."""
    X, y = digits()
    return (csr_array(X) if name.endswith("sparse") else X), y


@cache
def model(name, **params):
    """A fitted classifier; `params` as of the classifier."""
    given = {"random_state": 0, "learner": "clones" if name.startswith("clones") else "auto"}
    given |= {
        "internal_calibration": None,
        "external_calibration": "vector",
        "calibration_size": 0.1,
    } | params
    clf = NestedDichotomyClassifier(ESTIMATORS[name], **given)
    if "sparse" not in name:
        return clf.fit(*rows_for(name))
    with compiling_always(), patch("dichotomies.learners.naive_bayes.learner._WRITTEN_OUT", 0):
        return clf.fit(*rows_for(name))  # of so few sparse rows the weights would be dense


@cache
def all_models():
    """Classifiers that together hold every calibrator, every structure and every other savable object."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # so few rows are easily separated
        return (*_registered(), *_others())


def _registered():
    for name in BINARY.names():
        yield model("naive-bayes multinomial", internal_calibration=name)
        yield model("logistic", internal_calibration=BINARY.create(name), external_calibration=None)
    for name in MULTICLASS.names():
        yield model("logistic", external_calibration=name, internal_calibration="temperature")
        yield model("logistic", external_calibration=MULTICLASS.create(name))
    for name in STRUCTURES.names():
        params = {"levels": (1,)} if name == "hierarchy" else {}  # the labels have no delimiter
        yield model("naive-bayes gaussian", structure=STRUCTURES.create(name, **params))


def _others():
    X, y = digits()
    tree = model("logistic").tree_
    yield model("naive-bayes gaussian", structure=FixedTree(tree))
    yield NestedDichotomyEnsemble(GaussianNB(), n_estimators=3, random_state=0).fit(X, y)
    yield model("naive-bayes gaussian", structure=tree)
    yield model("naive-bayes gaussian", structure=tree).calibrate_sets(X, y)
    yield NestedDichotomyClassifier(GaussianNB(), tree, random_state=0).partial_fit(X, y)
    given = {"calibration_size": "cross-fit", "keep_rows": 100}
    with patch("dichotomies.learners.naive_bayes.learner._WRITTEN_OUT", 0):
        mixed = NestedDichotomyClassifier(MultinomialNB(), random_state=0, **given).fit(csr_array(X), y)
    yield mixed.update(csr_array(X[:20]), np.array(["new"] * 20))  # nodes of sparse and of dense weights
    yield NestedDichotomyClassifier(GaussianNB(), tree, random_state=0).fit(X, y).forget_class("")
    yield model("naive-bayes complement", cv=KFold(2, shuffle=True, random_state=3), random_state=None)
    few = StratifiedKFold(2)
    uncalibrated = model("naive-bayes gaussian", internal_calibration="platt", cv=few)
    yield CalibratedClassifier(FrozenEstimator(uncalibrated), "temperature").fit(X, y)
    yield CalibratedClassifier(uncalibrated, MULTICLASS.create("auto", candidates=("none",))).fit(X, y)
    scaled = make_pipeline(StandardScaler(), HistAdaBoostClassifier(2))
    yield NestedDichotomyClassifier(scaled, random_state=np.random.RandomState(5)).fit(X, y)


def category_model():
    """Boosted trees that were fitted on a data frame with categories."""
    X, y = digits()
    category = pd.Categorical(np.round(4 * X[:, 3]))
    frame = pd.DataFrame(X[:, :3], columns=list("abc")).assign(d=category)
    return NestedDichotomyClassifier(HistGradientBoostClassifier(4), random_state=0).fit(frame, y)


def table_model():
    """What the command line saves: a classifier with the columns it reads."""
    titles = ["data engineer", "nurse", "head nurse", "software engineer"] * 10
    labels = np.array(["it", "care", "care", "it"] * 10)
    texts = {"title": titles, "city": ["Bonn", "Ulm"] * 20, "born": ["2001-02-03", "", "1999-12-31", ""] * 10}
    table = Table(
        np.arange(40.0)[:, None], labels, names=("age",), texts=texts, categorical=("city",), date=("born",)
    )
    return TableModel.fit(NestedDichotomyClassifier(random_state=0), table)


def frame_model():
    """A classifier fitted to a data frame with categories."""
    X = pd.DataFrame({"city": pd.Categorical(["Bonn", "Ulm", "Hof"] * 10), "age": np.arange(30.0)})
    base = make_pipeline(
        make_column_transformer((OneHotEncoder(handle_unknown="ignore"), ["city"])), LogisticRegression()
    )
    return NestedDichotomyClassifier(base, random_state=0).fit(X, np.array(["a", "b", "c"] * 10))
