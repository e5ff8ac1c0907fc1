"""Take docs/figures/report.webp: a report on 150 intents of what people ask an assistant, in both themes.

Run with ``python -m docs.figures.report``; needs selenium and Chromium with its driver
(Debian: chromium, chromium-driver).
"""

from __future__ import annotations

import io
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from selenium import webdriver
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from dichotomies import NestedDichotomyClassifier
from dichotomies.report import Report, make
from experiments.datasets import load

WIDTH, HEIGHT = 1160, 2180


def report() -> Report:
    """Fit on the training part, report on the test part; a row is called by its words."""
    data = load("clinc150")
    clf = NestedDichotomyClassifier(
        LogisticRegression(C=10),
        "random",
        internal_calibration="platt",
        external_calibration="vector",
        calibration_size=0.1,
        random_state=0,
    )
    model = make_pipeline(TfidfTransformer(sublinear_tf=True), clf).fit(*data.split("train"))
    X, y = data.split("test")
    words = data.extra["vocab"]
    examples = [" ".join(words[X.indices[a:b]]) for a, b in zip(X.indptr[:-1], X.indptr[1:], strict=True)]
    return make(model, X, y, examples=examples)


def screenshots(page: Path) -> list[Image.Image]:
    """The page in the light and in the dark theme, zoomed into the tree in the dark one."""
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for argument in (
        "--headless=new",
        "--no-sandbox",
        "--hide-scrollbars",
        f"--window-size={WIDTH},{HEIGHT}",
    ):
        options.add_argument(argument)
    browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))
    try:
        return [screenshot(browser, page, theme) for theme in ("light", "dark")]
    finally:
        browser.quit()


def screenshot(browser: Any, page: Path, theme: str) -> Image.Image:
    """The page as it opens in a theme, with the slider moved and a class searched for in the dark one."""
    media = {"features": [{"name": "prefers-color-scheme", "value": theme}]}
    size = {"width": WIDTH, "height": HEIGHT, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.get(page.as_uri())
    if theme == "dark":
        browser.execute_script("byId('depth').value = 2; showDepth(); show(1); redrawSelection()")
    browser.execute_async_script("setTimeout(arguments[0], 1500)")  # until the animation is over
    return Image.open(io.BytesIO(browser.get_screenshot_as_png())).convert("RGB")


def main() -> None:
    """Make the report, open it twice, put the pictures side by side."""
    with tempfile.TemporaryDirectory() as folder:
        light, dark = screenshots(report().save(Path(folder) / "report.html"))
    both = Image.fromarray(np.hstack([np.asarray(light), np.asarray(dark)]))
    small = both.resize((both.width * 5 // 8, both.height * 5 // 8), Image.Resampling.LANCZOS)
    small.save(Path(__file__).with_suffix(".webp"), quality=80, method=6)


if __name__ == "__main__":
    main()
