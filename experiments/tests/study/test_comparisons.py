"""Numbers are compared with those of the same dataset, base learner, calibration and repeat."""

import csv

import pytest

from experiments.study.answers import answers, coverage, omissions
from experiments.study.comparisons import Change, Comparisons, Key
from experiments.study.grids import grids, nll
from experiments.study.limits import LIMITS
from experiments.study.long_table import write_csv


def key(structure, calibration="none", dataset="letter", learner="naive_bayes"):
    return Key(dataset, learner, structure, calibration)


@pytest.fixture
def found(make_result):
    """Two structures on two datasets, before and after calibration; "letter" has repeats."""
    made = [
        make_result(2.0, 1.0, structure="random", repeat=0),
        make_result(4.0, 2.0, structure="random", repeat=1),
        make_result(1.0, 10.0, structure="ward", repeat=1),
        make_result(8.0, 90.0, structure="ward", repeat=2),
        make_result(1.0, 4.0, structure="random", calibration="both", repeat=0),
        make_result(0.5, 6.0, structure="ward", calibration="both", repeat=0),
        make_result(3.0, 5.0, structure="random", dataset="optdigits"),
        make_result(1.5, 50.0, structure="ward", dataset="optdigits"),
        make_result(6.0, 5.0, structure="random", dataset="optdigits", calibration="both"),
        make_result(0.9, 5.0, structure="ward", dataset="optdigits", calibration="both"),
    ]
    return Comparisons(made)


def test_time_is_relative_to_the_random_tree_of_the_same_trial(found):
    assert found.to_random(key("ward"), "fit_seconds") == 10 / 2  # the only repeat they share
    assert found.to_random(key("ward", "both"), "fit_seconds") == 6 / 4
    assert found.to_random(key("ward", dataset="optdigits"), "fit_seconds") == 50 / 5
    assert found.to_random(key("random"), "fit_seconds") == 1


def test_an_nll_of_zero_can_be_compared(make_result, tmp_path):
    certain = Comparisons(
        [make_result(nll, 1.0, structure=name) for nll, name in ((0.0, "random"), (0.0, "ward"))]
    )
    assert certain.to_random(key("ward")) == 1
    assert certain.means_to_random() == {"random": 1.0, "ward": 1.0}
    write_csv(certain, tmp_path / "long.csv")
    assert len((tmp_path / "long.csv").read_text().splitlines()) == 3


def test_without_a_common_repeat_nothing_is_compared(found):
    assert found.gain(key("ward", "both")) is None
    assert found.to_random(key("2-means")) is None
    assert found.to_random(key("ward", learner="boosted_trees")) is None


def test_the_mean_over_all_cases_is_of_structures_that_were_run_in_all(found, make_result):
    expected = (1 / 4 * 0.5 / 1.0 * 1.5 / 3.0 * 0.9 / 6.0) ** (1 / 4)
    assert found.means_to_random() == pytest.approx({"random": 1.0, "ward": expected})
    results = [result for each in found.combinations() for result in found.results(each)]
    more = Comparisons([*results, make_result(0.1, 1.0, structure="huffman", repeat=0)])
    assert "huffman" not in more.means_to_random()


def test_a_gain_is_relative_to_the_same_tree_uncalibrated(found):
    assert found.gain(key("random", "both")) == 1 / 2 - 1
    assert found.gain(key("ward", "both", "optdigits")) == pytest.approx(0.9 / 1.5 - 1)


def test_changes_count_the_datasets_on_which_the_nll_is_lower(found):
    assert found.change(["naive_bayes"], ["random"], "both") == Change(2, 1, (-0.5 + 1.0) / 2)
    assert found.change(["naive_bayes"], ["random"], "internal") is None


def test_deeper_trees_that_gain_more_are_negatively_correlated(make_result):
    structures = ("random", "ward", "2-means", "huffman", "uniform")
    results = [
        make_result(nll, structure=name, calibration=calibration, mean_depth=depth)
        for depth, name in enumerate(structures)
        for calibration, nll in {"none": 1.0, "both": 0.9 - 0.1 * depth, "internal": depth + 0.0}.items()
    ]
    found = Comparisons(results)
    assert found.depth_correlation("both") == pytest.approx(-1)
    assert found.depth_correlation("internal") == pytest.approx(1)
    assert Comparisons(results[:12]).depth_correlation("both") is None


def test_ranks_are_of_structures_run_on_every_dataset(found, make_result):
    assert found.ranks("naive_bayes", "both") == {"random": 2.0, "ward": 1.0}
    one_more = make_result(0.1, structure="2-means", calibration="both")
    results = [each for name in found.combinations() for each in found.results(name)]
    assert "2-means" not in Comparisons([*results, one_more]).ranks("naive_bayes", "both")


def test_the_table_of_nll_shows_random_trees_themselves_and_others_relative_to_them(found):
    table = nll(found, "naive_bayes", "none")
    assert table.header == ("structure", "optdigits", "letter", "mean rank")
    shown = [[words.text for words in line.words] for line in table.lines]
    assert shown == [["random, NLL", "3.000", "3.000", "2.0"], ["ward", "0.50", "0.25", "1.0"]]


def test_answers_are_made_of_the_numbers(found):
    said = answers(found)
    assert "Both together lower the NLL in 1 of 2 cases with random trees and in 1 of 1 cases" in said
    assert "the median changes are +25.0 % and −40.0 %" in said
    assert "is lowest, of 2 structures, with ward" in said
    assert coverage(found).startswith("10 trials of 8 combinations")


def test_every_limit_is_said_with_its_reason():
    said = omissions()
    assert all(f"- {limit.what}: {limit.reason}.\n" in said for limit in LIMITS)


def test_grids_have_lines_as_wide_as_their_headers(found):
    made = grids(found)
    assert [grid.name for grid in made] == [
        "gains/naive_bayes",
        "nll/naive_bayes/none",
        "nll/naive_bayes/both",
        "overview/naive_bayes",
        "costs",
    ]
    assert all(len(line.words) == len(grid.header) for grid in made for line in grid.lines)


def test_the_long_table_has_a_line_for_each_combination(found, tmp_path):
    write_csv(found, tmp_path / "t.csv")
    with (tmp_path / "t.csv").open(encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    assert [(line["dataset"], line["structure"], line["calibration"]) for line in lines] == [
        (name.dataset, name.structure, name.calibration) for name in found.combinations()
    ]
    (line,) = [each for each in lines if each["dataset"] == "letter" and each["structure"] == "ward"][:1]
    assert (line["repeats"], line["nll"], line["nll_to_random"]) == ("2", "4.5", "0.25")
    assert line["fit_seconds_to_random"] == "5"
