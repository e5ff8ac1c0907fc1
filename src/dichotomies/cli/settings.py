"""`Settings`: the parameters of a classifier as they are written on the command line and in TOML files."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from importlib import import_module
from importlib.util import find_spec
from inspect import getdoc
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dichotomies._common.registry import did_you_mean
from dichotomies.training.parameters import EnsembleParameters, TreeParameters, declarations

if TYPE_CHECKING:
    from dichotomies.tables import Table
    from dichotomies.training.parameters import Declaration


#: Largest array that sparse rows are turned into for references that need one.
MOST_BYTES = 2**30

#: Classes above which references are left out that fit a tree for every class in every iteration.
MANY_CLASSES = 100


def references(wanted: str, n_classes: int) -> dict[str, Callable[..., Any]]:
    """Return the makers of classifiers by name, called with the training rows and `n_jobs`."""
    if wanted == "none":
        return {}
    found: dict[str, Callable[..., Any]] = {
        "flat logistic regression": _logistic,
        "flat naive Bayes": _naive_bayes,
    }
    if wanted == "all" or n_classes <= MANY_CLASSES:
        found["flat HistGradientBoosting"] = _boosting
        if find_spec("lightgbm") is not None:
            found["flat LightGBM"] = _lightgbm
    return found


def _logistic(table: "Table", n_jobs: int | None) -> Any:  # noqa: ARG001 - of other references
    from sklearn.linear_model import LogisticRegression

    return _calibrated(LogisticRegression(max_iter=1000))


def _naive_bayes(table: "Table", n_jobs: int | None) -> Any:  # noqa: ARG001
    from sklearn.naive_bayes import GaussianNB, MultinomialNB

    if not is_sparse(table):
        return _calibrated(GaussianNB())
    counts = MultinomialNB() if not table.date and _least(table.X) >= 0 else _of_dense(GaussianNB())
    return _calibrated(counts)


def _boosting(table: "Table", n_jobs: int | None) -> Any:  # noqa: ARG001
    from sklearn.ensemble import HistGradientBoostingClassifier

    boosting = HistGradientBoostingClassifier(random_state=0)
    return _calibrated(_of_dense(boosting) if is_sparse(table) else boosting)


def _lightgbm(table: "Table", n_jobs: int | None) -> Any:  # noqa: ARG001
    lightgbm = import_module("lightgbm")
    return _calibrated(lightgbm.LGBMClassifier(verbose=-1, random_state=0, n_jobs=n_jobs))


def _of_dense(estimator: Any) -> Any:
    """Pipeline for an estimator that takes no sparse rows."""
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer

    return make_pipeline(FunctionTransformer(as_dense, accept_sparse=True), estimator)


def as_dense(X: Any) -> Any:
    """Convert sparse rows to an array; raise if that is too large."""
    size = 8 * X.shape[0] * X.shape[1]
    if size > MOST_BYTES:
        from dichotomies._common.chunks import written  # takes long to import

        raise ValueError(f"It takes no sparse rows, and these would be {written(size)} as an array.")
    return X.toarray() if hasattr(X, "toarray") else X


def _least(X: Any) -> float:
    """The least number in a table, 0 without any."""
    values = X.data if hasattr(X, "indptr") else X
    return float(values.min(initial=0.0, where=~np.isnan(values)))


def _calibrated(estimator: Any) -> Any:
    """The calibrator that is chosen for these probabilities, as it is for nested dichotomies, out of fold."""
    from dichotomies import CalibratedClassifier

    return CalibratedClassifier(estimator, "auto")


def is_sparse(table: "Table") -> bool:
    """Return True for tables whose features will be sparse: svmlight files and texts."""
    texts = set(table.texts) - {*table.categorical, *table.date}
    return bool(texts) or hasattr(table.X, "indptr")


NONE = "none"
#: The base learner that the classifier chooses, and the naive Bayes classifier that depends on the data.
AUTO, _NAIVE_BAYES = "auto", "naive-bayes"

#: Parameters that have an option, by its name.
OPTIONS = {each.option.name: each for each in declarations(EnsembleParameters) if each.option is not None}
#: Options of parameters that only an ensemble has.
OF_ENSEMBLES = OPTIONS.keys() - {each.option.name for each in declarations(TreeParameters) if each.option}


class SettingsError(ValueError):
    """A setting that does not exist, or cannot have this value; the message is a sentence."""


@dataclass(frozen=True)
class Settings:
    """Configuration of a classifier."""

    estimator: str = AUTO
    param: dict[str, Any] = field(default_factory=dict)
    seed: int = 0
    trees: int = 1
    values: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def given(
        cls, estimator: str, param: list[str] | None, seed: int, trees: int, values: dict[str, Any]
    ) -> "Settings":
        """Read the options of a command; None is the value of those that were not given."""
        known = {name: value for name, value in values.items() if value is not None}
        return cls(estimator, pairs_of(param or []), seed, trees, known).checked()

    def checked(self) -> "Settings":
        """Return itself; raise if a name in it does not exist, or an ensemble's setting is without one."""
        check_name("estimator", self.estimator, [*summaries()])
        for name in self.param:
            check_name(f"{self.base_learner} parameter", name, _parameters(self.base_learner))
        for name, value in self.values.items():
            _check_choice(OPTIONS[name], value)
        if self.trees < 1:
            raise SettingsError(f"There must be one tree or more, got trees={self.trees}.")
        of_ensembles = [name for name in self.values if name in OF_ENSEMBLES]
        if self.trees == 1 and of_ensembles:
            raise SettingsError(
                f"Only an ensemble of several trees has the setting {of_ensembles[0]!r}; say "
                "how many (--trees 10, or trees=10 in a configuration), or leave it out."
            )
        return self

    @property
    def base_learner(self) -> str:
        """Name of the base learner, with parameters in view."""
        return "logistic" if self.param and self.estimator == AUTO else self.estimator

    @property
    def tree_file(self) -> Path | None:
        """The file with the tree, if the structure is one."""
        structure = str(self.values.get("structure", ""))
        return Path(structure) if structure.endswith(".json") else None

    def estimator_for(self, *, sparse: bool) -> Any:
        """Return the base learner; None where it is to be chosen."""
        return estimator_named(self.base_learner, self.param, sparse=sparse)

    def classifier(self, table: "Table", *, n_jobs: int | None = None, verbose: bool = False) -> Any:
        """Return the unfitted classifier for a table."""
        from dichotomies import NestedDichotomyClassifier, NestedDichotomyEnsemble

        values = {OPTIONS[name].name: _READERS.get(name, _or_none)(v) for name, v in self.values.items()}
        if "structure" in values:
            values["structure"] = _structure(values["structure"], text_labels=table.labels.dtype.kind == "U")
        values["estimator"] = self.estimator_for(sparse=is_sparse(table))
        values |= {"n_jobs": n_jobs, "random_state": self.seed, "verbose": verbose}
        if self.trees == 1:
            return NestedDichotomyClassifier(**values)
        return NestedDichotomyEnsemble(n_estimators=self.trees, **values)

    def changed(self, **changes: Any) -> "Settings":
        """Return a copy with other values; dashes in names are underscores, ``param.C`` is parameter C."""
        own = {each.name: each.type for each in fields(self) if each.name not in ("param", "values")}
        param, values, others = dict(self.param), dict(self.values), {}
        for name, value in changes.items():
            first, dot, rest = name.replace("-", "_").partition(".")
            if first == "param" and (dot or isinstance(value, dict)):
                param |= {rest: value} if dot else value
            elif first in own and not dot:
                others[first] = _of_kind(name, value, own[first])
            elif first in OPTIONS and not dot:
                values[first] = _of_kind(name, value, _kind(OPTIONS[first]))
            else:
                names = ["estimator", "param", *OPTIONS, "seed", "trees"]
                raise SettingsError(
                    f"There is no setting {name!r}; choose from {', '.join(names)} (param.C is the parameter "
                    f"C of the estimator).{did_you_mean(name, names)}"
                )
        return replace(self, param=param, values=values, **others)


