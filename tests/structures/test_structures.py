"""Every structure, found through the registry, obeys the same laws; the random laws are the stated ones."""

import math
from collections import Counter

import numpy as np
import pytest
from scipy.stats import chisquare
from sklearn.base import clone

from dichotomies import ClassTree
from dichotomies.structures import STRUCTURES, FixedTree, resolve
from tests.documented import documented
from tests.structures.small import quickly, unordered
from tests.tasks import growing_task

NAMES = STRUCTURES.names()
DOCUMENTED = documented("structures.md", "random")


def grow(name, y, seed=0, sample_weight=None):
    return quickly(name).grow(np.zeros((len(y), 1)), y, sample_weight, seed)


@pytest.mark.parametrize("name", NAMES)
def test_the_same_seed_grows_the_same_tree_and_another_seed_another_where_chance_decides(name, rng):
    X, y = rng.normal(size=(150, 4)), np.repeat(np.arange(50), 3)
    one, same, other = (STRUCTURES.create(name).grow(X, y, random_state=seed) for seed in (1, 1, 2))
    assert one == same
    assert (one != other) == (DOCUMENTED[name]["random"] == "yes")


@pytest.mark.parametrize("name", NAMES)
def test_names_that_sort_alike_rename_the_tree(name):
    y = np.repeat(np.arange(30), np.arange(1, 31))
    names = np.array([f"class;{i:02d}" for i in range(30)])
    renamed = grow(name, names[y], seed=3)
    assert renamed.leaf_labels.tolist() == names[grow(name, y, seed=3).leaf_labels].tolist()
    assert np.array_equal(renamed.split, grow(name, y, seed=3).split)


@pytest.mark.parametrize("name", NAMES)
def test_structures_clone_and_have_a_summary(name):
    structure = STRUCTURES.create(name)
    assert type(clone(structure)) is type(structure)
    assert STRUCTURES.summaries()[name]


@pytest.mark.parametrize("k", [3, 4, 5])
def test_uniform_draws_every_tree_equally_often(k):
    n_trees = math.prod(range(1, 2 * k - 2, 2))  # (2k-3)!!
    rng = np.random.RandomState(0)
    task = growing_task(None, np.arange(k), np.arange(k))
    structure = STRUCTURES.create("uniform")
    counts = Counter(unordered(structure.grow_from(task, rng).to_nested()) for _ in range(60 * n_trees))
    assert len(counts) == n_trees
    assert chisquare(list(counts.values())).pvalue > 0.001


def test_random_splits_have_their_split_point_uniform():
    rng = np.random.RandomState(0)
    task = growing_task(None, np.arange(6), np.arange(6))
    structure = STRUCTURES.create("random")
    trees = [structure.grow_from(task, rng) for _ in range(5_000)]
    assert chisquare(np.bincount([tree.split[0] for tree in trees])[1:]).pvalue > 0.001
    below = [tree.split[1] - tree.start[1] for tree in trees if tree.stop[1] - tree.start[1] == 4]
    assert chisquare(np.bincount(below)[1:]).pvalue > 0.001


def test_the_order_of_the_classes_is_by_weight_then_by_the_first_row_that_counts():
    codes = np.array([2, 0, 1, 3, 1, 1, 3, 2, 0])
    weight = np.array([0.0, 1, 0.1, 0.3, 0.1, 0.1, 0, 1, 0])  # 0.1 three times is a little more than 0.3
    assert growing_task(None, codes, np.arange(4), weight).rows.class_order.tolist() == [0, 2, 1, 3]
    assert growing_task(None, codes[3:], np.arange(4), weight[3:]).rows.class_order.tolist() == [2, 3, 1, 0]
    assert growing_task(None, codes, np.arange(4)).rows.class_order.tolist() == [1, 2, 0, 3]


def test_random_trees_depend_on_the_seed_and_the_sorted_labels_alone(rng):
    y = rng.permutation(np.repeat(np.arange(20), np.arange(1, 21)))
    grown = grow("random", y)
    assert grown == grow("random", np.arange(20)) == grow("random", rng.permutation(y))
    assert grown == grow("random", y, sample_weight=rng.random(len(y)))
    assert grown != grow("random", y, seed=1)


def test_random_gives_the_leaves_of_a_tree_every_name_equally_often():
    rng = np.random.RandomState(0)
    task = growing_task(None, np.arange(4), np.arange(4))
    structure = STRUCTURES.create("random")
    trees = [structure.grow_from(task, rng) for _ in range(4_000)]
    for depth, n_trees in ((2, 3), (3, 12)):  # two pairs, or one class after the other
        counts = Counter(unordered(tree.to_nested()) for tree in trees if tree.max_depth == depth)
        assert len(counts) == n_trees
        assert chisquare(list(counts.values())).pvalue > 0.001


