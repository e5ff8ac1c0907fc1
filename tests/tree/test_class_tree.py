"""Laws of `ClassTree`."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.cluster.hierarchy import linkage

from dichotomies import ClassTree

PETS = [["cat", "dog"], ["ant", ["bee", "fly"]]]


@st.composite
def trees(draw, max_classes=12):
    """Any tree over the classes 0..k-1: shuffled leaves, splits in any order."""
    k = draw(st.integers(2, max_classes))
    return ClassTree(draw(st.permutations(range(k))), draw(st.permutations(range(k - 1))))


def chain(k):
    nested = 0
    for label in range(1, k):
        nested = [nested, label]
    return nested


def pairs(nested):
    """Every internal node as (labels left, labels right), by recursion: the independent reading."""
    if not isinstance(nested, list):
        return [nested], []
    (left, below_left), (right, below_right) = pairs(nested[0]), pairs(nested[1])
    return left + right, [(left, right), *below_left, *below_right]


@given(trees())
def test_nested_lists_survive_the_round_trip(tree):
    assert ClassTree.from_nested(tree.to_nested()) == tree


@given(trees())
def test_ranges_are_the_sets_of_classes_on_either_side(tree):
    labels = tree.leaf_labels.tolist()
    nodes = [(labels[a:m], labels[m:b]) for a, m, b in zip(tree.start, tree.split, tree.stop, strict=True)]
    assert sorted(nodes) == sorted(pairs(tree.to_nested())[1])


@given(trees())
def test_nodes_are_in_level_order_and_children_know_their_parent(tree):
    order = list(zip(tree.depth.tolist(), tree.start.tolist(), strict=True))
    assert order == sorted(order)
    assert tree.parent[0] == -1
    for side in (tree.left, tree.right):
        for node, child in enumerate(side.tolist()):
            assert child < 0 or (tree.parent[child] == node and tree.depth[child] == tree.depth[node] + 1)
    leaves = [~child for side in (tree.left, tree.right) for child in side.tolist() if child < 0]
    assert sorted(leaves) == list(range(tree.n_classes))


@given(trees())
def test_the_path_of_a_class_is_every_node_that_holds_it(tree):
    for position, label in enumerate(tree.leaf_labels.tolist()):
        nodes, goes_left = tree.path(label)
        assert len(nodes) == tree.leaf_depth[position]
        node = 0
        for expected, left in zip(nodes, goes_left, strict=True):
            assert node == expected
            node = int((tree.left if left else tree.right)[node])
        assert ~node == position


@given(trees(), st.integers(0, 12))
def test_a_cut_partitions_the_classes_by_what_is_separated_above_it(tree, depth):
    cut = tree.cut(depth)
    assert cut.start[0] == 0
    assert cut.stop[-1] == tree.n_classes
    assert (cut.start[1:] == cut.stop[:-1]).all()
    for a in range(tree.n_classes):
        for b in range(tree.n_classes):
            path_a, path_b = (set(tree.path(label)[0].tolist()) for label in (a, b))
            meet = max(tree.depth[list(path_a & path_b)])
            together = a == b or meet >= depth
            assert (cut.group_of_class[a] == cut.group_of_class[b]) == together
    assert all(
        (node < 0) == (stop - start == 1)
        for start, stop, node in zip(cut.start, cut.stop, cut.node, strict=True)
    )


@given(trees(), st.data())
def test_restriction_keeps_who_parts_before_whom(tree, data):
    kept = data.draw(st.sets(st.sampled_from(range(tree.n_classes)), min_size=1))

    def prune(nested):
        if not isinstance(nested, list):
            return nested if nested in kept else None
        sides = [side for side in map(prune, nested) if side is not None]
        return sides if len(sides) == 2 else sides[0] if sides else None

    assert tree.restrict(kept).to_nested() == prune(tree.to_nested())


@given(trees())
def test_edges_and_parents_give_the_same_tree(tree):
    def name(child, tree=tree):
        return f"node {child}" if child >= 0 else str(tree.leaf_labels[~child])

    edges = [(name(k), name(int(side[k]))) for k in range(tree.n_nodes) for side in (tree.left, tree.right)]
    expected = ClassTree(tree.leaf_labels.astype(str), tree.split_depth)
    assert ClassTree.from_edges(edges) == expected
    assert ClassTree.from_parents({child: parent for parent, child in edges}) == expected


def test_mean_and_maximum_depth():
    tree = ClassTree.from_nested(PETS)
    assert (tree.mean_depth, tree.max_depth) == (12 / 5, 3)


def test_linkage_merges_become_nodes(rng):
    points = rng.normal(size=(40, 3))
    merges = linkage(points, "average")
    tree = ClassTree.from_linkage(merges)
    below = {i: {i} for i in range(40)}
    for i, (a, b) in enumerate(merges[:, :2].astype(int)):
        below[40 + i] = below[a] | below[b]
    nodes = {frozenset(tree.leaf_order[a:b].tolist()) for a, b in zip(tree.start, tree.stop, strict=True)}
    assert nodes == {frozenset(below[40 + i]) for i in range(39)}


def test_linkage_with_labels():
    merges = linkage([[0.0], [9.0], [1.0]])
    assert ClassTree.from_linkage(merges, ["a", "b", "c"]).to_nested() == ["b", ["a", "c"]]
    with pytest.raises(ValueError, match="joins 3 leaves, but 2 labels"):
        ClassTree.from_linkage(merges, ["a", "b"])


def test_parent_numbers_with_labels():
    labels = {2: "c", 3: "a", 4: "b"}
    assert ClassTree.from_parents([-1, 0, 0, 1, 1], labels).to_nested() == [["a", "b"], "c"]


def test_equality_and_hash_are_by_value():
    tree, same = ClassTree.from_nested(PETS), ClassTree.from_nested(tuple(map(tuple, PETS)))
    assert tree == same
    assert hash(tree) == hash(same)
    assert tree != ClassTree.from_nested(PETS[::-1])
    assert tree != "a tree"


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda tree: pickle.loads(pickle.dumps(tree))])
def test_copies_are_equal_and_read_only(copied):
    tree = copied(ClassTree.from_nested(PETS))
    assert tree == ClassTree.from_nested(PETS)
    with pytest.raises(ValueError, match="read-only"):
        tree.start[0] = 1
    with pytest.raises(AttributeError):
        tree.start = None


@pytest.mark.parametrize(
    ("labels", "kind"),
    [(["b", "a", "c"], "U"), ([7, -3, 100], "i"), ([True, False], "b"), ([0.5, 2.5], "f")],
)
def test_labels_of_every_kind_keep_their_kind(labels, kind):
    nested = [labels[0], labels[1]] if len(labels) == 2 else [[labels[0], labels[1]], labels[2]]
    tree = ClassTree.from_nested(nested)
    assert tree.classes.dtype.kind == kind
    assert tree.classes.tolist() == sorted(labels)
    assert tree.to_nested() == nested


def test_ten_thousand_classes_and_a_chain_of_five_thousand(rng):
    wide = ClassTree(rng.permutation(10_000), rng.permutation(9_999))
    deep = ClassTree.from_nested(chain(5_000))
    assert deep.max_depth == 4_999
    assert len(deep.path(0)[0]) == 4_999
    for tree in (wide, deep):
        assert ClassTree.from_nested(tree.to_nested()) == tree
        assert pickle.loads(pickle.dumps(tree)) == tree
        assert tree.restrict(range(0, 5_000, 2)).n_classes == 2_500
        assert len(tree.draw().splitlines()) <= 40
        assert len(repr(tree)) < 80
        assert len(tree.cut(3)) <= 8
    edges = [(f"n{i}", f"n{i + 1}" if i < 4_998 else 0) for i in range(4_999)]
    edges += [(f"n{i}", i + 1) for i in range(4_999)]
    assert ClassTree.from_edges([(p, str(c)) for p, c in edges]).max_depth == 4_999


@pytest.mark.parametrize(
    ("nested", "sentence"),
    [
        (["a", ["b"]], r"needs two children, but \['b'\] has one child"),
        (["a", ["b", "c", "d"]], r"\['b', 'c', 'd'\] has 3 children"),
        (["a", []], r"\[\] has no child"),
        ([["a", "b"], "a"], "Class 'a' is at 2 leaves"),
        (["a", 1], "strings such as 'a' and numbers such as 1"),
        (["a", None], "got None of type NoneType"),
    ],
)
def test_a_bad_tree_is_refused_in_a_sentence_that_names_the_offender(nested, sentence):
    with pytest.raises((ValueError, TypeError), match=sentence):
        ClassTree.from_nested(nested)


@pytest.mark.parametrize(
    ("edges", "sentence"),
    [
        ([("r", "a"), ("r", "b"), ("x", "y"), ("y", "x")], "cycle through 'x'"),
        ([("r", "a"), ("r", "b"), ("s", "c"), ("s", "d")], "both 'r' and 's' have no parent"),
        ([("r", "a"), ("r", "b"), ("a", "b")], "'b' is the child of both 'r' and 'a'"),
        ([("r", "a")], "'r' has one child"),
        ([("a", "b"), ("b", "a")], "no node without a parent"),
    ],
)
def test_bad_edges_are_refused_in_a_sentence_that_names_the_offender(edges, sentence):
    with pytest.raises(ValueError, match=sentence):
        ClassTree.from_edges(edges)


def test_bad_parent_numbers_are_refused():
    with pytest.raises(ValueError, match="parent of node 1 is given as 7"):
        ClassTree.from_parents([-1, 7, 0])


def test_classes_that_differ_from_the_leaves_are_refused_by_name():
    with pytest.raises(ValueError, match="Class 'eel' is missing"):
        ClassTree.from_nested(PETS, classes=["ant", "bee", "cat", "dog", "eel", "fly"])
    with pytest.raises(ValueError, match="a leaf 'fly', which is not among the 4 classes"):
        ClassTree.from_nested(PETS, classes=["ant", "bee", "cat", "dog"])
    with pytest.raises(KeyError, match="'eel'"):
        ClassTree.from_nested(PETS).path("eel")
    with pytest.raises(KeyError, match="'eel'"):
        ClassTree.from_nested(PETS).restrict(["ant", "eel"])


def test_splits_must_fit_the_leaves():
    with pytest.raises(ValueError, match="3 leaves has 2 splits, got 1"):
        ClassTree(["a", "b", "c"], [0])


def test_a_drawing_of_a_thousand_classes_shows_the_top_and_elides_the_rest(rng):
    names = [f"occupation number {i} with a long title indeed" for i in range(1_000)]
    tree = ClassTree(rng.permutation(names), rng.permutation(999))
    lines = tree.draw(max_lines=25).splitlines()
    assert len(lines) == 25
    assert lines[0] == "[0] 1000 classes"
    assert max(map(len, lines)) < 120
    assert sum("…" in line for line in lines) >= 5
    assert tree.draw(max_lines=1).startswith("[0] 1000 classes: ")


def test_a_drawing_of_a_small_tree_shows_every_class():
    drawing = str(ClassTree.from_nested(PETS))
    assert all(name in drawing for name in ("cat", "dog", "ant", "bee", "fly"))
    assert "…" not in drawing


def test_one_class_is_a_tree_without_nodes():
    tree = ClassTree(["only"], [])
    assert (tree.n_nodes, tree.max_depth, tree.to_nested(), str(tree)) == (0, 0, "only", "only")
    assert np.array_equal(tree.cut(0).node, [-1])
