"""Six files of the kinds that people have, made from a seed, and the options to fit them with."""

import csv
import gzip
from datetime import date, datetime, timedelta
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from sklearn.datasets import dump_svmlight_file, load_digits

N_ROWS = 400


class OrdinaryTable(NamedTuple):
    """A file for training, one for testing, and how to fit it."""

    train: str
    test: str
    options: tuple = ()


def _rows(seed):
    """Class of each row and random numbers."""
    rng = np.random.default_rng(seed)
    return rng.integers(4, size=N_ROWS), rng


def _write_csv(path, header, rows, *, delimiter=",", encoding="utf-8"):
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "wt", encoding=encoding, newline="") as file:
        csv.writer(file, delimiter=delimiter).writerows([header, *rows])


def people(folder, name, seed):
    """Semicolons, decimal commas, Latin-1, German dates, gaps, truths, an index without a name."""
    classes, rng = _rows(seed)
    rows = []
    for i, c in enumerate(classes.tolist()):
        height = "" if rng.random() < 0.1 else f"{1.5 + 0.1 * c + 0.05 * rng.normal():.2f}".replace(".", ",")
        born = (date(1950 + 10 * c, 1, 1) + timedelta(days=int(rng.integers(3000)))).strftime("%d.%m.%Y")
        city = ["Köln", "Düsseldorf", "Ulm", "Bonn", ""][int(rng.integers(5))]
        rows.append([i, height, born, city, "true" if rng.random() < c / 4 else "false", "ÄÖÜß"[c]])
    header = ["", "Größe", "geboren", "Stadt", "aktiv", "Gruppe"]
    _write_csv(folder / f"{name}.csv", header, rows, delimiter=";", encoding="latin-1")
    return f"{name}.csv", ("--label", "Gruppe")


def tickets(folder, name, seed):
    """Free text with quotation marks and line breaks, a category, an id, a number."""
    classes, rng = _rows(seed)
    words = ["invoice paid euro", "crash screen error", "password login", "thanks great"]
    filler = ["please", "help", "with", "the", "my", 'said "no"', "again,\nand again"]
    rows = []
    for i, c in enumerate(classes.tolist()):
        text = " ".join([*rng.choice(filler, 5), *rng.choice(words[c].split(), 2), f"case {i}"])
        channel, hours = rng.choice(["mail", "phone"]), round(float(rng.exponential(c + 1)), 3)
        rows.append([f"T-{i:05d}", text, channel, hours, c])
    _write_csv(folder / f"{name}.csv", ["ticket", "message", "channel", "hours", "queue"], rows)
    return f"{name}.csv", ("--label", "queue")


def sensors(folder, name, seed):
    """Parquet with times, truths, gaps and categories."""
    classes, rng = _rows(seed)
    values = classes + rng.normal(size=N_ROWS)
    begin = datetime(2024, 3, 1)
    columns = {
        "at": [begin + timedelta(hours=int(h)) for h in rng.integers(9000, size=N_ROWS)],
        "value": pa.array(values, mask=rng.random(N_ROWS) < 0.1),
        "alarm": rng.random(N_ROWS) < classes / 4,
        "unit": pa.array(rng.choice(["C", "F"], N_ROWS)).dictionary_encode(),
        "state": classes,
        "__index_level_0__": np.arange(N_ROWS),
    }
    pq.write_table(pa.table(columns), folder / f"{name}.parquet")
    return f"{name}.parquet", ("--label", "state")


def parts(folder, name, seed):
    """Compressed tab-separated values: codes with leading zeros, many categories, many classes."""
    rng = np.random.default_rng(seed)
    rows = []
    for i in range(2 * N_ROWS):
        c = i % 40
        maker = f"maker {c // 4 if rng.random() < 0.9 else rng.integers(10)}"
        code = f"{c:03d}" if rng.random() < 0.8 else "000"
        rows.append([code, maker, float(rng.normal(c)), f"class {c:02d}"])
    _write_csv(folder / f"{name}.tsv.gz", ["code", "maker", "weight", "kind"], rows, delimiter="\t")
    return f"{name}.tsv.gz", ("--label", "kind")


def words(folder, name, seed):
    """Counts in an svmlight file."""
    classes, rng = _rows(seed)
    X = rng.poisson(0.2 + 2 * (np.arange(30) % 4 == classes[:, None]), size=(N_ROWS, 30))
    X[0] = 1  # every feature occurs
    dump_svmlight_file(X, classes, str(folder / f"{name}.svmlight"), zero_based=True)
    return f"{name}.svmlight", ("--estimator", "multinomial-nb")


def images(folder, name, seed):
    """Handwritten digits in an NPZ file."""
    X, y = load_digits(return_X_y=True)
    chosen = np.random.default_rng(seed).permutation(len(X))[:N_ROWS]
    np.savez_compressed(folder / f"{name}.npz", X=X[chosen], y=y[chosen])
    return f"{name}.npz", ()


KINDS = {make.__name__: make for make in (people, tickets, sensors, parts, words, images)}


def made(kind, folder):
    """Write the two files of a kind."""
    train, options = KINDS[kind](folder, f"{kind}-train", 0)
    test, _ = KINDS[kind](folder, f"{kind}-test", 1)
    return OrdinaryTable(folder / train, folder / test, options)
