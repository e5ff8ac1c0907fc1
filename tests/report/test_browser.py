"""The report in a real browser: it opens offline, and its slider, search, zoom and themes work."""

import json

import pytest

pytest.importorskip("selenium", reason="browser tests need selenium")

from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait
from sklearn.naive_bayes import GaussianNB

from dichotomies import NestedDichotomyClassifier
from dichotomies.report import make
from tests.report.conftest import HOSTILE


@pytest.fixture
def opened(browser, digits_report, tmp_path):
    return open_page(browser, digits_report, tmp_path)


def open_page(browser, report, folder):
    browser.get_log("browser"), browser.get_log("performance")  # what earlier tests left
    browser.get(report.save(folder / "report.html").as_uri())
    return browser


def test_the_slider_of_acceptance_counts_answers_and_mistakes(opened, digits_report):
    move = "const s = document.getElementById('accept'); s.value = '90'; s.dispatchEvent(new Event('input'));"
    opened.execute_script(move)
    curve = digits_report.content["data"]["accepted"]
    said = opened.find_element(By.ID, "accept-text").text
    assert said.startswith(f"90 %: {curve['answered'][90]:,} of 897 rows answered")
    assert f"{curve['wrong'][90]:,} of them wrong" in said
    option = json.loads(chart_option(opened, "acceptance-chart"))
    assert [series["id"] for series in option["series"]] == ["curve", "chosen"]


def chart_option(browser, chart):
    """What a chart shows now, as the drawing library has it."""
    script = "const chart = echarts.getInstanceByDom(document.getElementById(arguments[0]));"
    return browser.execute_script(f"{script} return JSON.stringify(chart.getOption())", chart)


def drawn_curve(browser):
    option = json.loads(chart_option(browser, "reliability-chart"))
    return sorted(
        p for series in option["series"] if series["id"] in ("after", "after-few") for p in series["data"]
    )


def zoomed_to(browser):
    axis = json.loads(chart_option(browser, "tree"))["xAxis"][0]
    return axis["min"], axis["max"]


def until(browser, condition):
    return WebDriverWait(browser, 20).until(lambda _: condition())


def requests(browser):
    entries = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    return [e["params"]["request"]["url"] for e in entries if e["method"] == "Network.requestWillBeSent"]


def test_loads_without_console_messages_and_without_network(opened):
    until(opened, lambda: opened.find_elements(By.CSS_SELECTOR, "#reliability-chart svg"))
    assert opened.find_elements(By.CSS_SELECTOR, "#tree canvas")
    assert opened.get_log("browser") == []
    assert requests(opened) == [opened.current_url]


def test_no_script_but_ours_may_run(opened):
    script = "const made = document.createElement('script'); made.textContent = 'window.hacked = 1';"
    opened.execute_script(f"{script} document.body.append(made)")
    assert opened.execute_script("return window.hacked") is None


def test_depth_slider_changes_the_plot_by_keyboard(opened, digits_report):
    slider = opened.find_element(By.ID, "depth")
    stage = digits_report.content["data"]["cuts"]["stages"][-1]
    assert drawn_curve(opened) == stage["top_label"][-1]
    slider.send_keys(Keys.ARROW_LEFT)
    assert drawn_curve(opened) == stage["top_label"][-2]
    slider.send_keys(Keys.HOME)
    assert drawn_curve(opened) == stage["top_label"][0]
    assert "1 of 4" in opened.find_element(By.ID, "depth-text").text
    assert "2 groups" in slider.get_attribute("aria-valuetext")


def test_other_reading_of_the_curve(opened, digits_report):
    opened.find_element(By.CSS_SELECTOR, "#reading option[value=pooled]").click()
    assert drawn_curve(opened) == digits_report.content["data"]["cuts"]["stages"][-1]["pooled"][-1]


def test_search_finds_a_class_and_zooms_to_it(opened, digits_report):
    box = opened.find_element(By.ID, "search")
    box.send_keys("SEV")
    assert [item.text for item in opened.find_elements(By.CSS_SELECTOR, "#matches [role=option]")] == [
        "seven"
    ]
    box.send_keys(Keys.ENTER)
    assert opened.find_element(By.CSS_SELECTOR, "#details h3").text == "seven"
    leaf = digits_report.content["data"]["tree"]["names"].index("seven")
    low, high = zoomed_to(opened)
    assert low <= leaf < high
    crumbs = [item.text for item in opened.find_elements(By.CSS_SELECTOR, "#crumbs button")]
    assert crumbs[0] == "All 10 classes"
    assert crumbs[-1] == "seven"


def test_search_for_nothing_known_says_so(opened):
    opened.find_element(By.ID, "search").send_keys("no such class")
    assert "No class" in opened.find_element(By.ID, "matches").text


def test_tree_is_walked_and_zoomed_by_keyboard(opened, digits_report):
    drawn = digits_report.content["data"]["tree"]
    tree = opened.find_element(By.ID, "tree")
    tree.send_keys(Keys.ARROW_DOWN, Keys.ARROW_RIGHT, Keys.ENTER)
    right = drawn["right"][0]
    assert zoomed_to(opened) == (drawn["start"][right], drawn["stop"][right])
    assert f"Decision {right}" in opened.find_element(By.ID, "announce").get_attribute("textContent")
    tree.send_keys(Keys.ESCAPE)
    assert zoomed_to(opened) == (0, 10)


