"""The paper's claims are questions that its own numbers, and others, can answer either way."""

import math

import pytest

from dichotomies.experiments.claims import CLAIMS, LOGISTIC, Table
from dichotomies.experiments.paper import paper_cells
from dichotomies.experiments.readings import BASES, schemes_of


@pytest.fixture
def paper():
    return {key: cell.mean for key, cell in paper_cells().items()}


def verdict(words, means):
    (claim,) = [each for each in CLAIMS if words in each.words]
    return claim.judge(Table(means))


def test_all_but_two_claims_hold_in_the_papers_own_tables(paper):
    failed = [claim.words for claim in CLAIMS if not claim.judge(Table(paper)).holds]
    assert [words[:40] for words in failed] == [
        "There are very few cases where the basel",
        "Boosted trees: internal Platt scaling al",
    ]


def test_the_exception_is_named(paper):
    assert verdict("internal Platt scaling always", paper).evidence == "17 of 18; not ALOI (trees, NLL)"


def test_every_claim_fails_where_calibration_makes_everything_worse(paper):
    def worse(key):
        metric, base, dataset, scheme = key
        step = schemes_of(base).index(scheme)
        return 1 + step if metric == "nll" else 0.9 - 0.01 * step * (1 + (dataset in ("optdigits",)))

    means = {key: worse(key) for key in paper}
    holding = [claim.words for claim in CLAIMS if claim.judge(Table(means)).holds]
    # that accuracy is greater without the external step is the one that is about its failing
    assert holding == ["Boosted trees: accuracy is often greater with internal calibration alone."]


def test_nothing_is_said_where_nothing_was_run():
    assert all(claim.judge(Table({})).holds is None for claim in CLAIMS)


def test_a_dataset_counts_only_with_all_its_schemes(paper):
    del paper["nll", "naive_bayes", "letter", "both_ps"]
    assert "letter" not in Table(paper).datasets("naive_bayes")
    assert "letter" in Table(paper).datasets(LOGISTIC)


def test_gains_are_positive_where_something_is_better(paper):
    table = Table(paper)
    for base in BASES:
        for dataset in table.datasets(base):
            for metric, sign in (("nll", -1), ("accuracy", 1)):
                gain = table.gain(metric, base, dataset, "external_vs")
                own, none = (paper[metric, base, dataset, each] for each in ("external_vs", "none"))
                assert math.isclose(gain, sign * (own - none), abs_tol=1e-9)
