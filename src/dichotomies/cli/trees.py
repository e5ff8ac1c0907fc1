"""Statistics of the trees of a fitted classifier."""

from typing import Any


def trees_of(classifier: Any) -> list[Any]:
    """Return all trees; none if the classifier is not a nested dichotomy or an ensemble of them."""
    if hasattr(classifier, "trees_"):
        return list(classifier.trees_)
    return [classifier.tree_] if hasattr(classifier, "tree_") else []


def facts_of_trees(classifier: Any) -> dict[str, Any]:
    """Return the number of trees, the maximum depth, the number of nodes, and of distinct nodes."""
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
    """Describe the result of `facts_of_trees`."""
    if facts["trees"] == 1:
        return f"a tree of depth {facts['depth']}"
    return (
        f"{facts['trees']:,} trees of depth {facts['depth']} at most, {facts['different_nodes']:,} of their "
        f"{facts['nodes']:,} nodes different"
    )
