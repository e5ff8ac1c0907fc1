"""A file that was made to deceive is refused or is a model; it never reaches memory that is not its own."""

import copy
import json
import random

import numpy as np
import pytest

from dichotomies import NestedDichotomyClassifier, load
from dichotomies.persistence import ModelFileError, save, save_load
from tests.persistence.models import digits, model, rows_for


def forged(path, clf, change):
    """A file with a correct checksum whose document and tensors `change` has changed."""
    save(clf, path)
    document, tensors = save_load.read(path)
    change(document, tensors)
    save_load.write(path, document, tensors)
    return path


def part(document, *keys):
    """The parts of an object within the model."""
    for key in keys:
        document = document["parts"][key]
    return document["parts"]


def put(name, value, at=-1):
    """A change of one tensor: one of its entries, or all of it by a function."""

    def change(_, tensors):
        array = tensors[name].copy()
        if callable(value):
            array = np.ascontiguousarray(value(array))
        else:
            array.flat[at] = value
        tensors[name] = array

    return change


def say(*path):
    """A change of one value of the document: the keys of parts, and the value."""

    def change(document, _):
        part(document, *path[:-2])[path[-2]] = path[-1]

    return change


def puts(changes):
    """Changes of tensors of the model: new entries, pairs of an entry and its place, or functions."""
    pairs = [(f"model_.{name}", value) for name, values in changes.items() for value in values]
    return [put(name, *value) if isinstance(value, tuple) else put(name, value) for name, value in pairs]


def short(array):
    return array[:-1]


FORGERIES = {
    "naive-bayes gaussian": [
        *puts(
            {
                "forest.trees.0.leaf_order": [0, -1, 6, short, lambda a: a.astype(np.float64)],
                "forest.trees.0.split_depth": [lambda a: np.append(a, 1)],
                "forest.trees.0.classes": [short],
                "scorer.center": [short, lambda a: a.astype(np.int64)],
                "scorer.square": [lambda a: a[..., :-1]],
                "scorer.constant": [short],
                "scorer.shift": [short],
                "scorer.is_trained": [lambda a: a.astype(np.uint8)],
                "external.scale_": [short],
            }
        ),
        put("classes_", 0x110000),
        put("classes_", lambda a: a[::-1]),
        say("model_", "external", "n_classes_", 5),
        say("model_", "external", "n_classes_", 10**12),
        say("model_", "external", {"array": "model_.scorer.center"}),
        lambda document, _: document["parts"].clear(),
        lambda document, _: document["parts"].pop("learner_"),
        say("n_features_in_", 1),
        say("n_features_in_", "12"),
        say("estimator", {"array": "model_.scorer.center"}),
        say("model_", "forest", None),
        say("model_", "scorer", {"array": "model_.scorer.center"}),
        say("model_", "scorer", {"object": "nested-dichotomy-classifier", "parts": {}}),
        say("predict", "no method"),
        say("__class__", "no class"),
        say("learner_", {"array": "no such tensor"}),
        say("learner_", {"object": "os.system", "parts": {"command": "true"}}),
        say("learner_", {"call": "os.system"}),
        say("classes_", {"array": {"tensor": "classes_", "dtype": "<U999999999"}}),
        say("classes_", {"array": {"tensor": "classes_", "dtype": "O"}}),
    ],
    "naive-bayes multinomial sparse": [
        *puts(
            {
                "scorer.feature_offsets": [10**9, (-1, 3), (10**9, 3), (1, 0), short],
                "scorer.node": [5, -1, lambda a: a.astype(np.uint32)],
                "scorer.value": [short],
                "scorer.background": [short],
            }
        ),
    ],
    "boosting gradient": [
        *puts(
            {
                "scorer.features": [(12, 0), (-1, 0)],
                "scorer.column": [(12, 0), (-1, 0)],
                "scorer.leaf": [(1, 0), 255, short],
                "scorer.kind": [(2, 0), (3, 0)],
                "scorer.limit": [short, lambda a: a.astype(np.float64)],
                "scorer.edges": [short],
                "scorer.edge_offsets": [(10**6, 1)],
                "scorer.categories": [lambda a: np.zeros((1, 32), dtype=np.uint8)],
                "scorer.value": [short],
                "scorer.split_offsets": [10**6, (10**6, 2)],
                "scorer.tree_offsets": [10**6, (10**6, 2)],
                "scorer.base": [short],
                "scorer.scale": [short],
            }
        ),
    ],
    "logistic": [
        *puts(
            {
                "scorer.weights": [short, lambda a: a[:, :-1], lambda a: a.ravel()],
                "scorer.intercept": [short],
            }
        ),
    ],
    "clones boosting": [
        *puts(
            {
                "scorer.nodes.0.estimator._trees.column": [(12, 0)],
                "scorer.nodes.0.estimator._trees.tree_offsets": [10**6],
            }
        ),
        lambda document, _: part(document, "model_", "scorer")["nodes"].pop(),
        lambda document, _: part(document, "model_", "scorer")["nodes"][0]["parts"].update(method="fit"),
        lambda document, _: part(document, "model_", "scorer")["nodes"][0]["parts"].update(estimator=None),
        lambda document, _: part(document, "model_", "scorer")["nodes"][0]["parts"].update(estimator="text"),
        lambda document, _: part(document, "model_", "scorer")["nodes"].__setitem__(0, 1),
    ],
}


