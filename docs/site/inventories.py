"""Inventories of other projects' documentation, small and local, so that the site is built offline.

Sphinx links a name to another site by that site's ``objects.inv``. Those of scikit-learn, numpy and scipy
have tens of thousands of entries; the names that this site mentions are listed here, and written in the same
format.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class Inventory:
    """Another project: address, the place of a name's page, and its names by kind."""

    project: str
    url: str
    place: str
    names: dict[str, str]
    others: dict[str, str] = field(default_factory=dict)

    def lines(self) -> list[str]:
        """Entries of the inventory; in a place, $ stands for the name."""
        listed = [(name, kind) for kind, names in self.names.items() for name in names.split()]
        found = [f"{name} py:{kind} 1 {self.place} -" for name, kind in listed]
        return found + [f"{name} 1 {place} -" for name, place in self.others.items()]

    def write(self, folder: Path) -> Path:
        """Write it as a file that intersphinx reads."""
        folder.mkdir(parents=True, exist_ok=True)
        header = f"# Sphinx inventory version 2\n# Project: {self.project}\n# Version: \n"
        header += "# The remainder of this file is compressed using zlib.\n"
        path = folder / f"{self.project}.inv"
        path.write_bytes(header.encode() + zlib.compress("\n".join([*self.lines(), ""]).encode()))
        return path


INVENTORIES = (
    Inventory(
        "python",
        "https://docs.python.org/3/",
        "library/stdtypes.html#$",
        {"class": "bool dict float int list set str tuple"},
        {
            "bltin-boolean-values std:label": "library/stdtypes.html#boolean-values",
            "iterable std:term": "glossary.html#term-iterable",
            "sequence std:term": "glossary.html#term-sequence",
        },
    ),
    Inventory(
        "sklearn",
        "https://scikit-learn.org/stable/",
        "modules/generated/$.html#$",
        {
            "class": """
                sklearn.base.BaseEstimator sklearn.base.ClassifierMixin
                sklearn.calibration.CalibratedClassifierCV sklearn.calibration.CalibrationDisplay
                sklearn.ensemble.AdaBoostClassifier sklearn.ensemble.HistGradientBoostingClassifier
                sklearn.ensemble.RandomForestClassifier sklearn.frozen.FrozenEstimator
                sklearn.feature_extraction.text.TfidfVectorizer
                sklearn.feature_extraction.text.TfidfTransformer
                sklearn.isotonic.IsotonicRegression sklearn.linear_model.LogisticRegression
                sklearn.linear_model.RidgeClassifier sklearn.linear_model.SGDClassifier
                sklearn.model_selection.GridSearchCV sklearn.model_selection.GroupKFold
                sklearn.naive_bayes.BernoulliNB sklearn.naive_bayes.ComplementNB
                sklearn.naive_bayes.GaussianNB sklearn.naive_bayes.MultinomialNB
                sklearn.neural_network.MLPClassifier
                sklearn.pipeline.Pipeline sklearn.preprocessing.StandardScaler
                sklearn.preprocessing.MaxAbsScaler sklearn.svm.LinearSVC sklearn.svm.SVC
                sklearn.tree.DecisionTreeClassifier sklearn.utils.metadata_routing.MetadataRequest
            """,
            "function": """
                sklearn.datasets.load_digits sklearn.datasets.load_iris sklearn.datasets.make_blobs
                sklearn.metrics.log_loss sklearn.metrics.brier_score_loss sklearn.metrics.accuracy_score
                sklearn.calibration.calibration_curve
                sklearn.model_selection.cross_val_score sklearn.model_selection.train_test_split
                sklearn.pipeline.make_pipeline sklearn.utils.estimator_checks.check_estimator
            """,
        },
        {
            "metadata_routing std:label": "metadata_routing.html#metadata-routing",
            "sphx_glr_auto_examples_miscellaneous_plot_metadata_routing.py std:label": (
                "auto_examples/miscellaneous/plot_metadata_routing.html"
            ),
            "accuracy_score std:label": "modules/model_evaluation.html#accuracy-score",
            "meta-estimator std:term": "glossary.html#term-meta-estimator",
            "random_state std:term": "glossary.html#term-random_state",
            "n_jobs std:term": "glossary.html#term-n_jobs",
        },
    ),
    Inventory(
        "numpy",
        "https://numpy.org/doc/stable/",
        "reference/generated/$.html#$",
        {"class": "numpy.ndarray", "function": "numpy.load numpy.savez numpy.searchsorted"},
        {
            "numpy.random.RandomState py:class": "reference/random/legacy.html#numpy.random.RandomState",
            "numpy.random.Generator py:class": "reference/random/generator.html#numpy.random.Generator",
            "array_like std:term": "glossary.html#term-array_like",
        },
    ),
    Inventory(
        "scipy",
        "https://docs.scipy.org/doc/scipy/",
        "reference/generated/$.html#$",
        {
            "class": "scipy.sparse.csr_matrix scipy.sparse.csr_array scipy.interpolate.PchipInterpolator",
            "function": """
                scipy.cluster.hierarchy.linkage scipy.stats.bootstrap scipy.stats.binomtest
            """,
        },
    ),
)


def mapping(folder: Path) -> dict[str, tuple[str, str]]:
    """Write all inventories and return the setting of intersphinx."""
    return {each.project: (each.url, str(each.write(folder))) for each in INVENTORIES}