def _kind(declared: "Declaration") -> Any:
    """Type of a setting's value; None where it is written in several ways."""
    assert declared.option is not None
    return None if declared.option.name in _READERS or declared.option.kind is float else declared.option.kind


def _check_choice(declared: "Declaration", value: Any) -> None:
    option = declared.option
    assert option is not None
    if not option.names or str(value).endswith(".json"):
        return
    module, _, attribute = option.names.partition(":")
    registry = getattr(import_module(module), attribute)
    names = [*(registry.names() if hasattr(registry, "names") else registry)]
    if declared.kind.endswith("or None"):
        names = [NONE, *names]
    elif declared.default not in names:
        names = [declared.default, *names]
    check_name(declared.name.replace("_", " "), value, names)


def summaries() -> dict[str, str]:
    """Return one line about each base learner, by name."""
    chosen = {AUTO: "Logistic regression, naive Bayes or boosted trees, by out-of-fold NLL on a sample"}
    lines = {name: f"{cls.__name__}: {_first_line(cls)}" for name, cls in _classes(sparse=False).items()}
    return chosen | lines | {_NAIVE_BAYES: "MultinomialNB for texts and sparse data, GaussianNB for others"}


def estimator_named(name: str, params: dict[str, Any], *, sparse: bool = False) -> Any:
    """Create a base learner with the given parameters; None where it is to be chosen."""
    return None if name == AUTO else _classes(sparse=sparse)[name]().set_params(**params)