@pytest.mark.parametrize(
    ("name", "number"), [(name, i) for name in FORGERIES for i in range(len(FORGERIES[name]))]
)
def test_parts_that_do_not_fit_together_are_refused(tmp_path, name, number):
    clf = model(name, internal_calibration=None, external_calibration="vector")
    path = forged(tmp_path / "a.model", clf, FORGERIES[name][number])
    with pytest.raises(ModelFileError, match=r"a\.model cannot be loaded: "):
        load(path)


MAPS = {
    "scorer.maps.kinds": [7, -1, lambda a: a.astype(np.int64)],
    "scorer.maps.parameters": [lambda a: a[:, :2]],
    "scorer.maps.knot_offsets": [10**9, (10**9, 3)],
    "scorer.maps.knot_probabilities": [short],
    "scorer.maps.knot_scores": [short],
    "scorer.maps.names": [short],
}


@pytest.mark.parametrize(
    ("calibration", "change"),
    [
        *(
            ("platt", change) for change in puts({"scorer.maps.kinds": [2, 3]})
        ),  # knots, of which there are none
        *(("isotonic", change) for change in puts(MAPS)),
        ("isotonic", say("model_", "scorer", "bound", "200")),
        ("isotonic", say("model_", "scorer", "maps", None)),
    ],
)
def test_maps_that_do_not_fit_together_are_refused(tmp_path, calibration, change):
    clf = model("naive-bayes gaussian", internal_calibration=calibration)
    path = forged(tmp_path / "a.model", clf, change)
    with pytest.raises(ModelFileError, match=r"a\.model cannot be loaded: "):
        load(path)


def test_a_random_state_points_into_its_words(tmp_path):
    """numpy itself would read behind their end."""
    clf = NestedDichotomyClassifier(random_state=np.random.RandomState(0)).fit(*digits())

    def change(document, _):
        document["parts"]["random_state"]["random state"][1] = 10**6

    with pytest.raises(ModelFileError, match="points to one of its words"):
        load(forged(tmp_path / "a.model", clf, change))


@pytest.mark.parametrize("depth", [2_000, 100_000])
def test_deep_nesting_is_refused(tmp_path, monkeypatch, depth):
    save(model("naive-bayes gaussian"), tmp_path / "a.model")
    document, tensors = save_load.read(tmp_path / "a.model")
    document["parts"]["structure"] = "very deep"
    brackets, dumps = "[" * depth + "]" * depth, json.dumps
    with monkeypatch.context() as forger:  # because json.dumps itself would not write it
        forger.setattr(json, "dumps", lambda *a, **b: dumps(*a, **b).replace('"very deep"', brackets))
        save_load.write(tmp_path / "a.model", document, tensors)
    with pytest.raises(ModelFileError, match="nested too deeply"):
        load(tmp_path / "a.model")