def test_click_on_a_box_zooms_and_a_crumb_leads_back(opened, digits_report):
    drawn = digits_report.content["data"]["tree"]
    left = drawn["left"][0]
    place = opened.execute_script(
        "return treeChart.convertToPixel({gridIndex: 0}, arguments[0])", [drawn["start"][left] + 1, 1.5]
    )
    tree = opened.find_element(By.ID, "tree")
    opened.execute_script("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", tree)
    size = tree.size
    x, y = place[0] - size["width"] / 2, place[1] - size["height"] / 2
    ActionChains(opened).move_to_element_with_offset(tree, int(x), int(y)).click().perform()
    assert zoomed_to(opened) == (drawn["start"][left], drawn["stop"][left])
    opened.find_element(By.CSS_SELECTOR, "#crumbs button").click()
    assert zoomed_to(opened) == (0, 10)


def test_table_leads_to_the_node_where_a_pair_parts(opened, digits_report):
    first = opened.find_element(By.CSS_SELECTOR, "#pairs [data-node]")
    node = int(first.get_attribute("data-node"))
    opened.execute_script("arguments[0].click()", first)
    assert opened.find_element(By.CSS_SELECTOR, "#details h3").text.startswith(f"Decision {node}:")


def test_theme_follows_the_system_and_the_toggle_switches(browser, digits_report, tmp_path):
    dark = {"features": [{"name": "prefers-color-scheme", "value": "dark"}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", dark)
    open_page(browser, digits_report, tmp_path)

    def background():
        return browser.execute_script("return getComputedStyle(document.body).backgroundColor")

    dark_page, dark_chart = background(), chart_option(browser, "tree")
    browser.find_element(By.ID, "theme").click()
    assert background() != dark_page
    assert chart_option(browser, "tree") != dark_chart
    browser.find_element(By.ID, "theme").click()
    assert background() == dark_page
    browser.execute_script("localStorage.clear()")
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def test_hostile_labels_stay_text(browser, hostile_report, tmp_path):
    page = open_page(browser, hostile_report, tmp_path)
    names = hostile_report.content["data"]["tree"]["names"]
    for leaf, name in enumerate(names):
        page.execute_script("show(arguments[0]); redrawSelection()", ~leaf)
        page.execute_script("document.body.append(tooltip(arguments[0]))", ~leaf)
        heading = page.find_element(By.CSS_SELECTOR, "#details h3").get_attribute("textContent")
        assert heading == name
    page.find_element(By.ID, "search").send_keys("<script")
    assert page.find_element(By.CSS_SELECTOR, "#matches [role=option]").text == HOSTILE[0]
    assert page.execute_script("return window.hacked") is None
    assert page.find_elements(By.CSS_SELECTOR, "img") == []
    assert page.get_log("browser") == []


def test_shows_itself_in_the_frame_of_a_notebook(browser, digits_report, tmp_path):
    notebook = tmp_path / "notebook.html"
    notebook.write_text(f"<!doctype html><meta charset=utf-8>{digits_report._repr_html_()}", encoding="utf-8")
    browser.get_log("browser")
    browser.get(notebook.as_uri())
    browser.switch_to.frame(browser.find_element(By.TAG_NAME, "iframe"))
    until(browser, lambda: browser.find_elements(By.CSS_SELECTOR, "#reliability-chart svg"))
    browser.switch_to.default_content()
    assert browser.get_log("browser") == []


def test_every_control_has_a_name(opened):
    controls = opened.find_elements(By.CSS_SELECTOR, "button, input, select, [role=img], [role=application]")
    shown = [each for each in controls if each.is_displayed()]
    nameless = [each.get_attribute("outerHTML") for each in shown if not each.accessible_name.strip()]
    assert nameless == []


@pytest.mark.slow
def test_1623_classes_can_be_searched(browser, real_data, tmp_path):
    data = real_data("omniglot")
    train, test = data.extra["drawer"] <= 8, data.extra["drawer"] == 20
    settings = {"external_calibration": "temperature", "random_state": 0}
    clf = NestedDichotomyClassifier(GaussianNB(var_smoothing=0.1), **settings)
    report = make(clf.fit(data.X[train], data.y[train]), data.X[test], data.y[test])
    assert len(report.html.encode()) < 5_000_000
    page = open_page(browser, report, tmp_path)
    assert page.get_log("browser") == []
    page.find_element(By.ID, "search").send_keys("1234", Keys.ENTER)
    assert page.find_element(By.CSS_SELECTOR, "#details h3").text == "1234"
    low, high = zoomed_to(page)
    assert low <= report.content["data"]["tree"]["names"].index("1234") < high
    assert high - low < 200


def test_printing_is_light_and_leaves_no_trace(opened):
    opened.find_element(By.ID, "theme").click()
    fills_its_place = "treeChart.getWidth() === byId('tree').clientWidth"
    states = []
    for event in ("beforeprint", "afterprint"):
        opened.execute_script(f"dispatchEvent(new Event('{event}'))")
        state = f"return [document.documentElement.dataset.theme, {fills_its_place}]"
        states.append(opened.execute_script(state))
    opened.execute_script("localStorage.clear()")
    assert states == [["light", False], ["dark", True]]
