"""The models of the boosting race: ours and the peers', by default and with a searched setting."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from dichotomies import HistGradientBoostClassifier, NestedDichotomyClassifier, NestedDichotomyEnsemble

if TYPE_CHECKING:
    from collections.abc import Callable

    from dichotomies._common.typing import IntArray


def ours(n_trees: int, *, calibrated: bool) -> Any:
    """The library's defaults, or without calibration, as the others are."""
    given: dict[str, Any] = {"random_state": 0}
    if not calibrated:
        given |= {"internal_calibration": None, "external_calibration": None}
    node = HistGradientBoostClassifier()
    if n_trees == 1:
        return NestedDichotomyClassifier(node, **given)
    return NestedDichotomyEnsemble(node, n_estimators=n_trees, **given)


def lightgbm(**parameters: Any) -> Any:
    """LightGBM, one thread."""
    from lightgbm import LGBMClassifier

    return LGBMClassifier(n_jobs=1, verbose=-1, random_state=0, **parameters)


def xgboost(**parameters: Any) -> Any:
    """XGBoost, one thread."""
    from xgboost import XGBClassifier

    return XGBClassifier(n_jobs=1, tree_method="hist", enable_categorical=True, random_state=0, **parameters)


def catboost(**parameters: Any) -> Any:
    """CatBoost, one thread."""
    from catboost import CatBoostClassifier

    return CatBoostClassifier(
        thread_count=1, verbose=0, random_seed=0, allow_writing_files=False, **parameters
    )


def scikit_learn(**parameters: Any) -> Any:
    """scikit-learn's histogram boosting."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(random_state=0, **parameters)


MULTI_OUTPUT = {"multi_strategy": "multi_output_tree"}

#: By default; with three times the rounds; with larger trees, where possible of drawn rows and features.
SETTINGS: dict[str, list[dict[str, Any]]] = {
    "LightGBM": [
        {},
        {"n_estimators": 300},
        {
            "num_leaves": 63,
            "subsample": 0.7,
            "subsample_freq": 1,
            "colsample_bytree": 0.5,
            "min_child_samples": 5,
        },
    ],
    "XGBoost": [
        {},
        {"n_estimators": 300, "learning_rate": 0.15},
        {"max_depth": 8, "subsample": 0.7, "colsample_bytree": 0.5},
    ],
    "XGBoost, multi-output": [
        MULTI_OUTPUT,
        {"n_estimators": 300, "learning_rate": 0.15, **MULTI_OUTPUT},
        {"max_depth": 8, "subsample": 0.7, "colsample_bytree": 0.5, **MULTI_OUTPUT},
    ],
    "scikit-learn": [
        {},
        {"max_iter": 300},
        {"max_leaf_nodes": 63, "max_features": 0.5, "min_samples_leaf": 5},
    ],
    "CatBoost": [  # whose default has 1,000 rounds: fewer and larger steps, deeper trees
        {},
        {"iterations": 300, "learning_rate": 0.2},
        {"iterations": 300, "learning_rate": 0.2, "depth": 8},
    ],
}

MAKERS: dict[str, Callable[..., Any]] = {
    "LightGBM": lightgbm,
    "XGBoost": xgboost,
    "XGBoost, multi-output": xgboost,
    "scikit-learn": scikit_learn,
    "CatBoost": catboost,
}


def search(name: str, X: Any, y: IntArray, **fixed: Any) -> Any:
    """Return an unfitted peer with the setting that is best on a fifth of the training rows."""
    held = np.random.default_rng(0).random(len(y)) < 0.2
    losses = []
    for setting in SETTINGS[name]:
        model = MAKERS[name](**setting, **fixed).fit(X[~held], y[~held])
        proba = model.predict_proba(X[held])
        losses.append(-np.log(np.maximum(proba[np.arange(len(proba)), y[held]], 1e-300)).mean())
    return MAKERS[name](**SETTINGS[name][int(np.argmin(losses))], **fixed)


OURS: dict[str, Callable[[], Any]] = {
    "ours, one tree": partial(ours, 1, calibrated=False),
    "ours, four trees": partial(ours, 4, calibrated=False),
    "ours, ten trees": partial(ours, 10, calibrated=False),
    "ours, one tree, calibrated": partial(ours, 1, calibrated=True),
    "ours, ten trees, calibrated": partial(ours, 10, calibrated=True),
}

#: Suffix of a peer's name: its setting is searched for on training rows.
SEARCHED = ", searched"

NAMES = [*OURS, *SETTINGS, *(name + SEARCHED for name in SETTINGS)]


def make(name: str, X: Any, y: IntArray, **fixed: Any) -> Any:
    """Return an unfitted model by its name; a searched peer is searched for on the rows."""
    if name in OURS:
        return OURS[name]()
    if name.endswith(SEARCHED):
        return search(name.removesuffix(SEARCHED), X, y, **fixed)
    return MAKERS[name](**SETTINGS[name][0], **fixed)
