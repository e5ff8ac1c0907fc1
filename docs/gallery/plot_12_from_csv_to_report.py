"""
From a CSV file to a report
===========================

Everything from the shell: fit a model to a table as it comes, with numbers, categories and gaps, predict, evaluate, and write a page on
how far the probabilities can be trusted.
"""

# %%
# A table of flats in five towns; the label is the town. (Any CSV file with a column of labels does.) The commands below are those one
# types in a terminal.
import csv
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

folder = Path(tempfile.mkdtemp())
rng = np.random.default_rng(0)
towns = {
    "Bath": (900, "stone"),
    "Hull": (480, "brick"),
    "Leeds": (620, "brick"),
    "York": (780, "stone"),
    "Wick": (400, "render"),
}
for name, n in {"train.csv": 1200, "test.csv": 600}.items():
    with (folder / name).open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["rent", "rooms", "wall", "built", "town"])
        for _ in range(n):
            town = str(rng.choice(list(towns)))
            rent, wall = towns[town]
            rooms = rng.integers(1, 6)
            paid = (
                "" if rng.random() < 0.05 else round(rent * (0.6 + 0.2 * rooms) * rng.lognormal(sigma=0.15))
            )
            wall = wall if rng.random() < 0.7 else str(rng.choice(["stone", "brick", "render"]))
            table.writerow([paid, rooms, wall, rng.integers(1890, 2020), town])
print((folder / "train.csv").read_text()[:110])


def shell(command):
    print("$", command)
    words = [sys.executable, "-m", *command.split()]
    done = subprocess.run(
        words, cwd=folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=True
    )
    print(done.stdout)


# %%
# Fit, and see how each column is read:
shell("dichotomies fit train.csv --label town --output town.model --quiet")

# %%
# Probabilities of new rows, and all metrics with confidence intervals:
shell("dichotomies predict town.model test.csv --top-k 2 --output answers.csv --quiet")
print((folder / "answers.csv").read_text()[:150])
shell("dichotomies evaluate town.model test.csv")

# %%
# The report is one HTML file that opens offline; its first sentence is the answer to *how far can it be trusted?*
# Three live ones, of larger data, are on :doc:`the page of reports </report>`.
shell("dichotomies report town.model test.csv --output town.html")

# %%
# The same model in Python, and its reliability:
import matplotlib.pyplot as plt

from dichotomies.plots import ReliabilityDisplay

with (folder / "test.csv").open() as file:
    truth = [row["town"] for row in csv.DictReader(file)]
shell("dichotomies predict town.model test.csv --all --output all.csv --quiet")
with (folder / "all.csv").open() as file:
    header, *lines = csv.reader(file)
proba = np.array([[float(cell) for cell in line[1:]] for line in lines])
proba /= proba.sum(axis=1, keepdims=True)  # CSV files have six digits
ReliabilityDisplay.from_predictions(truth, proba, labels=sorted(towns), name="towns")
plt.show()
