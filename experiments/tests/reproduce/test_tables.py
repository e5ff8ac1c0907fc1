"""Tables are the means, deviations and differences of the results they are made of."""

import pytest

from experiments.reproduce.agreement import agreement
from experiments.reproduce.costs import costs
from experiments.reproduce.grids import grid_of_table
from experiments.reproduce.paper import CROSS_VALIDATED, SPLIT_ONCE, PaperCell, paper_cells
from experiments.reproduce.readings import BASES, READINGS, schemes_of
from experiments.reproduce.stand_ins import PAPER_DATASETS, USUAL, paper_dataset
from experiments.reproduce.tables import TABLES, aggregates, make_table, on_common_splits, printed_mean
from experiments.reproduce.verdicts import judged

IMPLIED = "as-numbers-imply"


def cell_of(table, base, dataset, scheme):
    (row,) = [row for row in table.rows if (row.base, row.subject.dataset) == (base, dataset)]
    return row.cells[table.kind.schemes.index(scheme)]


def test_the_paper_has_a_cell_for_every_metric_base_dataset_and_scheme():
    assert set(paper_cells()) == {
        (metric, base, dataset, scheme)
        for metric in ("nll", "accuracy")
        for base in BASES
        for dataset in (*CROSS_VALIDATED, *SPLIT_ONCE)
        for scheme in schemes_of(base)
    }
    assert len(paper_cells()) == 252


def test_the_papers_means_are_printed_as_we_print_ours():
    for cell in paper_cells().values():
        assert printed_mean(cell.mean) == cell.mean_text


def test_a_deviation_printed_as_zero_counts_as_half_of_its_last_digit():
    cell = PaperCell("accuracy", "naive_bayes", "RCV1", "external_vs", 0.781, 0.0, "0.781")
    assert cell.difference(0.786) == pytest.approx(1.0)


def test_mean_and_deviation_are_those_of_the_results(make_result, rng):
    values = rng.random(7)
    results = [make_result(nll=value, fold=fold) for fold, value in enumerate(values)]
    cell = cell_of(make_table(TABLES["poor-nll"], IMPLIED, results), "naive_bayes", "letter", "none")
    assert cell.ours.n == 7
    assert cell.ours.mean == pytest.approx(values.mean())
    assert cell.ours.sd == pytest.approx(values.std(ddof=1))
    assert cell.difference == pytest.approx((values.mean() - 2.338) / 0.08)


def test_a_single_result_has_no_deviation(make_result):
    (only,) = aggregates([make_result(accuracy=0.25)], "accuracy").values()
    assert (only.n, only.mean, only.sd) == (1, 0.25, None)


def test_results_of_another_reading_are_left_out(make_result):
    results = [make_result(nll=1.0), make_result(nll=5.0, reading="as-printed")]
    means = [
        cell_of(make_table(TABLES["poor-nll"], reading, results), "naive_bayes", "letter", "none").ours.mean
        for reading in READINGS
    ]
    assert sorted(means) == [1.0, 5.0]


def test_the_best_of_a_row_is_the_lowest_nll_and_the_highest_accuracy_as_printed(make_result):
    results = [
        make_result(nll=nll, accuracy=accuracy, scheme=scheme)
        for scheme, nll, accuracy in [
            ("none", 0.9004, 0.3),
            ("external_vs", 0.9001, 0.7),
            ("internal_ps", 0.95, 0.5),
        ]
    ]
    best = {}
    for kind in ("poor-nll", "poor-accuracy"):
        (row,) = make_table(TABLES[kind], IMPLIED, results).rows
        best[kind] = [cell.best for cell in row.cells]
    assert best["poor-nll"] == [True, True, False, False, False, False]
    assert best["poor-accuracy"] == [False, True, False, False, False, False]


def test_schemes_are_compared_on_the_splits_that_all_of_them_have(make_result):
    results = [make_result(nll=nll, fold=fold) for fold, nll in enumerate((1.0, 3.0, 500.0))]
    results += [make_result(nll=nll, fold=fold, scheme="both_ps") for fold, nll in ((0, 5.0), (1, 9.0))]
    table = make_table(TABLES["poor-nll"], IMPLIED, results)
    none, both = (cell_of(table, "naive_bayes", "letter", scheme) for scheme in ("none", "both_ps"))
    assert (none.ours.n, none.ours.mean, none.best) == (2, 2.0, True)
    assert (both.ours.n, both.ours.mean, both.best) == (2, 7.0, False)
    assert grid_of_table(table).lines[0].words[2].text == "ours, 2 runs"


def test_without_a_common_split_all_are_shown_and_none_is_the_best(make_result):
    results = [make_result(nll=1.0, fold=0)]
    results += [make_result(nll=5.0, fold=fold, scheme="both_ps") for fold in (1, 2, 3)]
    (row,) = make_table(TABLES["poor-nll"], IMPLIED, results).rows
    assert row.runs == (1, 3)
    assert not any(cell.best for cell in row.cells)
    grid = grid_of_table(make_table(TABLES["poor-nll"], IMPLIED, results))
    assert grid.lines[0].words[2].text == "ours, 1 to 3 runs"


