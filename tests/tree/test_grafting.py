"""New classes in a tree, and the forest after an edit."""

import numpy as np

from dichotomies import ClassTree
from dichotomies.tree.edited_forest import EditedForest
from dichotomies.tree.forest import Forest
from dichotomies.tree.grafting import Graft, grafted, landing

TREE = ClassTree.from_nested([["cat", "dog"], ["ant", ["bee", "fly"]]])


def test_new_classes_become_siblings_of_branches_wherever_these_end():
    classes = sorted([*TREE.classes.tolist(), "cow", "elk", "owl", "pig"])
    grafts = [Graft(~4, ["cow"], []), Graft(2, ["elk"], []), Graft(3, ["owl", "pig"], [0])]
    found = grafted(TREE, grafts, classes)
    inner = [["bee", ["fly", "cow"]], ["owl", "pig"]]
    assert found.to_nested() == [["cat", "dog"], [["ant", inner], "elk"]]
    assert found.restrict(TREE.classes.tolist()) == TREE


def test_rows_land_at_the_leaf_that_most_of_them_go_to():
    log_odds = np.array([[1.0, -1.0, 5.0, 5.0]] * 3 + [[-1.0, 9.0, -5.0, 5.0]] * 2)
    assert TREE.leaf_labels[~landing(TREE, log_odds)] == "dog"
    assert TREE.leaf_labels[~landing(TREE, log_odds[3:])] == "bee"


def test_nodes_without_new_classes_are_those_of_before_in_every_tree():
    other = ClassTree.from_nested([["ant", ["fly", "bee"]], ["dog", "cat"]])
    before = Forest.of([TREE, other])
    classes = np.array(sorted([*TREE.classes.tolist(), "cow"]))
    trees = [
        grafted(TREE, [Graft(~1, ["cow"], [])], classes),
        grafted(other, [Graft(~0, ["cow"], [])], classes),
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
