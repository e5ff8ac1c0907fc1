"""The structures of the study obey the laws of those of the library, and do what their papers say."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.naive_bayes import GaussianNB

from dichotomies import ClassTree, NestedDichotomyClassifier
from dichotomies.learners import choose
from dichotomies.rows import Rows
from dichotomies.structures import STRUCTURES
from dichotomies.structures.base import depth_bound
from dichotomies.training.judging import LearnerJudge
from dichotomies.training.plan import Plan
from experiments.structures import Evolved, Spectral
from experiments.structures.tree_edits import crossed, regrafted, swapped
from tests.structures.small import HARD, check_names_do_not_count, clouds, hard, unordered
from tests.structures.test_references import sides
from tests.tasks import growing_task

EACH = [Evolved(evaluations=5, population=3), Evolved(evaluations=5, structure="random"), Spectral()]


@pytest.mark.parametrize("structure", EACH)
@pytest.mark.parametrize("k", [2, 3, 7, 300])
@pytest.mark.parametrize("kind", HARD)
def test_trees_are_over_all_classes_and_names_do_not_count(structure, k, kind, rng):
    X, y = hard(kind, k, rng)
    tree = structure.grow(X, y, random_state=0)
    assert sorted(tree.leaf_labels.tolist()) == list(range(k))
    assert tree.max_depth <= depth_bound(k, 0.0)
    assert tree == structure.grow(X, y, random_state=0)
    check_names_do_not_count(lambda names: structure.grow(X, names[y], random_state=0), k, rng)


@pytest.mark.parametrize("structure", EACH)
def test_weight_two_is_a_row_twice_and_sparse_rows_grow_the_same_tree(structure, rng):
    X, y = clouds(rng, 25)
    X[rng.random(X.shape) < 0.5] = 0
    weight = rng.integers(1, 3, size=len(y))
    again = np.repeat(np.arange(len(y)), weight)
    tree = structure.grow(X, y, weight, random_state=0)
    assert tree == structure.grow(X[again], y[again], random_state=0)
    assert tree == structure.grow(csr_array(X), y, weight, random_state=0)


@pytest.mark.parametrize("k", [30, 300])
def test_names_do_not_count_where_similarities_are_given(k, rng):
    similarity = (rng.random((k, k)) < 0.1).astype(float)  # many ties

    def grown(names):
        of_name = np.argsort(names)
        return Spectral(similarity=similarity[of_name][:, of_name]).grow(None, names)

    check_names_do_not_count(grown, k, rng)


def test_names_do_not_count_where_a_classifier_judges(rng):
    X, y = clouds(rng, 12, spread=0.8)

    def grown(names):
        clf = NestedDichotomyClassifier(
            GaussianNB(), EACH[0], internal_calibration=None, external_calibration=None, random_state=0
        )
        return clf.fit(X, names[y]).tree_

    check_names_do_not_count(grown, 12, rng)


def test_spectral_finds_the_components_of_a_graph(rng):
    blocks = rng.permutation(np.arange(30) % 2)
    similarity = rng.random((30, 30)) * (blocks[:, None] == blocks)
    for given in (similarity, csr_array(similarity)):
        tree = Spectral(similarity=given).grow(None, np.arange(30))
        assert sides(tree) == {frozenset(np.flatnonzero(blocks == side).tolist()) for side in (0, 1)}
    many = rng.permutation(np.arange(400) % 2)
    edges = csr_array((rng.random((400, 400)) < 0.1) * 1.0 * (many[:, None] == many))
    tree = Spectral(similarity=edges).grow(None, np.arange(400))
    assert sides(tree) == {frozenset(np.flatnonzero(many == side).tolist()) for side in (0, 1)}


def test_spectral_refuses_what_is_no_similarity():
    for similarity, message in (
        (np.ones((2, 3)), "a row and a column for each of the 3 classes"),
        (-np.ones((3, 3)), "none of them negative"),
    ):
        with pytest.raises(ValueError, match=message):
            Spectral(similarity=similarity).grow(None, [0, 1, 2])


def test_more_trials_find_trees_that_are_judged_better(digits):
    X, y = digits[0][:600], digits[1][:600]
    judge = LearnerJudge(Plan(learner=choose(GaussianNB())), Rows(X, y, np.unique(y)))
    task = growing_task(X, y, np.arange(10), None, judge)
    seed = np.random.RandomState(0).randint(2**31 - 1)  # the folds are drawn first

    def loss(evaluations):
        tree = Evolved(evaluations, population=5).grow_from(task, np.random.RandomState(0))
        return judge(tree, max_rows=20_000, seed=seed)

    assert loss(40) < loss(1)


def test_a_time_limit_ends_the_search(digits):
    tree = Evolved(evaluations=10**9, seconds=0.05).grow(*digits, random_state=0)
    assert tree.n_classes == 10


def test_edits_give_trees_over_the_same_classes(rng):
    random = np.random.RandomState(0)
    structure = STRUCTURES.create("random")
    for k in (2, 3, 4, 20):
        tree = structure.grow(None, np.arange(k), random_state=random)
        for _ in range(50):
            other = structure.grow(None, np.arange(k), random_state=random)
            for edited in (swapped(tree, random), regrafted(tree, random), crossed(tree, other, random)):
                assert sorted(edited.leaf_labels.tolist()) == list(range(k))


def test_edits_reach_every_tree():
    random, seen = np.random.RandomState(0), set()
    tree = ClassTree.from_nested([0, [1, [2, [3, 4]]]])
    for _ in range(3_000):
        tree = (swapped, regrafted)[random.randint(2)](tree, random)
        seen.add(unordered(tree.to_nested()))
    assert len(seen) == 105  # (2 * 5 - 3)!!
