"""Structures equal independent references where there are any, and each does what its paper says."""

import heapq

import numpy as np
import pytest
from scipy.cluster.hierarchy import linkage
from scipy.sparse import csr_array
from scipy.spatial.distance import cdist
from scipy.special import log_expit
from sklearn.cluster import KMeans
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC

from dichotomies import ClassTree, NestedDichotomyClassifier
from dichotomies._common.parallel import Context
from dichotomies.learners import Wanted, choose
from dichotomies.rows import Rows
from dichotomies.rows.folds import sample_in_folds
from dichotomies.structures import STRUCTURES
from dichotomies.structures.class_points import class_points
from dichotomies.training.judging import LearnerJudge
from dichotomies.training.plan import Plan
from tests.structures.small import clouds, quickly, unordered
from tests.tasks import growing_task, in_folds, node_task


def centroids(X, y):
    return np.array([X[y == label].mean(axis=0) for label in np.unique(y)])


def sides(tree):
    """The two sets of classes at the root."""
    split = tree.split[0]
    return {frozenset(tree.leaf_labels[:split].tolist()), frozenset(tree.leaf_labels[split:].tolist())}


def test_the_first_split_is_that_of_kmeans_on_the_centroids(rng):
    X, y = clouds(rng, 20)
    X[:, 0] += 3 * (y % 3 == 0)
    group = KMeans(2, n_init=20, random_state=0).fit_predict(centroids(X, y))
    tree = STRUCTURES.create("2-means", metric="raw", n_init=20).grow(X, y, random_state=0)
    assert sides(tree) == {frozenset(np.flatnonzero(group == side).tolist()) for side in (0, 1)}


@pytest.mark.parametrize("method", ["ward", "average", "single"])
def test_few_classes_are_joined_as_by_scipy(method, rng):
    for _ in range(10):
        X, y = clouds(rng, 15)  # up to 20 classes a side may be a single class: nothing is limited
        expected = ClassTree.from_linkage(linkage(centroids(X, y), method))
        grown = STRUCTURES.create(method, metric="raw").grow(X, y)
        assert unordered(grown.to_nested()) == unordered(expected.to_nested())


