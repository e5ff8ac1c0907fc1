"""Fixtures: reports on small and hostile data, and a browser to open them in."""

import shutil

import numpy as np
import pytest

from dichotomies import NestedDichotomyClassifier
from dichotomies.report import make

CREATED = "2020-02-29"

#: Labels that must stay text, whatever they look like.
HOSTILE = [
    "<script>window.hacked = 1</script>",
    '"><img src=x onerror="window.hacked = 1">',
    "</script><script>window.hacked = 1</script>",
    "{{ 7 * 7 }}{% raw %}",
    "a\u2028b\u2029c & d",
    "日本語のクラス",
    "very long " * 100,
    "   ",
]


@pytest.fixture(scope="session")
def rows():
    """Rows of a class each, around well separated and less well separated centres."""

    def draw(labels, n_rows=400, seed=0):
        rng = np.random.default_rng(seed)
        codes = rng.integers(len(labels), size=n_rows)
        codes[: len(labels)] = np.arange(len(labels))
        centres = np.random.default_rng(1).normal(size=(len(labels), 4))
        return centres[codes] + 0.7 * rng.normal(size=(n_rows, 4)), np.array(labels, dtype=object)[codes]

    return draw


def fitted(X, y, **parameters):
    """A classifier on string labels; numpy's own string arrays would cut none, but cost memory."""
    return NestedDichotomyClassifier(random_state=0, **parameters).fit(X, y.astype(str))


@pytest.fixture(scope="session")
def digits_clf(digits):
    X, y = digits
    names = np.array(["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"])
    settings = {"structure": "class-balanced", "internal_calibration": "platt", "random_state": 0}
    return NestedDichotomyClassifier(**settings).fit(X[:900], names[y[:900]]), X[900:], names[y[900:]]


@pytest.fixture(scope="session")
def digits_report(digits_clf):
    clf, X, y = digits_clf
    return make(clf, X, y, examples=[f"image {i}" for i in range(len(y))], created=CREATED)


@pytest.fixture(scope="session")
def hostile_report(rows):
    clf = fitted(*rows(HOSTILE))
    X, y = rows(HOSTILE, seed=1)
    return make(clf, X, y.astype(str), examples=["<b onclick=alert(1)>&amp;"] * len(y), created=CREATED)


@pytest.fixture(scope="session")
def browser():
    """Headless Chromium, or a skip with the reason."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="browser tests need selenium")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    if chromium is None or driver is None:
        pytest.skip("browser tests need chromium and chromedriver (Debian: chromium, chromium-driver)")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    options.add_argument("--window-size=1200,900")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    opened = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    yield opened
    opened.quit()
