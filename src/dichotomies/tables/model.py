"""`TableModel`: a classifier together with the columns it reads."""

from __future__ import annotations

import warnings
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_array, hstack
from sklearn.utils import get_tags

from dichotomies.persistence import savable, save
from dichotomies.persistence.checks import Each, Optional, Part, Size, Such
from dichotomies.tables.errors import TableFileError
from dichotomies.tables.table import Columns
from dichotomies.tables.text import TextFeatures

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator

    from dichotomies._common.typing import FloatArray, IntArray, LabelArray, Matrix
    from dichotomies.tables.table import Table


@savable(
    "table-model",
    classifier=Such(lambda it: hasattr(it, "classes_"), "is fitted"),
    text=Each(Part(TextFeatures), "n_texts"),
    n_numeric=Size("n_numeric", 0),
    features=Optional(Each(str, "n_numeric")),
    label=Optional(str),
    first_id=Such((None, 0, 1).__contains__, "is 0 or 1"),
)
@dataclass(frozen=True)
class TableModel:
    """A fitted classifier together with the columns and text features of its table.

    Attributes
    ----------
    classifier : fitted classifier
        Its input is the numeric features, followed by those of the texts.
    features : tuple of str or None
        The numeric columns; None if the training file had no column names.
    text : tuple of TextFeatures
        The text columns.
    label : str or None
        The label column of the training file.
    first_id : int or None
        Index of the first feature in svmlight files, if trained on one.

    Examples
    --------
    >>> import numpy as np
    >>> from dichotomies import NestedDichotomyClassifier
    >>> from dichotomies.tables import Table, TableModel
    >>> texts = {"title": ["data engineer", "nurse", "head nurse", "software engineer"] * 10}
    >>> table = Table(np.empty((40, 0)), np.array(["it", "care", "care", "it"] * 10), names=(), texts=texts)
    >>> model = TableModel.fit(NestedDichotomyClassifier(random_state=0), table)
    >>> model.classes_.tolist()
    ['care', 'it']
    >>> model.predict_log_proba(table.rows(np.array([1]))).argmax()
    np.int64(0)
    """

    classifier: Any
    features: tuple[str, ...] | None = None
    text: tuple[TextFeatures, ...] = ()
    label: str | None = None
    first_id: int | None = None

    @classmethod
    def fit(
        cls, classifier: Any, table: Table, *, label: str | None = None, ngrams: str = "word"
    ) -> TableModel:
        """Extract the terms of the texts and fit the classifier.

        Parameters
        ----------
        classifier : classifier
            Fitted in place.
        table : Table
            Rows with labels.
        label : str, optional
            Column of the labels.
        ngrams : {"word", "char"}, default="word"
            Kind of the terms of texts.
        """
        text = tuple(TextFeatures.fit(column, texts, ngrams) for column, texts in table.texts.items())
        X, y = _matrix(table, text), table.labels
        classifier.fit(X, y) if table.weight is None else classifier.fit(X, y, sample_weight=table.weight)
        return cls(classifier, table.names, text, label, table.first_id)

    @classmethod
    def of(cls, fitted: Any) -> TableModel:
        """Wrap a fitted classifier; it reads the columns it was fitted with, if their names are known."""
        if isinstance(fitted, cls):
            return fitted
        if not (hasattr(fitted, "classes_") and hasattr(fitted, "predict_log_proba")):
            raise TypeError(f"A {type(fitted).__name__} is not a fitted classifier with probabilities.")
        names = _known_of(fitted, "feature_names_in_")
        return cls(fitted, None if names is None else tuple(map(str, names)))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file without pickle; `dichotomies.load` reads it."""
        save(self, path)

    def saved_parts(self) -> dict[str, Any]:
        """Return the attributes that are saved."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @classmethod
    def from_saved_parts(cls, **parts: Any) -> TableModel:
        """Restore a model from saved parts."""
        return cls(**parts)

    @property
    def classes_(self) -> LabelArray:
        """The labels, in the order of the probability columns."""
        classes: LabelArray = self.classifier.classes_
        return classes

    @property
    def n_features(self) -> int:
        """Number of features of the classifier."""
        return int(_known_of(self.classifier, "n_features_in_"))

    @property
    def n_numeric(self) -> int:
        """Number of numeric features."""
        return self.n_features - sum(len(each.terms) for each in self.text)

    def columns(
        self,
        *,
        label: str | None = None,
        weight: str | None = None,
        id: str | None = None,  # noqa: A002
    ) -> Columns:
        """Return the columns to read from a file."""
        return Columns(
            label=label,
            features=self.features,
            text=tuple(each.column for each in self.text),
            weight=weight,
            id=id,
            n_features=self.n_numeric,
            first_id=self.first_id,
            allow_missing=allows_missing(self.classifier),
        )

    def matrix(self, table: Table) -> Matrix:
        """Return the feature matrix of some rows."""
        if table.names is None and self.text:
            raise TableFileError("The model reads texts, which only CSV and Parquet files have.")
        if table.names is not None and self.features is None:
            raise TableFileError(
                "The model was fitted to features without names; give it an svmlight or NPZ file."
            )
        return _matrix(table, self.text)

    def predict_log_proba(self, table: Table) -> FloatArray:
        """Return the class log-probabilities, shape (n_rows, n_classes)."""
        with self.columns_in_order():
            log_proba: FloatArray = self.classifier.predict_log_proba(self.matrix(table))
        return log_proba

    def predict_top_k(self, table: Table, k: int) -> tuple[LabelArray, FloatArray]:
        """Return the k most probable labels of each row and their probabilities, shape (n_rows, k)."""
        if hasattr(self.classifier, "predict_top_k"):
            with self.columns_in_order():
                best: tuple[LabelArray, FloatArray] = self.classifier.predict_top_k(self.matrix(table), k)
            return best
        log_proba = self.predict_log_proba(table)
        order = np.argsort(-log_proba, axis=1, kind="stable")[:, :k]
        return self.classes_[order], np.exp(np.take_along_axis(log_proba, order, axis=1))

    def answer(self, table: Table, method: str, *arguments: Any, **named: Any) -> Any:
        """Call a method of the classifier with the feature matrix of some rows."""
        if not hasattr(self.classifier, method):
            raise TypeError(f"A {type(self.classifier).__name__} has no {method}; a nested dichotomy has.")
        with self.columns_in_order():
            return getattr(self.classifier, method)(self.matrix(table), *arguments, **named)

    @staticmethod
    @contextmanager
    def columns_in_order() -> Iterator[None]:
        """Allow arrays for a classifier fitted to a data frame, since columns were matched by name."""
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "X does not have valid feature names")
            yield

    def codes(self, labels: LabelArray) -> IntArray:
        """Return the class code of each label, -1 for unknown labels.

        Labels are compared as text, because a CSV file does not distinguish 7 from "7".
        """
        place = {str(label): code for code, label in enumerate(self.classes_.tolist())}
        different, which = np.unique(labels, return_inverse=True)
        found = np.array([place.get(str(label), -1) for label in different.tolist()], dtype=np.intp)
        codes: IntArray = found[which]
        return codes


def _known_of(classifier: Any, attribute: str) -> Any:
    """Return an attribute of a classifier, or of the one it wraps."""
    while not hasattr(classifier, attribute) and hasattr(classifier, "estimator"):
        classifier = classifier.estimator
    return getattr(classifier, attribute, None)


def allows_missing(classifier: Any) -> bool:
    """Return True if a classifier accepts missing features (NaN)."""
    return bool(get_tags(classifier).input_tags.allow_nan)


def _matrix(table: Table, text: tuple[TextFeatures, ...]) -> Matrix:
    if not text:
        return table.X
    parts = [each.matrix(table.texts[each.column]) for each in text]
    if table.X.shape[1]:
        parts.insert(0, csr_array(table.X))
    return hstack(parts, format="csr")
