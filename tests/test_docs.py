"""The documentation points at things that exist."""

import re
from pathlib import Path

import pytest

from dichotomies.calibrators.binary import BINARY
from dichotomies.calibrators.multiclass import MULTICLASS
from dichotomies.learners import LEARNERS
from dichotomies.structures import STRUCTURES
from tests.documented import DOCS, documented

ROOT = Path(__file__).parent.parent
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md")),
    *sorted([*(ROOT / "docs").rglob("*.md"), *(ROOT / "experiments").rglob("*.md")]),
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_relative_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), target


def test_the_numbers_of_the_decision_tables_are_on_the_pages_they_link_to():
    cells = [
        line.split("|")[3] for line in (DOCS / "choosing.md").read_text().splitlines() if line.startswith("|")
    ]
    evidence = [cell for cell in cells if re.search(r"\d\.\d", cell)]
    assert len(evidence) > 10
    for cell in evidence:
        pages = re.findall(r"\(((?:benchmarks/)?\w+\.md)", cell)
        text = "".join((DOCS / page).read_text() for page in pages)
        for number in re.findall(r"\d+\.\d+", cell):
            assert number in text, f"{number} is not on {pages}; measured anew? {cell}"


@pytest.mark.parametrize(
    ("page", "column", "registry"),
    [
        ("structures.md", "needs X", STRUCTURES),
        ("calibration.md", "class", BINARY),
        ("calibration.md", "model", MULTICLASS),
    ],
    ids=["structures", "binary", "multiclass"],
)
def test_the_tables_have_every_registered_name_and_no_other(page, column, registry):
    assert sorted(documented(page, column)) == registry.names()
    assert all(registry.summaries().values())


def test_the_classes_of_binary_calibrators_are_named():
    for name, row in documented("calibration.md", "class").items():
        assert row["class"] == f"`{BINARY.get(name).__name__}`"


@pytest.mark.parametrize("name", LEARNERS.names())
def test_the_estimators_that_have_a_fast_path_are_named(name):
    assert LEARNERS.summaries()[name]
    for estimator in LEARNERS.get(name).trains.values():
        assert f"`{estimator.__name__}" in (DOCS / "learners.md").read_text()


def test_the_files_and_functions_of_the_architecture_exist():
    package = ROOT / "src" / "dichotomies"
    page = (DOCS / "architecture.md").read_text()
    for path in re.findall(r"`((?:[a-z_]+/)+(?:[a-z_]+\.py)?)`", page):
        assert any((root / path).exists() for root in (package, ROOT, ROOT / "experiments")), path
    steps = re.findall(r"^\|[^|]*\|\s*(`[^|]*`)\s*\|[^|]*?`([a-z_/]+\.py)`", page, flags=re.MULTILINE)
    assert len(steps) > 20
    for functions, path in steps:
        source = (package / path).read_text()
        for name in re.findall(r"`[\w.]*?(\w+)`", functions):
            assert re.search(rf"(def|class) {name}\b", source), (name, path)