def test_linkage_beyond_the_memory_is_done_in_parts(rng, monkeypatch):
    X, y = clouds(rng, 60)
    monkeypatch.setattr("dichotomies.structures.agglomerative._DISTANCE_BYTES", 8 * 20 * 19 // 2)
    tree = STRUCTURES.create("ward", metric="raw").grow(X, y)
    halves = STRUCTURES.create("balanced-2-means", metric="raw").grow(X, y)
    assert sides(tree) == sides(halves)
    assert sorted(tree.leaf_labels.tolist()) == list(range(60))


def test_distances_within_are_those_of_linear_discriminant_analysis(rng):
    X, y = clouds(rng, 12, n_rows=40, n_features=5)
    X = X @ rng.normal(size=(5, 5))
    points = class_points(growing_task(X, y, np.arange(12)), "within").points
    pooled = LinearDiscriminantAnalysis(solver="eigen", store_covariance=True).fit(X, y)
    ridge = 0.01 * np.trace(pooled.covariance_) / 5 * np.eye(5)
    expected = cdist(
        pooled.means_, pooled.means_, "mahalanobis", VI=np.linalg.inv(pooled.covariance_ + ridge)
    )
    np.testing.assert_allclose(cdist(points, points), expected, rtol=1e-9, atol=1e-9)


def test_reduced_centroids_keep_their_distances(rng):
    X, y = clouds(rng, 30, n_features=900)
    for rows in (X, csr_array(X)):
        task = growing_task(rows, y, np.arange(30))
        points = class_points(task, "raw").points
        assert points.shape == (30, 30)
        means = centroids(X, y)
        np.testing.assert_allclose(cdist(points, points), cdist(means, means), rtol=1e-6, atol=1e-6)


def test_huffman_has_the_least_mean_depth_of_all_trees(rng):
    for k in (2, 3, 10, 57):
        weight = np.ceil(rng.pareto(0.8, size=k)) + rng.integers(0, 2, size=k)
        tree = STRUCTURES.create("huffman").grow(None, np.arange(k), weight)
        assert tree.leaf_depth @ weight[tree.leaf_order] == _huffman_cost(weight)


def _huffman_cost(weight):
    heap, cost = list(weight), 0.0
    heapq.heapify(heap)
    while len(heap) > 1:
        joined = heapq.heappop(heap) + heapq.heappop(heap)
        cost += joined
        heapq.heappush(heap, joined)
    return cost


def test_limited_huffman_is_the_best_of_all_trees_within_the_limit(rng):
    weight = np.array([1.0, 1, 2, 4, 8, 16])
    grown = STRUCTURES.create("huffman", balance=1.0).grow(None, np.arange(6), weight)
    assert grown.max_depth == 3
    random, uniform = np.random.RandomState(0), STRUCTURES.create("uniform")
    trees = [uniform.grow(None, np.arange(6), random_state=random) for _ in range(3_000)]
    costs = [tree.leaf_depth @ weight[tree.leaf_order] for tree in trees if tree.max_depth <= 3]
    assert grown.leaf_depth @ weight[grown.leaf_order] == min(costs)


def test_furthest_centroids_part_and_the_others_follow_the_nearer(rng):
    X, y = clouds(rng, 15)
    means = centroids(X, y)
    distance = cdist(means, means)
    one, other = np.unravel_index(distance.argmax(), distance.shape)
    with_one = frozenset(np.flatnonzero(distance[one] < distance[other]).tolist())
    tree = STRUCTURES.create("furthest-centroids", metric="raw").grow(X, y)
    assert sides(tree) == {with_one, frozenset(range(15)) - with_one}


def test_random_pairs_are_told_apart_by_the_estimator(rng):
    X, y = clouds(rng, 9)
    tree = STRUCTURES.create("random-pair", estimator=GaussianNB()).grow(X, y, random_state=0)
    first = class_points(growing_task(X, y, np.arange(9))).order
    one, other = first[np.random.RandomState(0).permutation(9)[:2]]
    model = GaussianNB().fit(X[np.isin(y, [one, other])], y[np.isin(y, [one, other])])
    most = np.array([np.mean(model.predict(X[y == label]) == one) for label in range(9)])
    assert sides(tree) == {
        frozenset(np.flatnonzero(most > 0.5).tolist()),
        frozenset(np.flatnonzero(most < 0.5)),
    }


def test_many_subsets_find_an_easier_split_than_one(iris):
    for estimator in (None, GaussianNB()):
        tree = STRUCTURES.create("multiple-subset", n_subsets=20, estimator=estimator).grow(
            *iris, random_state=0
        )
        assert unordered(tree.to_nested()) == unordered([0, [1, 2]])


def test_the_judge_is_the_out_of_fold_log_loss_of_the_tree(iris):
    X, y = iris[0], iris[1]
    X = X + 1e-9 * np.arange(len(y))[:, None]  # no two rows are equal
    tree = ClassTree.from_nested([0, [1, 2]])
    folds = np.random.RandomState(0).permutation(150) % 3
    loss = LearnerJudge(Plan(learner=choose(GaussianNB(), "clones")), Rows(X, y, np.unique(y)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dichotomies.rows.folds.fold_of_rows", lambda codes, cv, rng: folds)
        judged = loss(tree, max_rows=1_000, seed=0)
    # groups of equal rows come sorted by class and content, not in the order of the rows
    clf = NestedDichotomyClassifier(GaussianNB(), tree, internal_calibration=None, external_calibration=None)
    order = _order_of_groups(X, y)
    splits = [(order[folds != f], order[folds == f]) for f in range(3)]
    proba = cross_val_predict(clf, X, y, cv=splits, method="predict_proba")
    assert judged == pytest.approx(-np.log(proba[np.arange(150), y]).mean(), rel=1e-9)


def _order_of_groups(X, y):
    return np.lexsort(((X * np.random.RandomState(0).standard_normal(X.shape[1])).sum(axis=1), y))


def test_more_trials_find_trees_that_are_judged_better(digits):
    X, y = digits[0][:600], digits[1][:600]
    judge = LearnerJudge(Plan(learner=choose(LogisticRegression())), Rows(X, y, np.unique(y)))
    task = growing_task(X, y, np.arange(10), None, judge)
    seed = np.random.RandomState(0).randint(2**31 - 1)  # the folds are drawn first

    def loss(name, **params):
        tree = STRUCTURES.create(name, **params).grow_from(task, np.random.RandomState(0))
        return judge(tree, max_rows=20_000, seed=seed)

    assert loss("best-of-k", n_trees=8) < loss("best-of-k", n_trees=1)


def test_fewer_rows_judge_nearly_alike(digits):
    judge = LearnerJudge(Plan(learner=choose(LogisticRegression())), Rows(*digits, np.arange(10)))
    tree = STRUCTURES.create("ward").grow(*digits)
    few, all_rows = (judge(tree, max_rows=rows, seed=0) for rows in (900, 10_000))
    assert all_rows < few < 2 * all_rows


def test_trees_are_judged_with_calibrated_scores_and_with_classes_of_one_row(iris):
    X, y = iris[0], np.where(np.arange(150) == 7, 3, iris[1])
    clf = NestedDichotomyClassifier(LinearSVC(), quickly("best-of-k"), internal_calibration="platt")
    tree = clf.set_params(random_state=0).fit(X, y).tree_
    assert sorted(tree.leaf_labels.tolist()) == [0, 1, 2, 3]


def test_a_hierarchy_of_labels_is_kept(rng):
    labels = np.array([f"{a};{b};{c}" for a in "xyz" for b in "pqrs"[: 2 + ord(a) % 3] for c in "123"])
    X, y = clouds(rng, len(labels))
    for features in (X, None):
        tree = STRUCTURES.create("hierarchy").grow(features, labels[y], random_state=0)
        branches = {frozenset(tree.leaf_labels[a:b]) for a, b in zip(tree.start, tree.stop, strict=True)}
        for prefix in {label.rpartition(";")[0] for label in labels} | {"x;", "y;", "z;"}:
            assert frozenset(label for label in labels if label.startswith(prefix)) in branches


def test_groups_are_refined_by_their_own_rows(rng):
    X, y = clouds(rng, 12)
    one_group = {label: ["all"] for label in range(12)}
    for refine in ("2-means", "ward", "huffman"):
        tree = STRUCTURES.create("hierarchy", paths=one_group, refine=refine).grow(X, y)
        expected = STRUCTURES.create(refine).grow(X, y)
        assert unordered(tree.to_nested()) == unordered(expected.to_nested())


def test_a_class_without_a_path_is_named():
    with pytest.raises(ValueError, match="paths has no entry for class 'b'"):
        STRUCTURES.create("hierarchy", paths={"a": ["x"]}).grow(None, ["a", "b"])


def test_a_group_may_be_given_as_a_text():
    groups = {"cat": "pet", "dog": "pet", "cow": "farm", "hen": "farm"}
    listed = {label: [group] for label, group in groups.items()}
    tree, expected = (
        STRUCTURES.create("hierarchy", paths=paths).grow(None, list(groups), random_state=0)
        for paths in (groups, listed)
    )
    assert tree == expected


def test_texts_without_groups_are_refused_where_numbers_are_not():
    with pytest.raises(ValueError, match=r"';' is in none of the labels .'a/x', .*delimiter=.*levels="):
        STRUCTURES.create("hierarchy").grow(None, ["a/x", "a/y", "b/x"], random_state=0)
    assert STRUCTURES.create("hierarchy").grow(None, [1, 2, 3], random_state=0).n_classes == 3


def test_judging_whole_classes_is_judging_the_tree_over_these_classes(rng):
    X, y = clouds(rng, 12, n_rows=20, spread=0.8)
    tree = STRUCTURES.create("2-means").grow(X, y)
    rows = Rows(X, y, np.unique(y))
    few = LearnerJudge(Plan(learner=choose(GaussianNB())), rows)
    sample = sample_in_folds(rows, 101, 3, np.random.RandomState(3), whole_classes=True)
    chosen = np.unique(sample.codes)
    assert len(chosen) == 5
    inside, only = np.isin(y, chosen), tree.restrict(chosen.tolist())
    restricted = ClassTree(np.searchsorted(chosen, only.leaf_labels), only.split_depth)
    task = in_folds(node_task(restricted, X[inside], np.searchsorted(chosen, sample.codes)), sample.fold)
    scores = choose(GaussianNB()).cross_fit(task, Wanted.SCORES, Context()).scores
    nll = -log_expit(np.where(task.own_pairs().is_left, 1, -1) * scores).sum() / inside.sum()
    assert few(tree, max_rows=101, seed=3, whole_classes=True) == pytest.approx(nll, rel=1e-9)


class DepthJudge:
    """An NLL that falls by so much with every doubling of the mean depth."""

    def __init__(self, gain, is_quick=True):
        self.gain = gain
        self.is_quick = is_quick

    def __call__(self, tree, **sample):
        return 1 - self.gain * np.log2(tree.mean_depth)


def auto_tree(X, y, judge, **params):
    """The tree and what is said about it."""
    task = growing_task(X, y, np.unique(y), None, judge)
    return STRUCTURES.create("auto", **params).grow_from(task, np.random.RandomState(0)), task.notes


@pytest.mark.parametrize(("gain", "expected"), [(-0.1, "2-means"), (0.009, "2-means"), (0.02, "single")])
def test_auto_takes_a_deeper_tree_if_it_saves_enough_for_its_work(gain, expected, rng):
    X, y = clouds(rng, 120, n_rows=3)
    tree, [said] = auto_tree(X, y, DepthJudge(gain), max_work=100)
    assert tree == STRUCTURES.create(expected).grow(X, y)
    assert said.startswith(f"tree: {expected}, of 3 by NLL")


def test_auto_keeps_to_its_budget(rng):
    X, y = clouds(rng, 150, n_rows=3)
    shallow = STRUCTURES.create("2-means").grow(X, y)
    trees = {
        budget: auto_tree(X, y, DepthJudge(0.02), max_work=budget)[0] for budget in (1.0, 4.0, 8.0, 99.0)
    }
    assert trees[1.0] == shallow
    for budget, tree in trees.items():
        assert tree.mean_depth <= budget * shallow.mean_depth
    assert trees[1.0].mean_depth < trees[4.0].mean_depth < trees[99.0].mean_depth
    assert trees[4.0] in [STRUCTURES.create("single", max_classes=m).grow(X, y) for m in (64, 128)]


@pytest.mark.parametrize("judge", [None, DepthJudge(0.02, is_quick=False)])
def test_auto_compares_nothing_without_a_quick_judge(judge, rng):
    X, y = clouds(rng, 120, n_rows=3)
    assert auto_tree(X, y, judge) == (STRUCTURES.create("2-means").grow(X, y), [])


def test_single_linkage_among_few_classes_is_that_of_sets_made_by_two_means(rng):
    X, y = clouds(rng, 60, n_rows=3)
    tree, above = (STRUCTURES.create("single", max_classes=m).grow(X, y) for m in (20, 1))
    assert above == STRUCTURES.create("2-means").grow(X, y)
    assert STRUCTURES.create("single", max_classes=60).grow(X, y) == STRUCTURES.create("single").grow(X, y)
    groups = [set(above.leaf_labels[a:b]) for a, b in zip(above.start, above.stop, strict=True) if b - a > 20]
    assert groups == [
        set(tree.leaf_labels[a:b]) for a, b in zip(tree.start, tree.stop, strict=True) if b - a > 20
    ]
