"""New classes in a tree, and the forest after an edit."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dichotomies import ClassTree
from dichotomies.tree.edited_forest import EditedForest, grafted, greatest_depth
from dichotomies.tree.forest import Forest

TREE = ClassTree.from_nested([["cat", "dog"], ["ant", ["bee", "fly"]]])


def _grafted(tree, label, sibling, classes):
    affinity = np.append(tree.leaf_labels == sibling, False).astype(float)[None]
    return grafted(tree, [label], affinity, classes)


def test_new_classes_become_siblings_of_the_classes_they_are_most_akin_to_old_or_new():
    classes = sorted([*TREE.classes.tolist(), "cow", "elk"])
    affinity = np.zeros((2, 7))
    affinity[0, TREE.leaf_labels.tolist().index("ant")] = affinity[1, 5] = 1.0
    found = grafted(TREE, ["cow", "elk"], affinity, classes)
    assert found.to_nested() == [["cat", "dog"], [["ant", ["cow", "elk"]], ["bee", "fly"]]]


@given(st.integers(2, 40), st.integers(1, 40), st.integers(0, 2**20))
def test_new_leaves_keep_the_bound_on_the_depth_and_the_order_of_the_old_ones(n_old, n_new, seed):
    rng = np.random.RandomState(seed)
    old, labels = rng.permutation(n_old), list(range(n_old, n_old + n_new))
    tree = ClassTree(old, rng.permutation(n_old - 1))
    affinity = rng.rand(n_new, n_old + n_new) + 10 * (np.arange(n_old + n_new) == n_old // 2)
    found = grafted(tree, labels, affinity, range(n_old + n_new))
    assert found.restrict(range(n_old)) == tree
    is_deeper = found.leaf_depth > greatest_depth(n_old + n_new)
    assert not (is_deeper & (found.leaf_labels >= n_old)).any()
    assert found.max_depth <= max(tree.max_depth, greatest_depth(n_old + n_new))


def test_nodes_without_new_classes_are_those_of_before_in_every_tree():
    other = ClassTree.from_nested([["ant", ["fly", "bee"]], ["dog", "cat"]])
    before = Forest.of([TREE, other])
    classes = np.array(sorted([*TREE.classes.tolist(), "cow"]))
    trees = [
        _grafted(TREE, "cow", "dog", classes),
        _grafted(other, "cow", "ant", classes),
    ]
    changed = classes == "cow"
    found = EditedForest.of(before, trees, changed)
    for t, tree in enumerate(trees):
        for k in range(tree.n_nodes):
            inside = tree.leaf_labels[tree.start[k] : tree.stop[k]]
            source = found.source[found.forest.place[t, k]]
            assert (source < 0) == ("cow" in inside or set(inside) not in _sets(before)), inside
    log_odds = np.arange(found.forest.n_different, dtype=float)[None] + 1
    bee_or_fly = [found.forest.log_odds_of_tree(t, log_odds)[0] for t in (0, 1)]
    one, two = (_node_of(tree, {"bee", "fly"}) for tree in trees)
    assert bee_or_fly[0][one] == -bee_or_fly[1][two]


def test_a_forgotten_class_changes_only_nodes_above_it():
    before = Forest.of([TREE])
    tree = TREE.restrict({"cat", "dog", "ant", "fly"})
    found = EditedForest.of(before, [tree], np.zeros(4, dtype=bool))
    assert found.source.tolist() == [-1, 1, -1]
    assert [nodes.tolist() for nodes in found.new_nodes] == [[0, 2]]


def _sets(forest):
    return [set(t.leaf_labels[a:b]) for t in forest.trees for a, b in zip(t.start, t.stop, strict=True)]


def _node_of(tree, classes):
    spans = zip(tree.start, tree.stop, strict=True)
    return [set(tree.leaf_labels[a:b].tolist()) for a, b in spans].index(classes)
