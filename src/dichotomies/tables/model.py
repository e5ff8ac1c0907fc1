"""`TableModel`: a classifier together with the columns it reads."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from scipy.sparse import csr_array, hstack
from sklearn.utils import get_tags

from dichotomies._common.typing import FloatArray, IntArray, LabelArray, Matrix
from dichotomies.persistence import savable, save
from dichotomies.persistence.checks import Each, Optional, Part, Size, Such, expect
from dichotomies.tables.dates import DateFeatures
from dichotomies.tables.encoders import CategoryFeatures, NumberFeatures, TextFeatures
from dichotomies.tables.errors import TableFileError
from dichotomies.tables.table import Columns, Table

Encoder = TextFeatures | CategoryFeatures | DateFeatures
ENCODERS = (TextFeatures, CategoryFeatures, DateFeatures)
#: Features of encoded columns, up to which they are dense.
_FEW_FEATURES = 256


@savable(
    "table-model",
    classifier=Such(lambda it: hasattr(it, "classes_"), "is fitted"),
    encoders=Each(Such(lambda it: isinstance(it, ENCODERS), "reads a column"), "n_encoders"),
    numbers=Optional(Part(NumberFeatures)),
    is_dense=bool,
    n_numeric=Size("n_numeric", 0),
    features=Optional(Each(str, "n_numeric")),
    label=Optional(str),
    first_id=Such((None, 0, 1).__contains__, "is 0 or 1"),
)
@dataclass(frozen=True)
class TableModel:
    """A fitted classifier together with the columns of its table, and how they become features.

    Attributes
    ----------
    classifier : fitted classifier
        Its input is the features of the numeric columns, followed by those of the others.
    features : tuple of str or None
        The numeric columns; None if the training file had no column names.
    encoders : tuple of TextFeatures, CategoryFeatures and DateFeatures
        The other columns.
    label : str or None
        The label column of the training file.
    first_id : int or None
        Index of the first feature in svmlight files, if trained on one.
    numbers : NumberFeatures or None
        Values for gaps in numeric columns, and their scales; None if columns are used unchanged.
    is_dense : bool
        Make the features of encoded columns a dense matrix.

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
    encoders: tuple[Encoder, ...] = ()
    label: str | None = None
    first_id: int | None = None
    numbers: NumberFeatures | None = None
    is_dense: bool = False

    @classmethod
    def fit(
        cls,
        classifier: Any,
        table: Table,
        *,
        label: str | None = None,
        ngrams: str = "word",
        scaled: bool | None = None,
    ) -> TableModel:
        """Find out how columns become features, and fit the classifier.

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
        scaled : bool, optional
            Divide columns of numbers by their standard deviations; by default, if there are other columns.
        """
        model = cls.prepared(classifier, table, label=label, ngrams=ngrams, scaled=scaled)
        X, y = model.matrix(table), table.labels
        classifier.fit(X, y) if table.weight is None else classifier.fit(X, y, sample_weight=table.weight)
        return model

    @classmethod
    def prepared(
        cls, classifier: Any, table: Table, *, label: str | None, ngrams: str, scaled: bool | None
    ) -> TableModel:
        """Find out how columns become features, for a classifier that is still to be fitted; see `fit`."""
        encoders = tuple(_encoder(table, column, ngrams) for column in table.texts)
        named = table.names is not None and len(table.names) > 0
        scaled = bool(encoders) if scaled is None else scaled
        numbers = NumberFeatures.fit(table.X, table.weight, scaled=scaled) if named else None
        is_dense = _is_dense(encoders, classifier)
        return cls(classifier, table.names, encoders, label, table.first_id, numbers, is_dense)

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
        """Restore a model from saved parts; in early files, texts were the only encoded columns."""
        if "text" in parts:
            parts["encoders"] = parts.pop("text")
        return cls(**parts)

    def check_relations(self, names: dict[str, Any]) -> None:
        """Raise unless the features are as many as the classifier's; see `dichotomies.persistence.checks`."""
        if self.numbers is not None:
            expect(len(self.numbers.fill) == names["n_numeric"], "every numeric column has a scale")

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
        if self.numbers is not None:
            return len(self.numbers.fill)
        return self.n_features - sum(each.n_features for each in self.encoders)

    @property
    def text(self) -> tuple[TextFeatures, ...]:
        """The columns of free text."""
        return tuple(each for each in self.encoders if isinstance(each, TextFeatures))

    def columns(
        self,
        *,
        label: str | None = None,
        weight: str | None = None,
        id: str | None = None,  # noqa: A002
        first_id: int | None = None,
    ) -> Columns:
        """Return the columns to read from a file."""
        return Columns(
            label=label,
            features=self.features,
            text=tuple(each.column for each in self.encoders),
            weight=weight,
            id=id,
            n_features=self.n_numeric,
            first_id=self.first_id if first_id is None else first_id,
            allow_missing=self.numbers is not None or allows_missing(self.classifier),
            of_a_model=True,
        )

    def matrix(self, table: Table) -> Matrix:
        """Return the feature matrix of some rows."""
        if table.names is None and self.encoders:
            raise TableFileError("The model reads texts, which only CSV and Parquet files have.")
        if table.names is not None and self.features is None:
            raise TableFileError(
                "The model was fitted to features without names; give it an svmlight or NPZ file."
            )
        if not self.encoders:
            return table.X if self.numbers is None else self.numbers.matrix(table.X)
        return self._dense(table) if self.is_dense else self._sparse(table)

    def _sparse(self, table: Table) -> Matrix:
        parts = [each.matrix(table.texts[each.column]) for each in self.encoders]
        if table.X.shape[1]:
            X = table.X if self.numbers is None else self.numbers.matrix(table.X)
            parts.insert(0, csr_array(X))
        return hstack(parts, format="csr")

    def _dense(self, table: Table) -> FloatArray:
        n_numbers = 0 if self.numbers is None else self.numbers.n_features
        X = np.empty((len(table), n_numbers + sum(each.n_features for each in self.encoders)))
        if self.numbers is not None:
            self.numbers.matrix(table.X, out=X[:, :n_numbers])
        end = n_numbers
        for each in self.encoders:
            begin, end = end, end + each.n_features
            X[:, begin:end] = each.matrix(table.texts[each.column]).toarray()
        return X

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
        classifier = getattr(classifier, "fitted_estimator", classifier.estimator)
    return getattr(classifier, attribute, None)


def allows_missing(classifier: Any) -> bool:
    """Return True if a classifier accepts missing features (NaN)."""
    return bool(get_tags(classifier).input_tags.allow_nan)


def _encoder(table: Table, column: str, ngrams: str) -> Encoder:
    if column in table.categorical:
        return CategoryFeatures.fit(column, table.texts[column])
    if column in table.date:
        return DateFeatures.fit(column, table.texts[column])
    return TextFeatures.fit(column, table.texts[column], ngrams)


def _is_dense(encoders: tuple[Encoder, ...], classifier: Any) -> bool:
    """Return True without texts if there are few features, or if the classifier takes nothing else."""
    if any(isinstance(each, TextFeatures) for each in encoders):
        return False
    is_narrow = sum(each.n_features for each in encoders) <= _FEW_FEATURES
    return is_narrow or not get_tags(classifier).input_tags.sparse
