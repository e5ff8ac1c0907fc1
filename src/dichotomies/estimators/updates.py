"""Models that change after they were fitted: more rows, more classes, fewer classes."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from dichotomies._common.cluster import computed
from dichotomies._common.validation import is_text, plain_labels, row_weights
from dichotomies.estimators.fitting import Fitting
from dichotomies.rows import Rows
from dichotomies.training.kept_rows import Drift

# what updates need is imported where it is used: it takes long, and few programs ask for it

if TYPE_CHECKING:
    import numpy.typing as npt

    from dichotomies._common.typing import Matrix
    from dichotomies.training.partial_fitting import Learned
    from dichotomies.training.plan import Plan
    from dichotomies.training.train import Trained
    from dichotomies.training.updating import Updated


def _is_naive_bayes(self: Any) -> bool:
    """Raise for other base learners; `hasattr(clf, "partial_fit")` is False then."""
    from dichotomies.learners import LEARNERS

    if not isinstance(self.base_estimator, tuple(LEARNERS.get("naive-bayes").trains.values())):
        raise AttributeError(
            "partial_fit needs statistics that can be added, which only naive Bayes has (GaussianNB, "
            "MultinomialNB, ComplementNB, BernoulliNB); for others, fit with keep_rows and call update."
        )
    return True


class Updates(Fitting):
    """Mixin of the estimators: methods that change a fitted model without fitting it anew.

    Attributes
    ----------
    kept_rows_ : KeptRows
        Rows kept for updates; absent without `keep_rows`.
    statistics_ : ClassStatistics
        Statistics of the classes; only after `partial_fit`.
    drift_ : Drift
        Changes since the fit.
    """

    def update(self, X: Matrix, y: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None) -> Self:
        """Add rows, of known classes and of new ones; only nodes above these classes are trained.

        The classifier must have been fitted with `keep_rows`: a node is trained on the rows of all classes
        below it. A new class becomes the sibling of the class that it is most like, by the means of both and
        by the model's probabilities, where the tree is not too deep. All other nodes stay as they are, bit
        for bit. Calibrators of the nodes trained are fitted on folds, as `fit` does; the external calibrator
        is fitted again, to out-of-fold scores that the model keeps. `drift_` says how much has changed since
        the fit.

        Parameters
        ----------
        X : array, CSR matrix or data frame of shape (n_rows, n_features)
            New rows only.
        y : array of shape (n_rows,)
            Their labels, known or new.
        sample_weight : array of shape (n_rows,), optional
            Their weights.

        Returns
        -------
        self
        """
        from dichotomies.training.updating import Update

        if hasattr(self, "statistics_"):
            self.partial_fit(X, y, sample_weight=sample_weight)
            return self
        plan, kept = self._plan_of_update(), self.kept_rows_
        rows = self._new_rows(X, y, sample_weight)
        known = np.flatnonzero(np.isin(rows.classes, self.classes_)[rows.codes])
        codes, nll = np.searchsorted(self.classes_, rows.classes[rows.codes[known]]), None
        if len(known):
            log_proba = self.model_.predict_log_proba(rows.features_of(known), self.n_jobs)
            nll = float(-log_proba[np.arange(len(known)), codes].mean())
        with self._whole():
            context = self._context()
            updated = Update.adding(plan, self.model_, kept, rows, context).run(context)
            self._take(updated, n_rows=len(rows), n_added=rows.n_classes - len(self.classes_), before=nll)
        return self

    def forget_class(self, labels: Any) -> Self:
        """Remove classes.

        With rows that were kept, those of the classes are dropped and the nodes above them are trained again;
        the sibling of a class takes its parent's place. Without any, the probabilities are those of the
        other classes, renormalised: exactly those given that it is none of these. An ensemble is then a
        single tree with these probabilities.

        Parameters
        ----------
        labels : label or array of labels
            At least two classes must be left.

        Returns
        -------
        self
        """
        from dichotomies.inference.fitted import conditioned
        from dichotomies.training.partial_fitting import Learned, unlearn
        from dichotomies.training.updating import Update

        check_is_fitted(self)
        gone = np.unique(np.atleast_1d(np.asarray(labels)))
        unknown = gone[~np.isin(gone, self.classes_)]
        if len(unknown):
            raise ValueError(f"{unknown.tolist()[0]!r} is not a class of this model.")
        if len(self.classes_) - len(gone) < 2:
            raise ValueError(
                f"At least two classes must be left, but {len(gone)} of {len(self.classes_)} are to go."
            )
        with self._whole():
            if hasattr(self, "statistics_"):
                before = Learned(self.model_, self.statistics_, self.kept_rows_)
                trained, self.statistics_ = unlearn(self._plan_as_fitted(), before, gone, self._context())
                self._take_batch(trained, before, 0)
            elif hasattr(self, "kept_rows_"):
                given = self._plan_of_update(), self.model_, self.kept_rows_, gone, self.n_features_in_
                self._take(Update.forgetting(*given).run(self._context()), n_forgotten=len(gone))
            else:
                self._forget_rows_of_sets()
                model = conditioned(self.model_, gone)
                self.drift_ = self._drifted(np.full(model.forest.n_different, -1), n_forgotten=len(gone))
                self.model_ = model
                self._count(np.zeros(model.n_classes, dtype=np.intp))
        return self

    @available_if(_is_naive_bayes)  # type: ignore[untyped-decorator]
    def partial_fit(
        self,
        X: Matrix,
        y: npt.ArrayLike,
        classes: npt.ArrayLike | None = None,  # noqa: ARG002 - scikit-learn's convention
        sample_weight: npt.ArrayLike | None = None,
    ) -> Self:
        """Add a batch of rows to a naive Bayes model, or begin one.

        The nodes are those of a fit on all rows so far with the same tree, because statistics of the classes
        are kept and added. The trees are grown on the first batch, which should have rows of most classes; a
        new class is placed as by `update`. Calibrators are chosen and fitted on a sample of the rows so far,
        `keep_rows` of them, 10,000 by default.

        Parameters
        ----------
        X : array, CSR matrix or data frame of shape (n_rows, n_features)
        y : array of shape (n_rows,)
            Labels; the first batch must have two different ones.
        classes : array, optional
            Not needed: new classes may come with any batch.
        sample_weight : array of shape (n_rows,), optional

        Returns
        -------
        self
        """
        from dichotomies.training.partial_fitting import Learned, learn

        with self._whole():
            before = None
            if hasattr(self, "statistics_"):
                before = Learned(self.model_, self.statistics_, self.kept_rows_)
                plan, rows = self._plan_as_fitted(), self._new_rows(X, y, sample_weight)
            else:
                if hasattr(self, "model_"):
                    warnings.warn(
                        "This model was fitted without keeping statistics that a batch could be added to: "
                        "partial_fit begins anew. To add rows, begin with partial_fit, or fit with keep_rows "
                        "and call update.",
                        stacklevel=2,
                    )
                X, y, sample_weight = computed(X, y, sample_weight)
                plan, X = self._planned(X)
                rows = self._validated(X, y, sample_weight)
                self._forget_fit(learner=False)
            trained, self.statistics_ = learn(plan, before, rows, self._context())
            self._take_batch(trained, before, len(rows))
            self.learner_ = plan.learner.description
        return self

    def _take_batch(self, trained: Trained, before: Learned | None, n_rows: int) -> None:
        """Replace what was fitted by the model of one more batch."""
        drift = None
        if before is not None:
            n_more = trained.model.n_classes - before.model.n_classes
            counts = {"n_rows": n_rows, "n_added": max(0, n_more), "n_forgotten": max(0, -n_more)}
            drift = self._drifted(np.full(trained.model.forest.n_different, -1), **counts)
        self._forget_rows_of_sets()
        self._take_trained(trained, n_rows)
        self.drift_ = drift or self.drift_
        self.classes_, self.structure_ = self.model_.tree.classes, None
        self.class_count_ = self.statistics_.class_size

    def _plan_of_update(self) -> Plan:
        check_is_fitted(self)
        if not hasattr(self, "kept_rows_"):
            raise ValueError(
                "Nodes are trained on the rows of all classes below them, but this classifier has kept none: "
                'fit it with keep_rows="all", or with the number of rows to keep.'
            )
        from dichotomies.training.updating import settled

        plan: Plan = settled(self._plan_as_fitted(), self.calibration_)
        return plan

    def _new_rows(self, X: Matrix, y: Any, sample_weight: Any) -> Rows:
        """Check new rows; their classes are those of the model and new ones."""
        X, y, sample_weight = computed(X, y, sample_weight)
        X, labels = self.validated_rows(X), np.asarray(plain_labels(y))
        if labels.shape != (X.shape[0],):
            raise ValueError(f"X has {X.shape[0]} rows, but y has shape {labels.shape}.")
        if is_text(labels) != is_text(self.classes_):
            raise TypeError(
                f"Classes of this model are like {self.classes_.tolist()[0]!r}, but y has labels like "
                f"{labels.tolist()[0]!r}."
            )
        if is_text(labels):  # strings of numpy, or objects, as the classes are
            labels = labels.astype(object if self.classes_.dtype.hasobject else str)
        classes = np.union1d(self.classes_, labels)
        weight = None if sample_weight is None else row_weights(sample_weight, X.shape[0])
        weight = weight if self._nodes_get_weight(weight) else None
        return Rows(X, np.searchsorted(classes, labels), classes, weight).weighing()

    def _take(self, updated: Updated, *, before: float | None = None, **counts: int) -> None:
        """Replace what was fitted."""
        self._forget_rows_of_sets()
        drift = self._drifted(updated.source, **counts)
        self.drift_ = replace(drift, nll_before=before, nll_after=updated.nll)
        self.model_, self.kept_rows_ = updated.model, updated.kept
        self._count(updated.added)
        if updated.conformal is not None:
            self.conformal_ = updated.conformal

    def _count(self, added: Any) -> None:
        """Set the classes to those of the model, and add to the number of rows of each."""
        classes = self.model_.tree.classes
        if hasattr(self, "class_count_"):
            known = np.isin(self.classes_, classes)
            added = added.copy()
            added[np.searchsorted(classes, self.classes_[known])] += self.class_count_[known]
            self.class_count_ = added
        self.classes_ = classes

    def _forget_rows_of_sets(self) -> None:
        """Drop the evaluated rows that prediction sets are computed from: they are of the model before."""
        self.__dict__.pop("conformal_", None)

    def _drifted(self, source: Any, *, n_rows: int = 0, n_added: int = 0, n_forgotten: int = 0) -> Drift:
        before: Drift = self.drift_
        is_old = source >= 0
        is_retrained = np.ones(len(source), dtype=bool)
        is_retrained[is_old] = before.is_retrained[source[is_old]]
        return Drift(
            before.n_updates + 1,
            before.n_rows_fitted,
            before.n_rows_added + n_rows,
            before.n_classes_added + n_added,
            before.n_classes_forgotten + n_forgotten,
            is_retrained,
        )