def test_one_row_without_common_splits_leaves_the_others_alone(make_result):
    apart = [make_result(fold=0), make_result(fold=1, scheme="both_ps")]
    whole = [make_result(fold=fold, dataset="optdigits") for fold in (0, 1)]
    assert on_common_splits([*apart, *whole]) == whole


def test_the_papers_best_are_those_it_prints_in_bold(make_result):
    results = [make_result(dataset=name, base=base) for name in ("optdigits", "letter") for base in BASES[1:]]
    bold = {
        (row.base, row.subject.row): [cell.paper.scheme for cell in row.cells if cell.paper_best]
        for row in make_table(TABLES["poor-nll"], IMPLIED, results).rows
    }
    assert bold == {
        ("naive_bayes", "optdigits"): ["both_ir"],
        ("naive_bayes", "letter"): ["both_ir"],
        ("boosted_trees", "optdigits"): ["both_ps"],
        ("boosted_trees", "letter"): ["both_ps"],
    }


def test_a_stand_in_shows_the_papers_numbers_but_no_difference(make_result):
    (row,) = make_table(TABLES["poor-nll"], IMPLIED, [make_result(dataset="nhcd")]).rows
    assert row.subject.title == "nhcd, standing in for devanagari"
    assert row.cells[0].paper.mean == 13.14
    assert row.cells[0].difference is None


def test_rows_are_in_the_papers_order_whatever_the_order_of_results(make_result):
    names = ["wordnet", "nhcd", "letter", "optdigits", "reuters52"]
    table = make_table(TABLES["poor-nll"], IMPLIED, [make_result(dataset=name) for name in names])
    assert [row.subject.dataset for row in table.rows] == [
        "optdigits",
        "letter",
        "nhcd",
        "reuters52",
        "wordnet",
    ]


def test_agreement_counts_the_cells_within_two_deviations(make_result):
    near, far = 2.338 + 1.9 * 0.08, 2.155 - 2.1 * 0.08
    results = [
        make_result(nll=near, accuracy=0.329),
        make_result(nll=far, accuracy=0.364, scheme="external_vs"),
        make_result(nll=99.0, dataset="nhcd"),  # nothing to compare with
    ]
    found = agreement(make_table(TABLES[name], IMPLIED, results) for name in ("poor-nll", "poor-accuracy"))
    assert found.counts() == {("naive_bayes", "letter"): (3, 4)}
    (exception,) = found.exceptions
    assert exception.cell.paper.scheme == "external_vs"
    assert exception.difference == pytest.approx(-2.1)


def test_agreement_is_judged_for_one_reading(make_result):
    tables = [make_table(TABLES["poor-nll"], reading, [make_result()]) for reading in READINGS]
    with pytest.raises(ValueError, match="one reading at a time"):
        agreement(tables)


def test_every_row_of_the_paper_has_its_dataset_and_one_that_is_run_by_default():
    rows = [*CROSS_VALIDATED, *SPLIT_ONCE]
    assert [subject.row for subject in PAPER_DATASETS if not subject.stands_in] == rows
    assert [subject.row for subject in USUAL] == rows


def test_an_unknown_dataset_is_answered_with_those_there_are():
    with pytest.raises(ValueError, match="'iris'; choose from optdigits"):
        paper_dataset("iris")


def test_costs_are_those_of_the_trials_under_the_reading(make_result):
    results = [
        make_result(seconds=1.0),
        make_result(seconds=3.0, scheme="both_ir"),
        make_result(seconds=100.0, reading="as-printed"),
        make_result(seconds=7.0, dataset="optdigits", base="boosted_trees"),
    ]
    digits, letter = costs(IMPLIED, results)
    assert (digits.subject.dataset, digits.base, digits.n, digits.seconds) == (
        "optdigits",
        "boosted_trees",
        1,
        7.0,
    )
    assert (letter.n, letter.seconds, letter.megabytes, letter.largest.n_train) == (2, 2.0, 100.0, 90)


def test_claims_are_judged_by_the_papers_numbers_and_by_ours(make_result):
    logistic = {"base": "logistic_regression"}
    results = [make_result(nll=1.0, **logistic), make_result(nll=2.0, scheme="external_vs", **logistic)]
    first = judged(IMPLIED, results)[0]
    assert first.claim.words == "Logistic regression: external calibration lowers the NLL on all datasets."
    assert first.paper.holds is True
    assert first.ours.holds is False
    assert judged("as-printed", results)[0].ours.holds is None


def test_claims_are_judged_on_common_splits(make_result):
    logistic = {"base": "logistic_regression"}
    results = [
        make_result(nll=3.0, **logistic),
        make_result(nll=2.0, scheme="external_vs", **logistic),
        make_result(nll=0.1, fold=1, **logistic),  # without it the claim holds
    ]
    assert judged(IMPLIED, results)[0].ours.holds is True
    assert judged(IMPLIED, results[1:])[0].ours.holds is None
