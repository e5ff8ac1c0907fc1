"""The report's layout in a real browser, at the widths of a phone and of a desk, and with a deep tree."""

import pytest

pytest.importorskip("selenium", reason="browser tests need selenium")

from selenium.webdriver.common.by import By
from sklearn.naive_bayes import GaussianNB

from dichotomies import NestedDichotomyClassifier
from dichotomies.report import make
from tests.report.test_browser import open_page, until


@pytest.fixture(params=[390, 1200], ids=["phone", "desktop"])
def width(request, browser):
    metrics = {"width": request.param, "height": 800, "deviceScaleFactor": 1, "mobile": request.param < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    yield request.param
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


@pytest.fixture(scope="module")
def deep_report(rows):
    labels = [f"class {i}" for i in range(71)]
    chain = labels[0]
    for label in labels[1:]:
        chain = [chain, label]
    X, y = rows(labels, 800)
    return make(NestedDichotomyClassifier(GaussianNB(), chain, random_state=0).fit(X, y.astype(str)), X, y)


@pytest.mark.parametrize("report", ["digits_report", "hostile_report", "deep_report"])
def test_nothing_sticks_out_at_any_width(browser, report, tmp_path, width, request):
    open_page(browser, request.getfixturevalue(report), tmp_path)
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    fits = "const nav = document.querySelector('.bar nav'); return nav.scrollWidth <= nav.clientWidth"
    assert browser.execute_script(fits)


def test_tables_that_scroll_say_so(browser, digits_report, tmp_path, width):
    open_page(browser, digits_report, tmp_path)
    browser.execute_script("for (const e of document.querySelectorAll('details')) e.open = true")
    state = "return [...document.querySelectorAll('.scroll')].map((e) => "
    state += "[e.scrollWidth > e.clientWidth + 1, !e.previousElementSibling.hidden, e.className])"
    until(browser, lambda: all(wide == told for wide, told, _ in browser.execute_script(state)))
    found = browser.execute_script(state)
    assert any(wide for wide, _, _ in found) == (width < 600)
    assert all(name == ("scroll more" if wide else "scroll") for wide, _, name in found)
    browser.execute_script("for (const e of document.querySelectorAll('.scroll')) e.scrollLeft = 10000")
    until(browser, lambda: all(name == "scroll" for _, _, name in browser.execute_script(state)))


def test_a_deep_tree_says_what_is_left_out_and_can_be_opened(browser, deep_report, tmp_path):
    open_page(browser, deep_report, tmp_path)
    axis = "return treeChart.getOption().yAxis[0].max"
    assert browser.execute_script(axis) == 32
    said = browser.find_element(By.ID, "left-out-text")
    assert said.text == "39 of 71 levels are left out below; click a box to open it."
    button = browser.find_element(By.ID, "all-levels")
    browser.execute_script("arguments[0].click()", button)
    assert browser.execute_script(axis) == 71
    assert said.text == "All 71 levels are shown."
    assert browser.execute_script("return treeChart.getHeight() / 71") > 15
    browser.execute_script("arguments[0].click()", button)
    assert browser.execute_script(axis) == 32
    browser.execute_script("show(tree.left.findIndex((_, node) => tree.depth[node] === 31))")
    assert browser.execute_script("return treeChart.getOption().yAxis[0]")["min"] == 31
    browser.execute_script("show(0)")
    browser.execute_script("show(~0)")  # the class at the end of the chain
    assert len(browser.find_elements(By.CSS_SELECTOR, "#crumbs li")) <= 13


def test_a_shallow_tree_leaves_nothing_out(browser, digits_report, tmp_path):
    open_page(browser, digits_report, tmp_path)
    assert not browser.find_element(By.ID, "left-out").is_displayed()
