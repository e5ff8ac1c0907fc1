"""Laws of structures: data of any shape, any names, weights, sparse or dense rows, any number of workers."""

import tracemalloc
from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csc_array, csr_array, csr_matrix, random_array
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

from dichotomies import ClassTree, NestedDichotomyClassifier
from dichotomies.structures import STRUCTURES
from dichotomies.structures.base import depth_bound
from tests.documented import documented
from tests.slow import slow
from tests.structures.small import HARD, check_names_do_not_count, clouds, hard, quickly

NAMES = STRUCTURES.names()
NEEDS_X = {name: row["needs X"] == "yes" for name, row in documented("structures.md", "needs X").items()}
BALANCED = [name for name in NAMES if "balance" in STRUCTURES.create(name).get_params()]
NAMELESS = [name for name in NAMES if name != "random"]  # whose docstring says why not


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("k", [2, 3, 7, 100, *slow(2_000)])
@pytest.mark.parametrize("kind", HARD)
def test_every_structure_yields_a_tree_over_the_classes(name, k, kind, rng):
    tree = quickly(name).grow(*hard(kind, k, rng), random_state=0)
    assert isinstance(tree, ClassTree)
    assert sorted(tree.leaf_labels.tolist()) == list(range(k))
    assert (tree.start < tree.split).all()
    assert (tree.split < tree.stop).all()


@pytest.mark.parametrize("name", NAMELESS)
@pytest.mark.parametrize("n_features", [6, 600])
def test_permuting_the_names_permutes_the_tree(name, n_features, rng):
    X, y = clouds(rng, 40, n_features=n_features)
    check_names_do_not_count(lambda names: quickly(name).grow(X, names[y], random_state=0), 40, rng)


@pytest.mark.parametrize("name", NAMELESS)
@pytest.mark.parametrize("k", [3, 7, *slow(300)])
@pytest.mark.parametrize("kind", HARD)
def test_names_break_no_ties(name, k, kind, rng):
    X, y = hard(kind, k, rng)
    check_names_do_not_count(lambda names: quickly(name).grow(X, names[y], random_state=0), k, rng)


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("2-means", {"n_init": 4}),
        ("random-pair", {"estimator": DecisionTreeClassifier(max_features=2)}),
        ("multiple-subset", {"estimator": DecisionTreeClassifier(max_features=2)}),
        ("best-of-k", {"structure": "data-balanced"}),
    ],
)
def test_names_do_not_count_whatever_the_parameters(name, params, rng):
    X, y = clouds(rng, 20, spread=1.0)
    structure = quickly(name, **params)
    check_names_do_not_count(lambda names: structure.grow(X, names[y], random_state=0), 20, rng)


def test_names_do_not_count_among_the_groups_of_a_hierarchy(rng):
    X, y = clouds(rng, 60)
    for features, refine in product((X, None), (None, "random", "huffman")):

        def grown(names, features=features, refine=refine):
            paths = {int(names[i]): [f"group {i % 7}"] for i in range(60)}
            structure = STRUCTURES.create("hierarchy", paths=paths, refine=refine)
            return structure.grow(features, names[y], random_state=0)

        check_names_do_not_count(grown, 60, rng)


@pytest.mark.parametrize("name", NAMES)
def test_weight_two_is_a_row_twice(name, rng):
    X, y = clouds(rng, 30)
    weight = rng.integers(0, 3, size=len(y)).astype(float)
    weight[len(y) - 1 - np.unique(y[::-1], return_index=True)[1]] = 1  # first rows may be without weight
    again = np.repeat(np.arange(len(y)), weight.astype(int))
    weighted = quickly(name).grow(X, y, weight, random_state=0)
    assert weighted == quickly(name).grow(X[again], y[again], random_state=0)
    if name in NAMELESS:  # the others do not look at the rows at all
        assert weighted != quickly(name).grow(X, y, random_state=0)


@pytest.mark.parametrize("name", NAMES)
def test_the_order_of_the_rows_counts_only_between_classes_of_equal_weight(name, rng):
    X, y = clouds(rng, 20)
    weight = 1.0 + y
    shuffled = rng.permutation(len(y))
    tree = quickly(name).grow(X, y, weight, random_state=0)
    assert quickly(name).grow(X[shuffled], y[shuffled], weight[shuffled], random_state=0) == tree


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("n_features", [8, 700])
def test_sparse_rows_grow_the_tree_of_the_dense_ones(name, n_features, rng):
    X, y = clouds(rng, 25, n_features=n_features)
    X[rng.random(X.shape) < 0.5] = 0
    assert quickly(name).grow(csr_array(X), y, random_state=0) == quickly(name).grow(X, y, random_state=0)


@pytest.mark.parametrize("metric", ["raw", "within", "cosine"])
def test_every_metric_gives_the_same_tree_sparse_and_dense(metric, rng):
    for n_features in (8, 700):
        X, y = clouds(rng, 25, n_features=n_features)
        structure = STRUCTURES.create("2-means", metric=metric)
        assert structure.grow(csr_array(X), y) == structure.grow(X, y)


