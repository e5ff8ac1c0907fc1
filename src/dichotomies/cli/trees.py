"""The trees of a fitted classifier, one or several, in numbers and in words."""

from typing import Any


def trees_of(classifier: Any) -> list[Any]:
    """All trees; none where the classifier is not made of nested dichotomies."""
    if hasattr(classifier, "trees_"):
        return list(classifier.trees_)
    return [classifier.tree_] if hasattr(classifier, "tree_") else []


def facts_of_trees(classifier: Any) -> dict[str, Any]:
    """How many trees there are, the depth of the deepest, their nodes, and how many of these differ."""
    trees = trees_of(classifier)
    if not trees:
        return {}
    nodes = sum(tree.n_nodes for tree in trees)
    return {
        "trees": len(trees),
        "depth": max(tree.max_depth for tree in trees),
        "nodes": nodes,
        "different_nodes": getattr(classifier, "n_different_nodes_", nodes),
    }


def trees_in_words(facts: dict[str, Any]) -> str:
    """What `facts_of_trees` has found."""
    if facts["trees"] == 1:
        return f"a tree of depth {facts['depth']}"
    return (
        f"{facts['trees']:,} trees of depth {facts['depth']} at most, {facts['different_nodes']:,} of their "
        f"{facts['nodes']:,} nodes different"
    )
