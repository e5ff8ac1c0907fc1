"""Files and functions of the package that a call walks through: how much a reader meets on the way.

``python -m benchmarks.walk`` counts them for the main calls on scikit-learn's digits; ``--list`` names the
files of one of them. Compiled kernels count as one function where Python calls them. "fit, named" is the
default of earlier versions spelled out, so that walks can be compared over time: logistic regression at the
nodes of a 2-means tree, vector scaling on a tenth of the rows that is held out, nothing to choose.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sklearn.datasets import load_digits, make_blobs
from sklearn.linear_model import LogisticRegression

import dichotomies
from dichotomies import NestedDichotomyClassifier, NestedDichotomyEnsemble

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType

PACKAGE = Path(dichotomies.__file__).parent


def walked(call: Callable[[], Any]) -> set[CodeType]:
    """Functions of the package that run during a call; lambdas and comprehensions are part of theirs."""
    seen: set[CodeType] = set()

    def note(frame: Any, event: str, _: Any) -> None:
        if event == "call":
            seen.add(frame.f_code)

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    return {code for code in seen if _is_ours(code)}


def _is_ours(code: CodeType) -> bool:
    return Path(code.co_filename).is_relative_to(PACKAGE) and not code.co_name.startswith("<")


def calls(folder: Path) -> dict[str, Callable[[], Any]]:
    """The main calls, each after it has been made once, so that imports and compilation are not counted."""
    X, y = load_digits(return_X_y=True)
    many = make_blobs(600, 8, centers=120, random_state=0)  # so many classes that deep trees are tried
    tree = NestedDichotomyClassifier(random_state=0)
    named = NestedDichotomyClassifier(
        LogisticRegression(), "2-means", internal_calibration=None, external_calibration="vector",
        calibration_size=0.1, random_state=0,
    )  # fmt: skip
    ensemble = NestedDichotomyEnsemble(random_state=0, n_estimators=2)
    table = folder / "digits.csv"
    rows = [",".join(map(str, [*row, f"d{label}"])) for row, label in zip(X, y, strict=True)]
    table.write_text("\n".join([",".join([*(f"p{i}" for i in range(X.shape[1])), "digit"]), *rows]))
    arguments = ["fit", str(table), "--label", "digit", "--output", str(folder / "m.model"), "--quiet"]

    def command() -> None:
        from dichotomies.cli.app import app

        app(arguments, standalone_mode=False)

    return {
        "fit, named": lambda: named.fit(X / 16, y),
        "fit": lambda: tree.fit(X / 16, y),
        "fit, 120 classes": lambda: tree.fit(*many),
        "predict_proba": lambda: tree.predict_proba(many[0]),
        "ensemble fit": lambda: ensemble.fit(X / 16, y),
        "dichotomies fit": command,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--list", metavar="CALL", help="name the files that this call walks through")
    chosen = parser.parse_args().list
    with tempfile.TemporaryDirectory() as folder:
        for name, call in calls(Path(folder)).items():
            call()
            functions = walked(call)
            files = sorted({str(Path(code.co_filename).relative_to(PACKAGE)) for code in functions})
            print(f"{name}: {len(files)} files, {len(functions)} functions", file=sys.stderr)
            if name == chosen:
                print("\n".join(files))
    modules = list(PACKAGE.rglob("*.py"))
    lines = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in modules)
    at_root = sum(1 for path in PACKAGE.iterdir() if path.name != "__pycache__")
    print(f"installed: {lines} lines of Python in {len(modules)} files; {at_root} entries at the root")


if __name__ == "__main__":
    main()
