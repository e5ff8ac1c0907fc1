"""A new structure, calibrator or learner is one file or folder: nothing else has to be edited.

Each part is put into a folder that the package is told to look into as well, in a process of its own.
"""

import json
import subprocess
import sys
from textwrap import dedent

import numpy as np
import pytest
from sklearn.datasets import load_iris

from tests.cli.conftest import write_csv

STRUCTURE = """
    import numpy as np
    from dichotomies.structures.base import STRUCTURES, Structure

    @STRUCTURES.register("chain")
    class Chain(Structure):
        '''One class splits off at every node.'''

        def grow_from(self, task, rng):
            return task.tree(task.rows.class_order, np.arange(task.rows.n_classes - 1))
    """
BINARY = """
    import numpy as np
    from dichotomies.calibrators.binary.base import BINARY, BinaryCalibrator
    from dichotomies.calibrators.binary.score_maps import ScoreMaps

    @BINARY.register("halved")
    class Halved(BinaryCalibrator):
        '''Log-odds divided by two.'''

        def fit_segments(self, segments):
            return ScoreMaps.affine(np.tile([0.5, 0.0, 0.0], (len(segments), 1)), "halved")
    """
MULTICLASS = """
    from dichotomies.calibrators.multiclass.base import MULTICLASS, MulticlassCalibrator

    @MULTICLASS.register("flattened")
    class Flattened(MulticlassCalibrator):
        '''Log-probabilities divided by two.'''

        def fit_rows(self, rows):
            pass

        def scores(self, x):
            return x / 2
    """
LEARNER = """
    from dataclasses import dataclass
    from typing import Any

    import numpy as np
    from sklearn.dummy import DummyClassifier
    from dichotomies.learners.base import LEARNERS, Learner, Unsupported
    from dichotomies.persistence import savable
    from dichotomies.persistence.checks import Array

    @savable("prior-scorer", prior=Array("float", "n_nodes"))
    @dataclass(frozen=True)
    class PriorScorer:
        prior: Any

        @property
        def is_trained(self):
            return np.ones(len(self.prior), dtype=bool)

        def log_odds(self, X):
            return np.tile(self.prior, (X.shape[0], 1))

        def pair_log_odds(self, X, rows, nodes):
            return self.prior[nodes]

    @LEARNERS.register("prior")
    class PriorLearner(Learner):
        '''DummyClassifier at all nodes, from the numbers of rows.'''

        trains = {"prior": DummyClassifier}

        @classmethod
        def recognise(cls, estimator):
            if estimator.strategy != "prior":
                raise Unsupported("its strategy is not 'prior'")
            return cls()

        @property
        def description(self):
            return "prior: all nodes from the numbers of rows"

        def fit(self, task, context):
            on_the_left = task.leaf_offset[task.split] - task.leaf_offset[task.start]
            return PriorScorer(np.log(on_the_left / (task.node_size - on_the_left)))
    """
TRAINED = "prior: all nodes from the numbers of rows"
#: By kind: the package, the file, its text, the name, the class and the parameter of the classifier.
PARTS = {
    "structure": ("structures", "chain.py", STRUCTURE, "chain", "Chain", "structure"),
    "internal": ("calibrators.binary", "halved.py", BINARY, "halved", "Halved", "internal_calibration"),
    "external": (
        *("calibrators.multiclass", "flattened.py", MULTICLASS),
        *("flattened", "Flattened", "external_calibration"),
    ),
    "learner": ("learners", "prior/__init__.py", LEARNER, "prior", "PriorLearner", "learner"),
}


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    """Run a program in a process whose packages have the new files; return its output."""
    folder, extend = tmp_path_factory.mktemp("parts"), ""
    for package, file, text, *_ in PARTS.values():
        path = folder / package / file
        path.parent.mkdir(parents=True)
        path.write_text(dedent(text))
        extend += f"import dichotomies.{package}\n"
        extend += f"dichotomies.{package}.__path__.append({str(folder / package)!r})\n"

    def run(program, *arguments):
        command = [sys.executable, "-c", extend + dedent(program), *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def command_line(python, *arguments):
    return json.loads(python("from dichotomies.cli import main; main()", *arguments, "--json"))


def test_new_parts_are_listed(python):
    listed = command_line(python, "list")
    for kind, (*_, name, _, _) in PARTS.items():
        assert name in listed[kind]
    assert listed["structure"]["chain"] == "One class splits off at every node."
    assert listed["estimator"]["prior"].startswith("DummyClassifier: ")


def test_the_package_and_the_classifier_know_them_by_name_and_files_hold_them(python, tmp_path):
    program = """
        import json, sys
        import numpy as np
        from sklearn.datasets import load_iris
        from sklearn.dummy import DummyClassifier
        from sklearn.naive_bayes import GaussianNB
        from dichotomies import NestedDichotomyClassifier, load

        X, y = load_iris(return_X_y=True)
        for package, name, cls, parameter in json.loads(sys.argv[2]):
            module = sys.modules["dichotomies." + package]
            assert cls in dir(module) and getattr(module, cls).__name__ == cls
            estimator = DummyClassifier() if parameter == "learner" else GaussianNB()
            clf = NestedDichotomyClassifier(estimator, random_state=0, **{parameter: name}).fit(X, y)
            clf.save(sys.argv[1])
            np.testing.assert_array_equal(load(sys.argv[1]).predict_proba(X), clf.predict_proba(X))
            print(clf.learner_)
        """
    parts = [(package, *names) for package, _, _, *names in PARTS.values()]
    by_itself = ("learners", "auto", "PriorLearner", "learner")
    printed = python(program, tmp_path / "a.model", json.dumps([*parts, by_itself]))
    assert printed.splitlines()[-2:] == [TRAINED, TRAINED]


def test_the_command_line_takes_them_by_name(python, tmp_path):
    X, y = load_iris(return_X_y=True)
    data = write_csv(tmp_path / "iris.csv", [*"abcdy"], np.column_stack([X, y]).tolist())
    names = [word for kind, (*_, name, _, _) in PARTS.items() for word in (f"--{kind}", name)]
    arguments = "--label", "y", "--estimator", "prior", *names, "-o", tmp_path / "iris.model", "--quiet"
    assert command_line(python, "fit", data, *arguments)["learner"] == TRAINED
