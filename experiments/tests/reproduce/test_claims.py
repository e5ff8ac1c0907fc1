"""The paper's claims are questions that its own numbers, and others, can answer either way."""

import math

import pytest

from experiments.reproduce.claims import CLAIMS, LOGISTIC, PrintedMeans
from experiments.reproduce.paper import paper_cells
from experiments.reproduce.readings import BASES, schemes_of


@pytest.fixture
def paper():
    return {key: cell.mean for key, cell in paper_cells().items()}


def verdict(words, means):
    (claim,) = [each for each in CLAIMS if words in each.words]
    return claim.judge(PrintedMeans(means))


def test_all_but_two_claims_hold_in_the_papers_own_tables(paper):
    failed = [claim.words for claim in CLAIMS if not claim.judge(PrintedMeans(paper)).holds]
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
    holding = [claim.words for claim in CLAIMS if claim.judge(PrintedMeans(means)).holds]
    # that accuracy is greater without the external step is the one that is about its failing
    assert holding == ["Boosted trees: accuracy is often greater with internal calibration alone."]


def test_nothing_is_said_where_nothing_was_run():
    assert all(claim.judge(PrintedMeans({})).holds is None for claim in CLAIMS)


def test_accuracy_must_fall_and_nll_improve_by_a_tenth_on_every_set_that_was_run(paper):
    words = "costs accuracy on micromass and ILSVR2010"
    assert verdict(words, paper) == (
        True,
        "micromass: NLL -68%, accuracy -0.032; ILSVR2010: NLL -10%, accuracy -0.010",
    )
    more_accurate = paper | {("accuracy", LOGISTIC, "ILSVR2010", "external_vs"): 0.07}
    hardly_better = paper | {("nll", LOGISTIC, "ILSVR2010", "external_vs"): 0.91 * 6.442}
    assert not verdict(words, more_accurate).holds
    assert not verdict(words, hardly_better).holds


def test_a_stand_in_is_judged_where_the_papers_set_was_not_run(paper):
    ours = {
        (metric, base, "kanji_fonts", scheme): mean
        for (metric, base, dataset, scheme), mean in paper.items()
        if dataset == "ILSVR2010"
    }
    found = verdict("costs accuracy on micromass and ILSVR2010", ours)
    assert found == (True, "kanji_fonts: NLL -10%, accuracy -0.010")


def test_where_no_set_of_more_classes_was_run_their_gain_is_not_judged(paper):
    few = {key: mean for key, mean in paper.items() if key[2] in ("optdigits", "micromass", "letter")}
    assert verdict("raises accuracy a lot", few) == (None, "not run")
    assert verdict("raises accuracy a lot", paper).holds


def test_a_dataset_counts_only_with_all_its_schemes(paper):
    del paper["nll", "naive_bayes", "letter", "both_ps"]
    assert "letter" not in PrintedMeans(paper).datasets("naive_bayes")
    assert "letter" in PrintedMeans(paper).datasets(LOGISTIC)


def test_gains_are_positive_where_something_is_better(paper):
    table = PrintedMeans(paper)
    for base in BASES:
        for dataset in table.datasets(base):
            for metric, sign in (("nll", -1), ("accuracy", 1)):
                gain = table.gain(metric, base, dataset, "external_vs")
                own, none = (paper[metric, base, dataset, each] for each in ("external_vs", "none"))
                assert math.isclose(gain, sign * (own - none), abs_tol=1e-9)