def _classes(*, sparse: bool) -> dict[str, Any]:
    from dichotomies.learners import LEARNERS

    named = {name: cls for each in LEARNERS.names() for name, cls in LEARNERS.get(each).trains.items()}
    return named | {_NAIVE_BAYES: named["multinomial-nb" if sparse else "gaussian-nb"]}


def _first_line(cls: type) -> str:
    return (getdoc(cls) or "").partition("\n")[0]


def _parameters(estimator: str) -> list[str]:
    """Return the names of a base learner's parameters, for dense and for sparse data."""
    learners = [estimator_named(estimator, {}, sparse=sparse) for sparse in (False, True)]
    return sorted({name for learner in learners for name in learner.get_params()})


def check_name(what: str, name: str, names: list[str]) -> None:
    """Raise if a name is not among those there are."""
    if name not in names:
        raise SettingsError(
            f"There is no {what} {name!r}; choose from {', '.join(names)}.{did_you_mean(name, names)}"
        )


def value_of(text: str) -> Any:
    """Parse a value: a number, true, false, none, a JSON list, or else text."""
    if text.lower() in ("true", "false", NONE):
        return {"true": True, "false": False, NONE: None}[text.lower()]
    try:
        return json.loads(text)
    except ValueError:
        return text


def pairs_of(texts: list[str]) -> dict[str, Any]:
    """Parse texts like ``C=10`` into values by name."""
    pairs = {}
    for text in texts:
        name, sign, value = text.partition("=")
        if not sign or not name:
            raise SettingsError(f"{text!r} should be NAME=VALUE, such as C=10.")
        pairs[name] = value_of(value)
    return pairs


def _of_kind(name: str, value: Any, kind: Any) -> Any:
    """Return the value; raise if it is of another kind. The name "none" may have been parsed as None."""
    if kind is str and value is None:
        return NONE
    if kind in (str, bool, int) and type(value) is not kind:
        wanted = {str: "a name", bool: "true or false", int: "a whole number"}[kind]
        raise SettingsError(f"The setting {name!r} must be {wanted}, got {value!r}.")
    return value


def _or_none(name: Any) -> Any:
    return None if isinstance(name, str) and name == NONE else name


def _structure(given: Any, *, text_labels: bool) -> Any:
    """Return the name of a structure, or the tree in a file; 7 in it is the label "7" if labels are text."""
    if not given.endswith(".json"):
        return given
    number = str if text_labels else None
    try:
        return json.loads(Path(given).read_text(encoding="utf-8"), parse_int=number, parse_float=number)
    except FileNotFoundError:
        raise SettingsError(f"There is no file {given} with a tree.") from None
    except ValueError as error:
        raise SettingsError(f"{given} is not JSON ({error}).") from error


def _nodes(given: Any) -> Any:
    if not isinstance(given, str) or given == "all":
        return given
    try:
        return [int(depth) for depth in given.split(",")] if "." not in given else float(given)
    except ValueError:
        raise SettingsError(
            f"The nodes to calibrate must be all, depths as in 0,1,2 or a share such as 0.5, got {given!r}."
        ) from None


def _number_or_text(given: Any) -> Any:
    return value_of(given) if isinstance(given, str) else given


#: Readers of values that are written in several ways, by option.
_READERS: dict[str, Callable[[Any], Any]] = {
    "calibrated_nodes": _nodes,
    "calibration_size": _number_or_text,
    "keep_rows": _number_or_text,
}