@pytest.mark.parametrize("name", NAMES)
def test_rows_may_come_in_any_form(name, rng):
    X, y = clouds(rng, 6)
    expected = quickly(name).grow(X, y, random_state=0)
    for form in (X.tolist(), pd.DataFrame(X), csc_array(X), csr_matrix(X)):
        assert quickly(name).grow(form, y.tolist(), random_state=0) == expected


def test_classes_without_weight_have_a_place(rng):
    X, y = clouds(rng, 12)
    weight = np.where(y < 4, 0.0, 1.0)
    for name in NAMES:
        for rows in (X, csr_array(np.hstack([X, np.zeros((len(y), 600))]))):
            assert quickly(name).grow(rows, y, weight, random_state=0).n_classes == 12


@pytest.mark.parametrize("name", BALANCED)
@pytest.mark.parametrize("balance", [1.0, *slow(0.0, 0.4)])
def test_no_leaf_is_deeper_than_the_bound(name, balance, rng):
    y = np.arange(300)
    chain = 2.0 ** -np.arange(300)[:, None]  # every class is an outlier among the ones after it
    weight = 1.5 ** np.arange(300)
    for X in (chain, np.ones((300, 1)), rng.normal(size=(300, 5)) ** 9):
        structure = quickly(name, balance=balance)
        if "metric" in structure.get_params():
            structure.set_params(metric="raw")
        tree = structure.grow(X, y, weight, random_state=0)
        assert tree.max_depth <= depth_bound(300, balance)


def test_the_bound_is_the_stated_formula():
    for balance in np.linspace(0, 0.99, 23):
        share = max(0.05, balance / 2)
        for k in (2, 3, 10, 101, 1_000, 6_142):
            assert depth_bound(k, balance) <= np.log(k) / -np.log1p(-share) + 1
    assert all(depth_bound(k, 1.0) == np.ceil(np.log2(k)) for k in range(2, 1_000))


@pytest.mark.parametrize("name", BALANCED)
def test_balance_is_a_number_from_zero_to_one(name, rng):
    X, y = clouds(rng, 5)
    for balance in (-0.1, 1.1, "half"):
        with pytest.raises(ValueError, match=r"balance must be a number from 0 .* to 1"):
            quickly(name, balance=balance).grow(X, y)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("container", [np.asarray, csr_array])
def test_gaps_are_filled_with_the_mean_of_the_feature(name, container, rng):
    X, y = clouds(rng, 20)
    holes = X.copy()
    holes[rng.random(X.shape) < 0.1] = np.nan
    holes[3, 2], holes[:, 5] = np.inf, np.nan
    known = np.where(np.isfinite(holes), holes, np.nan)
    mean = np.append(np.nanmean(known[:, :5], axis=0), 0.0)
    filled = np.where(np.isfinite(holes), holes, mean)
    grown = [quickly(name).grow(container(each), y, random_state=0) for each in (holes, filled)]
    assert grown[0] == grown[1]


@pytest.mark.parametrize("name", NAMES)
def test_features_that_are_needed_and_not_there_are_refused_in_a_sentence(name, rng):
    _, y = clouds(rng, 5)
    if NEEDS_X[name]:
        with pytest.raises(ValueError, match=r"looks at the features, but X is None"):
            quickly(name).grow(None, y, random_state=0)
    else:
        assert quickly(name).grow(None, y, random_state=0).n_classes == 5


def test_an_unknown_metric_is_refused(rng):
    with pytest.raises(ValueError, match=r"metric must be one of .*'cosine'.*got 'euclid'"):
        STRUCTURES.create("ward", metric="euclid").grow(*clouds(rng, 5))


@pytest.mark.parametrize("name", ["average", *slow(*(n for n in NAMES if NEEDS_X[n] and n != "average"))])
def test_a_million_features_take_no_dense_class_by_feature_matrix(name):
    k, n_features = 300, 10**6
    X = csr_array(random_array((600, n_features), density=2e-5, rng=np.random.default_rng(0), format="csr"))
    y = np.arange(600) % k
    quickly(name).grow(X[:20], y[:20], random_state=0)  # imports are not counted
    tracemalloc.start()
    quickly(name).grow(X, y, random_state=0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100e6  # 300 x 1,000,000 numbers would be 2.4 GB


@pytest.mark.parametrize("name", NAMES)
def test_the_tree_does_not_depend_on_the_number_of_workers(name, rng):
    X, y = clouds(rng, 8, spread=1.0)
    trees = [
        NestedDichotomyClassifier(LogisticRegression(), quickly(name), n_jobs=n_jobs, random_state=0)
        .fit(X, y)
        .tree_
        for n_jobs in (1, 2)
    ]
    assert trees[0] == trees[1]


def test_names_do_not_count_where_a_classifier_judges(rng):
    X, y = clouds(rng, 12, spread=0.8)

    def grown(names):
        clf = NestedDichotomyClassifier(
            GaussianNB(),
            quickly("best-of-k"),
            internal_calibration=None,
            external_calibration=None,
            random_state=0,
        )
        return clf.fit(X, names[y]).tree_

    check_names_do_not_count(grown, 12, rng)
