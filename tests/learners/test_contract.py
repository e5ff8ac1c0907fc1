"""Every learner, found through the registry, trains what it says it does, as one clone per node would."""

import numpy as np
import pytest

from dichotomies.learners import LEARNERS, choose
from tests.uncalibrated import Uncalibrated

FAST = [
    pytest.param(name, kind, id=kind.__name__)
    for name in LEARNERS.names()
    for kind in LEARNERS.get(name).trains.values()
    if not LEARNERS.get(name).only_by_name  # tests/learners/test_gpu.py
]


@pytest.mark.parametrize(("name", "kind"), FAST)
def test_estimators_of_a_class_that_it_trains_are_taken_and_derived_ones_left_to_clones(name, kind):
    assert choose(kind()).description.startswith(f"{name}: ")
    assert choose(kind(), name).description == choose(kind()).description
    assert "no fast path for Own" in choose(type("Own", (kind,), {})()).description


@pytest.mark.parametrize(("name", "kind"), FAST)
def test_it_gives_what_one_clone_per_node_gives(name, kind, digits):
    if not LEARNERS.get(name).equals_clones:
        pytest.skip("rows of other nodes have a part in its nodes")
    X, y = np.round(2 * digits[0][:400, 10:40:2]), digits[1][:400]  # few values: any bins tell them apart
    exact = {"tol": 1e-8} if "tol" in kind().get_params() else {}
    fast, clones = (
        Uncalibrated(kind(**exact), "class-balanced", learner=learner, random_state=0).fit(X[:300], y[:300])
        for learner in (name, "clones")
    )
    np.testing.assert_allclose(fast.predict_proba(X), clones.predict_proba(X), atol=1e-5)