def test_lists_that_can_be_fitted_can_be_saved(through_file):
    deep = "class 0"
    for i in range(1, 150):
        deep = [deep, f"class {i}"]
    clf = NestedDichotomyClassifier(structure=deep, random_state=0).fit(*digits_of_many_classes(150))
    assert through_file(clf).structure == deep


def test_lists_too_deep_for_a_file_are_refused_by_name(tmp_path):
    deep = []
    for _ in range(5_000):
        deep = [deep]
    clf = NestedDichotomyClassifier(random_state=0).fit(*digits()).set_params(structure=deep)
    with pytest.raises(
        ModelFileError, match="nested too deeply for a file; give a tree that deep as a ClassTree"
    ):
        clf.save(tmp_path / "a.model")


def digits_of_many_classes(n_classes):
    X, _ = digits()
    return X, [f"class {i % n_classes}" for i in range(len(X))]


@pytest.mark.parametrize(
    "document", [None, [], 5, {}, {"array": "x"}, {"object": "dense-weights", "parts": {}}]
)
def test_a_file_must_hold_a_model(tmp_path, document):
    save_load.write(tmp_path / "a.model", document, {"x": np.zeros(2)})
    with pytest.raises(ModelFileError, match="cannot be loaded"):
        load(tmp_path / "a.model")


VALUES = [-1, 0, 1, 2**31, 2**63, 10**30, 1.5, None, True, "", "fit", [], {}, {"float": "nan"}, {"tuple": []}]


def paths_within(value, path=()):
    """Where all values of a document are."""
    if path:
        yield path
    for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield from paths_within(value[key], (*path, key))


def mutate(document, tensors, rnd):
    """Change one value, or one tensor, in one of many ways."""
    if rnd.random() < 0.5:
        *above, last = rnd.choice(list(paths_within(document)))
        place = document
        for key in above:
            place = place[key]
        place[last] = copy.deepcopy(rnd.choice([*VALUES, *tensors]))
        return
    name = rnd.choice(list(tensors))
    array = tensors[name].copy()
    ways = [
        lambda: array[: len(array) // 2],
        lambda: np.concatenate([array, array]),
        lambda: array.T,
        lambda: array.ravel(),
        lambda: array.astype(rnd.choice(["f8", "i8", "i4", "u1", "?", "f4"])),
        lambda: tensors[rnd.choice(list(tensors))],
    ]
    if rnd.random() < 0.5 and array.size:
        array.flat[rnd.randrange(array.size)] = rnd.choice([0, 1, 5, 6, 12, 100])
        if array.dtype.kind == "i" and rnd.random() < 0.5:
            array.flat[rnd.randrange(array.size)] = rnd.choice([-1, -2, 99, np.iinfo(array.dtype).max])
    elif array.ndim:
        array = rnd.choice(ways)()
    tensors[name] = np.ascontiguousarray(array)


def answer_or_refusal(clf, X):
    """Probabilities, or the sentence that there are none: numbers can be absurd where shapes are right."""
    try:
        return clf.predict_log_proba(X)
    except ValueError as refusal:
        return np.array(str(refusal))


@pytest.mark.parametrize(
    "name", ["naive-bayes gaussian", "naive-bayes multinomial sparse", "boosting ada", "tuned-logistic"]
)
def test_random_changes_give_a_model_or_a_sentence(tmp_path, name):
    X, _ = rows_for(name)
    path, rnd = tmp_path / "a.model", random.Random(name)
    save(model(name, internal_calibration="isotonic", average_folds=True), path)
    document, tensors = save_load.read(path)
    n_loaded = 0
    for _ in range(60):
        changed = copy.deepcopy(document), dict(tensors)
        with np.errstate(invalid="ignore"):
            mutate(*changed, rnd)
        save_load.write(path, *changed)
        try:
            clf = load(path)
        except ModelFileError:
            continue
        n_loaded += 1
        with np.errstate(all="ignore"):
            answer = answer_or_refusal(clf, X[:, : clf.n_features_in_])
        assert answer.shape == (X.shape[0], len(clf.classes_)) or "NaN" in str(answer)
    assert 0 < n_loaded < 60