def test_coin_flips_split_like_fair_coins():
    rng = np.random.RandomState(0)
    task = growing_task(None, np.arange(4), np.arange(4))
    structure = STRUCTURES.create("coin-flip")
    sizes = np.bincount([structure.grow_from(task, rng).split[0] for _ in range(7_000)])[1:]
    assert chisquare(sizes, 7_000 * np.array([4, 6, 4]) / 14).pvalue > 0.001


@pytest.mark.parametrize(
    ("name", "expected", "tolerance"),
    [("random", 2 * sum(1 / i for i in range(2, 1_001)), 0.1), ("class-balanced", 9.976, 1e-9)],
)
def test_mean_leaf_depth_at_a_thousand_classes(name, expected, tolerance):
    depths = [grow(name, np.arange(1_000), seed).mean_depth for seed in range(100)]
    assert np.mean(depths) == pytest.approx(expected, abs=tolerance)


def test_class_balanced_is_as_shallow_as_a_tree_can_be():
    for k in (2, 3, 5, 17, 64, 65, 1_000):
        assert grow("class-balanced", np.arange(k)).max_depth == math.ceil(math.log2(k))


def test_data_balanced_puts_the_frequent_class_near_the_root():
    y = np.repeat(np.arange(100), [10_000] + [1] * 99)
    depths = [len(grow("data-balanced", y, seed).path(0)[0]) for seed in range(50)]
    assert np.mean(depths) == pytest.approx(sum(1 / i for i in range(1, 101)), abs=1)  # H_100, about 5.2
    weighted = [
        len(grow("data-balanced", np.arange(100), seed, np.r_[1e4, np.ones(99)]).path(0)[0])
        for seed in range(50)
    ]
    assert weighted == depths


def test_data_balanced_left_side_first_reaches_half():
    y = np.repeat(np.arange(40), np.arange(1, 41))
    task = growing_task(None, y, np.arange(40))
    tree = STRUCTURES.create("data-balanced").grow_from(task, np.random.RandomState(0))
    for start, split, stop in zip(tree.start, tree.split, tree.stop, strict=True):
        sizes = tree.leaf_order[start:stop] + 1
        left = sizes[: split - start]
        # with its largest class taken away, the left side had not reached half
        assert 2 * left.sum() >= sizes.sum() or stop - split == 1
        assert 2 * (left.sum() - left.max()) < sizes.sum()


@pytest.mark.parametrize("name", NAMES)
def test_zero_weight_everywhere_still_gives_a_tree(name):
    assert grow(name, np.arange(9), sample_weight=np.zeros(9)).n_classes == 9


def test_a_name_is_given_once():
    with pytest.raises(ValueError, match="already is a structure named 'random'"):
        STRUCTURES.register("random")(STRUCTURES.get("random"))


def test_unknown_names_are_refused_with_a_suggestion():
    with pytest.raises(
        ValueError, match=r"no structure named 'randon'; choose from .*Did you mean 'random'\?"
    ):
        resolve("randon")
    with pytest.raises(TypeError, match=r"Expected a structure: one of \[.*got 3.5"):
        resolve(3.5)


def test_a_users_tree_is_taken_as_it_is():
    nested = [["b", "a"], "c"]
    for given in (nested, ClassTree.from_nested(nested)):
        tree = resolve(given).grow(None, np.array(["a", "b", "c", "a"], dtype=object))
        assert tree.to_nested() == nested
    assert isinstance(resolve(nested), FixedTree)
    with pytest.raises(ValueError, match="Class 'd' is missing from the tree"):
        resolve(nested).grow(None, ["a", "b", "c", "d"])
    assert resolve(nested).grow(None, ["a", "c"]).to_nested() == ["a", "c"]  # b does not occur
    with pytest.raises(ValueError, match="Class 'x' is missing from the tree"):
        resolve(nested).grow(None, ["x", "y"])


def test_a_users_tree_is_read_by_number_where_the_labels_are_coded():
    for nested in ([["b", "a"], "c"], [[20, 10], 30]):
        assert resolve(nested).grow(None, [0, 1, 2]).to_nested() == [[1, 0], 2]
        assert resolve(nested).grow(None, [0, 2]).to_nested() == [0, 2]
