"""`Settings`: the parameters of a classifier on the command line and in TOML files."""

import json
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from dichotomies._common.suggestions import did_you_mean
from dichotomies.cli.estimators import ESTIMATORS, estimator_named

if TYPE_CHECKING:
    from dichotomies.tables import Table

NONE = "none"


class SettingsError(ValueError):
    """An unknown setting, or an invalid value; the message is a sentence."""


@dataclass(frozen=True)
class Settings:
    """Settings of a classifier; names and defaults are those of the estimators, shortened.

    Attributes
    ----------
    param : dict
        Parameters of the base learner.
    structure : str
        The name of a structure, or a .json file with nested lists of labels.
    internal, external : str
        The names of calibrators; "none" for none.
    calibrated_nodes : str, float or list of int
        "all", a share of the nodes, or depths, as in "0,1,2".
    trees : int
        1 for a `NestedDichotomyClassifier`, more for a `NestedDichotomyEnsemble` of that size.
    max_features, bootstrap, pooling, member_calibration : float, bool, str, str
        Parameters of ensembles only; None (False) for the ensemble's own default.
    """

    estimator: str = "logistic"
    param: dict[str, Any] = field(default_factory=dict)
    structure: str = "auto"
    internal: str = NONE
    external: str = "vector"
    cv: int = 3
    ensemble: bool = False
    calibrated_nodes: Any = "all"
    calibration_size: Any = 0.1
    learner: str = "auto"
    seed: int = 0
    trees: int = 1
    max_features: Any = None
    bootstrap: bool = False
    pooling: str | None = None
    member_calibration: str | None = None

    def checked(self) -> "Settings":
        """Return self; raise if a name does not exist or a single tree has ensemble settings."""
        from dichotomies.calibrators.binary import BINARY
        from dichotomies.calibrators.multiclass import MULTICLASS
        from dichotomies.inference.pooling import POOLINGS
        from dichotomies.learners import LEARNERS
        from dichotomies.structures import STRUCTURES

        _check("estimator", self.estimator, [*ESTIMATORS])
        _check("internal calibration", self.internal, [NONE, *BINARY.names()])
        _check("external calibration", self.external, [NONE, *MULTICLASS.names()])
        _check("member calibration", self.member_calibration or NONE, [NONE, *MULTICLASS.names()])
        _check("pooling", self.pooling or "geometric", [*POOLINGS])
        _check("learner", self.learner, ["auto", *LEARNERS.names()])
        if not self.structure.endswith(".json"):
            _check("structure", self.structure, STRUCTURES.names())
        for name in self.param:
            _check(f"{self.estimator} parameter", name, _parameters(self.estimator))
        self._check_trees()
        return self

    def _check_trees(self) -> None:
        if self.trees < 1:
            raise SettingsError(f"There must be one tree or more, got trees={self.trees}.")
        if self.trees == 1 and self._of_ensemble():
            raise SettingsError(
                f"Only an ensemble of several trees has the setting {next(iter(self._of_ensemble()))!r}; say "
                "how many (--trees 10, or trees=10 in a configuration), or leave it out."
            )

    def _of_ensemble(self) -> dict[str, Any]:
        """Return the ensemble parameters that were set."""
        given = {
            "max_features": self.max_features,
            "bootstrap": self.bootstrap or None,
            "pooling": self.pooling,
            "member_calibration": self.member_calibration,
        }
        return {name: value for name, value in given.items() if value is not None}

    def estimator_for(self, *, sparse: bool) -> Any:
        """Return the base learner."""
        return estimator_named(self.estimator, self.param, sparse=sparse)

    def classifier(self, table: "Table", *, n_jobs: int | None = None, verbose: bool = False) -> Any:
        """Return the unfitted classifier for a table."""
        from dichotomies import NestedDichotomyClassifier, NestedDichotomyEnsemble

        common = {
            "estimator": self.estimator_for(sparse=bool(table.texts) or hasattr(table.X, "indptr")),
            "structure": _structure(self.structure, text_labels=table.labels.dtype.kind == "U"),
            "internal_calibration": _or_none(self.internal),
            "external_calibration": _or_none(self.external),
            "cv": self.cv,
            "ensemble": self.ensemble,
            "calibrated_nodes": _nodes(self.calibrated_nodes),
            "calibration_size": _number_or_text(self.calibration_size),
            "learner": self.learner,
            "n_jobs": n_jobs,
            "random_state": self.seed,
            "verbose": verbose,
        }
        if self.trees == 1:
            return NestedDichotomyClassifier(**common)
        own = {name: _or_none(value) for name, value in self._of_ensemble().items()}
        return NestedDichotomyEnsemble(n_estimators=self.trees, **own, **common)

    def changed(self, **values: Any) -> "Settings":
        """Return a copy with other values; dashes become underscores, and ``param.C`` is the parameter C."""
        known = {each.name: each for each in fields(self)}
        changes: dict[str, Any] = {"param": dict(self.param)}
        for name, value in values.items():
            first, dot, rest = name.replace("-", "_").partition(".")
            if first == "param" and (dot or isinstance(value, dict)):
                changes["param"] |= {rest: value} if dot else value
            elif first in known and first != "param" and not dot:
                changes[first] = _of_kind(name, value, known[first].type)
            else:
                raise SettingsError(
                    f"There is no setting {name!r}; choose from {', '.join(known)} (param.C is the parameter "
                    f"C of the estimator).{did_you_mean(name, known)}"
                )
        return replace(self, **changes)


def _parameters(estimator: str) -> list[str]:
    """Return the names of a base learner's parameters, for dense and sparse data."""
    learners = [estimator_named(estimator, {}, sparse=sparse) for sparse in (False, True)]
    return sorted({name for learner in learners for name in learner.get_params()})


def _check(what: str, name: str, names: list[str]) -> None:
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
    """Parse texts such as ``C=10`` to values by name."""
    pairs = {}
    for text in texts:
        name, sign, value = text.partition("=")
        if not sign or not name:
            raise SettingsError(f"{text!r} should be NAME=VALUE, such as C=10.")
        pairs[name] = value_of(value)
    return pairs


def _of_kind(name: str, value: Any, kind: Any) -> Any:
    """Return the value; raise if its type is not the field's. None is accepted for calibrator names."""
    plain = next(iter(get_args(kind)), kind)  # of `str | None`, str
    if plain is str and value is None:
        return NONE
    if plain in (str, bool, int) and type(value) is not plain:
        wanted = {str: "a name", bool: "true or false", int: "a whole number"}[plain]
        raise SettingsError(f"The setting {name!r} must be {wanted}, got {value!r}.")
    return value


def _or_none(name: Any) -> Any:
    return None if name == NONE else name


def _structure(given: str, *, text_labels: bool) -> Any:
    """Return the name of a structure, or the tree in a file, with its labels as text if `text_labels`."""
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
