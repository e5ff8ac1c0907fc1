"""Codes of values and sums of leaf values, those of plain code row by row."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from dichotomies import HistGradientBoostClassifier, NestedDichotomyEnsemble
from dichotomies._common import chunks
from dichotomies._common.parallel import Context
from dichotomies._kernels.boosting.encoding import encode, make_encoder
from dichotomies.inference.scorers import JoinedScorer, base_scorers
from dichotomies.learners import choose
from dichotomies.learners.boosting.binning import codes_of_values
from dichotomies.learners.boosting.trees import BoostedTrees
from dichotomies.tree import ClassTree
from tests.tasks import node_task

EDGES = {
    "even": lambda rng: np.arange(15) / 15,
    "drawn": lambda rng: np.sort(rng.normal(size=254)),
    "of all magnitudes": lambda rng: np.sort(10.0 ** rng.uniform(-300, 300, size=200)),
    "all but one in one step": lambda rng: np.append(np.sort(rng.random(100)), 1e9),
    "one": lambda rng: np.zeros(1),
    "none": lambda rng: np.empty(0),
    "next to each other": lambda rng: np.nextafter(1.0, 2.0) + np.arange(3) * np.finfo(float).eps,
    "infinite": lambda rng: np.array([-1e308, 0.0, np.inf]),
}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", EDGES)
def test_the_code_of_a_value_is_the_number_of_edges_below_it(rng, name, dtype):
    edges = EDGES[name](rng)
    x = np.concatenate([edges, np.nextafter(edges, np.inf), np.nextafter(edges, -np.inf)])
    with np.errstate(over="ignore"):
        x = np.concatenate([x, rng.normal(size=50), [np.nan, np.inf, -np.inf, 0.0]]).astype(dtype)
    X = np.column_stack([x, x])
    is_categorical = np.array([False, True])
    encoder = make_encoder(np.tile(edges, 2), len(edges) * np.arange(3), is_categorical)
    codes, order = np.empty(X.shape[::-1], dtype=np.uint8), rng.permutation(len(X))
    encode(X, order, np.arange(2), encoder, np.uint8(255), 0, codes)
    for f in range(2):
        assert_array_equal(codes[f], codes_of_values(x, edges, is_categorical[f])[order])


def random_trees(rng, n_features=5, n_edges=9, n_trees=(30, 0, 40), most_leaves=14):
    """Nodes with trees of one leaf to the most, on numbers and on categories."""
    n_splits = rng.integers(0, most_leaves, size=sum(n_trees))
    total = n_splits.sum()
    is_categorical = np.arange(n_features) % 2 == 1
    column = rng.integers(n_features, size=total).astype(np.int32)
    kind = np.where(is_categorical[column], 2, rng.integers(2, size=total)).astype(np.uint8)
    return BoostedTrees(
        features=np.arange(n_features)[::-1],
        edges=np.tile(np.arange(n_edges), n_features).astype(float),
        edge_offsets=n_edges * np.arange(n_features + 1),
        is_categorical=is_categorical,
        column=column,
        leaf=np.concatenate([rng.integers(s + 1) for n in n_splits for s in range(n)], axis=None).astype(
            np.uint8
        ),
        limit=rng.integers(n_edges + 1, size=total).astype(np.uint8),
        kind=kind,
        categories=rng.integers(256, size=((kind == 2).sum(), 32)).astype(np.uint8),
        split_offsets=np.concatenate([[0], np.cumsum(n_splits)]),
        value=rng.normal(size=total + len(n_splits)),
        tree_offsets=np.concatenate([[0], np.cumsum(n_trees)]),
        base=rng.normal(size=len(n_trees)),
        scale=rng.random(len(n_trees)),
        is_trained=np.ones(len(n_trees), dtype=bool),
    )


def plain_log_odds(trees, x, k):
    total = 0.0
    set_of_split = np.cumsum(trees.kind == 2) - 1
    for tree in range(*trees.tree_offsets[k : k + 2]):
        begin, end = trees.split_offsets[tree : tree + 2]
        leaf = 0
        for s in range(begin, end):
            value, c = x[trees.features[trees.column[s]]], trees.column[s]
            edges = trees.edges[trees.edge_offsets[c] : trees.edge_offsets[c + 1]]
            if trees.kind[s] == 2:
                code = int(codes_of_values(np.array([value]), edges, True)[0])
                stays = trees.categories[set_of_split[s]][code // 8] >> (code % 8) & 1
            else:
                stays = trees.kind[s] == 1 if np.isnan(value) else (edges < value).sum() <= trees.limit[s]
            leaf = s - begin + 1 if leaf == trees.leaf[s] and not stays else leaf
        total += trees.value[begin + tree + leaf]
    return trees.base[k] + trees.scale[k] * total


@pytest.mark.parametrize("n_known", [0, 1024, 1100])
@pytest.mark.parametrize("n_rows", [1, 70, 1100])
def test_log_odds_are_sums_of_leaf_values_to_a_billionth_of_the_largest_sum(rng, n_rows, n_known):
    trees = random_trees(rng, n_features=11)
    trees.value[: trees.split_offsets[30] + 30] *= 1e12  # the first node's, whose unit is not the last one's
    X = rng.integers(9, size=(n_rows, 11)) / 1.0  # of categories that the trees know
    unknown = X[n_known:]
    unknown[:] = rng.integers(-2, 12, size=unknown.shape)
    unknown[rng.random(unknown.shape) < 0.1] = np.nan
    log_odds = trees.log_odds(X)
    checked = rng.permutation(n_rows)[:60]
    expected = [[plain_log_odds(trees, X[i], k) for k in range(3)] for i in checked]
    ends = np.split(np.arange(len(trees.value)), trees.split_offsets[1:-1] + np.arange(1, 70))
    largest = np.array([np.abs(trees.value[leaves]).max() for leaves in ends])
    off = [n * largest[a:b].sum() / 2**30 for n, a, b in ((30, 0, 30), (0, 0, 0), (40, 30, 70))]
    assert (np.abs(log_odds[checked] - expected) <= trees.scale * off).all()
    rows, nodes = np.repeat(np.arange(n_rows), 3), np.tile(np.arange(3), n_rows)
    assert_array_equal(trees.pair_log_odds(X, rows, nodes), log_odds[rows, nodes])


def test_log_odds_of_trees_with_many_leaves(rng):
    trees = random_trees(rng, n_trees=(2,) * 40, most_leaves=100)  # more nodes than are written together
    X = rng.integers(-2, 12, size=(1100, 5)) / 1.0
    log_odds = trees.log_odds(X)
    for i in rng.permutation(1100)[:3]:
        assert_allclose(log_odds[i], [plain_log_odds(trees, X[i], k) for k in range(40)], atol=1e-7)


def test_one_row_is_scored_as_with_others(rng):
    X, y = rng.normal(size=(90, 3)), np.arange(90) % 4
    task = node_task(ClassTree.from_nested([[0, 1], [2, 3]]), X, y)
    trees = choose(HistGradientBoostClassifier()).fit(task, Context())
    assert_array_equal(np.concatenate([trees.log_odds(row[None]) for row in X]), trees.log_odds(X))


def test_no_rows_have_no_log_odds(rng):
    assert random_trees(rng).log_odds(np.empty((0, 5))).shape == (0, 3)


@pytest.mark.parametrize("shift", [0.0, 0.5])
def test_nodes_of_several_models_are_scored_as_before_and_same_bins_are_encoded_once(rng, shift):
    parts = [random_trees(rng), random_trees(rng), random_trees(rng)]
    parts[1] = replace(parts[1], edges=parts[1].edges + shift)
    X = np.where(rng.random((90, 5)) < 0.1, np.nan, rng.integers(-1, 12, size=(90, 5)) / 2)
    apart = np.column_stack([part.log_odds(X) for part in parts])
    for nodes in (np.arange(9), rng.permutation(9)[:7]):
        assert_array_equal(BoostedTrees.gathered(parts, nodes).log_odds(X), apart[:, nodes])
    n_columns = len(BoostedTrees.gathered(parts, np.arange(9)).features)
    assert n_columns == 5 if shift == 0.0 else n_columns > 5


@pytest.mark.parametrize("calibrator", [None, "platt"])
def test_members_of_an_ensemble_answer_as_one_model_to_the_last_bit(digits, monkeypatch, calibrator):
    X, y = digits
    ensemble = NestedDichotomyEnsemble(
        HistGradientBoostClassifier(6),
        n_estimators=3,
        internal_calibration=calibrator,
        external_calibration=None,
        random_state=0,
    )
    together = ensemble.fit(X[:600], y[:600]).predict_log_proba(X)
    assert not any(isinstance(base, JoinedScorer) for base in base_scorers(ensemble.model_.scorer))
    monkeypatch.setattr(BoostedTrees, "is_faster_joined", False)
    apart = clone(ensemble).fit(X[:600], y[:600])
    assert isinstance(apart.model_.scorer, JoinedScorer)
    assert_array_equal(apart.predict_log_proba(X), together)


@pytest.mark.parametrize("n_estimators", [1, 3])
def test_blocks_of_rows_answer_as_all_rows_do_to_the_last_bit(digits, monkeypatch, n_estimators):
    X, y = digits
    ensemble = NestedDichotomyEnsemble(
        HistGradientBoostClassifier(6),
        n_estimators=n_estimators,
        internal_calibration="platt",
        random_state=0,
    )
    whole = ensemble.fit(X[:600], y[:600]).predict_log_proba(X)
    monkeypatch.setattr(BoostedTrees, "rows_at_once", 64)
    monkeypatch.setattr(chunks, "_POOLED_BYTES", 1)
    assert_array_equal(ensemble.predict_log_proba(X), whole)
