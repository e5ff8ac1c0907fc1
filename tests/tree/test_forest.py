"""Several trees: which nodes they share, and that sharing changes nothing."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import BernoulliNB, ComplementNB, GaussianNB, MultinomialNB
from sklearn.tree import DecisionTreeClassifier

from dichotomies import ClassTree, HistAdaBoostClassifier
from dichotomies._common.parallel import Context
from dichotomies.learners import Wanted, choose
from dichotomies.rows import NodeTask
from dichotomies.rows.folds import fold_of_rows
from dichotomies.structures import STRUCTURES
from dichotomies.tree.forest import Forest, node_keys
from tests.tasks import in_folds, node_task


def splits(tree):
    """Each node as the two sets of its classes."""
    order = tree.leaf_order
    ends = zip(tree.start, tree.split, tree.stop, strict=True)
    return [(frozenset(order[a:b].tolist()), frozenset(order[b:c].tolist())) for a, b, c in ends]


def some_trees(k, n_trees, name="random"):
    rng = np.random.RandomState(0)
    return [STRUCTURES.create(name).grow(None, np.arange(k), random_state=rng) for _ in range(n_trees)]


@pytest.mark.parametrize("k", [2, 3, 5, 9])
def test_nodes_have_the_same_key_exactly_if_they_split_the_same_classes_the_same_way(k):
    found = {}
    for tree in some_trees(k, 40):
        keys = node_keys(tree)
        for (left, right), key, exchanged in zip(splits(tree), keys.sides, keys.is_exchanged, strict=True):
            found.setdefault(key, set()).add((right, left) if exchanged else (left, right))
    assert all(len(same) == 1 for same in found.values())
    assert len({frozenset(pair) for same in found.values() for pair in same}) == len(found)


def test_a_forest_counts_every_different_node_once():
    trees = some_trees(7, 20)
    forest = Forest.of(trees)
    different = {frozenset(split) for tree in trees for split in splits(tree)}
    assert forest.n_different == len(different)
    new = [forest.new_nodes(t) for t in range(20)]
    assert sum(map(len, new)) == forest.n_different
    assert np.array_equal(
        np.concatenate([forest.place[t, nodes] for t, nodes in enumerate(new)]), np.arange(len(different))
    )


def test_log_odds_of_a_tree_are_those_of_its_nodes_with_the_sign_of_its_sides(rng):
    one = ClassTree.from_nested([[0, 1], [2, 3]])
    other = ClassTree.from_nested([[3, 2], [0, 1]])
    forest = Forest.of([one, other])
    log_odds = rng.normal(size=(6, 3))
    mine = forest.log_odds_of_tree(1, log_odds)
    assert np.array_equal(mine, np.stack([-log_odds[:, 0], -log_odds[:, 2], log_odds[:, 1]], axis=1))


COUNTS = (MultinomialNB(), ComplementNB(norm=True), BernoulliNB())
LEARNERS = [
    LogisticRegression(C=0.1),
    LogisticRegression(class_weight={0: 1.0, 1: 3.0}, solver="liblinear"),
    GaussianNB(),
    GaussianNB(priors=[0.3, 0.7]),
    *COUNTS,
    HistAdaBoostClassifier(n_estimators=5),
    DecisionTreeClassifier(max_depth=3, random_state=0),
]


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("estimator", LEARNERS, ids=lambda estimator: repr(estimator)[:40])
def test_some_nodes_learn_what_they_learn_among_all(estimator, weighted, sparse, rng):
    if sparse and isinstance(estimator, GaussianNB | HistAdaBoostClassifier):
        pytest.skip(f"{type(estimator).__name__} takes no sparse rows")
    k = 12
    y = np.concatenate([np.arange(k), rng.integers(k, size=200)])
    X = rng.poisson(1.0 + 2 * rng.random((k, 8))[y]).astype(float)
    X = csr_array(X) if sparse else X
    weight = rng.integers(3, size=len(y)) + 0.5 if weighted else None
    one, other = some_trees(k, 2)
    learner, folds = choose(estimator), fold_of_rows(y, 3, np.random.RandomState(0))
    shared = node_task(one, X, y, weight)
    _answers(learner, shared, folds)  # whatever it leaves to the next
    nodes = np.array([0, 3, 4, 8, 10]), np.array([1, 2, 5])
    whole = _answers(learner, node_task(other, X, y, weight), folds)
    for chosen in nodes:
        some = _answers(learner, NodeTask(shared.rows, other, chosen), folds)
        pairs = node_task(other, X, y, weight).own_pairs().offsets
        mine = np.concatenate([np.arange(pairs[node], pairs[node + 1]) for node in chosen])
        np.testing.assert_allclose(some[0], whole[0][:, chosen], rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(some[1], whole[1][:, chosen], rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(some[2], whole[2][mine], rtol=1e-9, atol=1e-9)


def _answers(learner, task, folds):
    """Of the nodes trained on all rows, of those of a fold, and out of fold."""
    wanted = Wanted.FULL | Wanted.MEMBERS | Wanted.SCORES
    fitted = learner.cross_fit(in_folds(task, folds), wanted, Context(np.random.RandomState(0)))
    return fitted.full.log_odds(task.rows.X), fitted.members[1].log_odds(task.rows.X), fitted.scores
