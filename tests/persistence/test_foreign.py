"""Objects of scikit-learn and of the user: by their parameters, or by skops and whom it trusts."""

import io
import re
import zipfile

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import BaseEstimator
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import ShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC

from dichotomies import CalibratedClassifier, NestedDichotomyClassifier, TunedLogisticRegression, load
from dichotomies.calibrators.multiclass import MulticlassCalibrator
from dichotomies.persistence import ModelFileError, save_load
from tests.persistence.models import digits, model


class Mine(MulticlassCalibrator):
    """A calibrator of the user, which no registry knows."""

    def fit_rows(self, rows):
        self.power_ = 0.5

    def scores(self, x):
        return x * self.power_


@pytest.fixture
def forest(tmp_path):
    """A model file with trees of scikit-learn in it, and the model."""
    clf = NestedDichotomyClassifier(RandomForestClassifier(2, max_depth=2), random_state=0).fit(*digits())
    clf.save(tmp_path / "a.model")
    return tmp_path / "a.model", clf


def test_types_that_nobody_trusts_are_named(forest):
    path, _ = forest
    wanted = (
        r"not trusted by default.*: sklearn\.ensemble\._forest\.RandomForestClassifier, .*"
        r"load\(path, trusted=\['sklearn\.ensemble\._forest.*--trust sklearn\.tree\._tree\.Tree\.$"
    )
    with pytest.raises(ModelFileError, match=wanted):
        load(path)


@pytest.mark.parametrize("by", [str, type], ids=["by name", "by type"])
def test_types_that_the_caller_trusts_are_loaded(forest, by):
    path, before = forest
    forest = before.estimators_[0]
    tree = forest.estimators_[0]
    trusted = [type(each) for each in (forest, tree, tree.tree_)]
    if by is str:
        trusted = [f"{each.__module__}.{each.__name__}" for each in trusted]
    X, _ = digits()
    np.testing.assert_array_equal(load(path, trusted=trusted).predict_proba(X), before.predict_proba(X))


def test_clones_of_trusted_types_need_no_trust(through_file):
    X, y = digits()
    scaled = make_pipeline(StandardScaler(), LogisticRegression())
    before = NestedDichotomyClassifier(scaled, internal_calibration="platt", random_state=0).fit(X, y)
    after = through_file(before)
    np.testing.assert_array_equal(after.predict_proba(X), before.predict_proba(X))
    assert len(after.estimators_) == before.tree_.n_nodes


def test_unfitted_estimators_need_neither_skops_nor_trust(tmp_path):
    X, y = digits()
    nested = NestedDichotomyClassifier(TunedLogisticRegression(Cs=[1.0]), random_state=0).fit(X, y)
    CalibratedClassifier(nested).fit(X, y).save(tmp_path / "a.model")
    assert "skops" not in save_load.read(tmp_path / "a.model")[1]


def test_classes_of_the_user_need_trust(tmp_path):
    X, y = digits()
    before = NestedDichotomyClassifier(external_calibration=Mine(), random_state=0).fit(X, y)
    before.save(tmp_path / "a.model")
    with pytest.raises(ModelFileError, match=r"tests\.persistence\.test_foreign\.Mine"):
        load(tmp_path / "a.model")
    after = load(tmp_path / "a.model", trusted=[Mine])
    np.testing.assert_array_equal(after.predict_proba(X), before.predict_proba(X))


def test_splitters_that_are_not_known_need_trust(through_file):
    clf = NestedDichotomyClassifier(random_state=0).fit(*digits()).set_params(cv=ShuffleSplit(4))
    with pytest.raises(ModelFileError, match="ShuffleSplit"):
        through_file(clf)
    assert through_file(clf, trusted=[ShuffleSplit]).cv.get_n_splits() == 4


@pytest.mark.parametrize(
    "cv", [(fold for fold in ()), FunctionTransformer(lambda x: x)], ids=["generator", "lambda"]
)
def test_what_could_not_be_read_again_is_not_written(tmp_path, cv):
    clf = NestedDichotomyClassifier(random_state=0).fit(*digits()).set_params(cv=cv)
    with pytest.raises(ModelFileError, match="has parts that skops cannot write and read again"):
        clf.save(tmp_path / "a.model")
    assert list(tmp_path.iterdir()) == []


def test_requests_for_metadata_are_refused_rather_than_lost(tmp_path):
    with config_context(enable_metadata_routing=True):
        clf = NestedDichotomyClassifier(random_state=0).set_fit_request(sample_weight=True)
    clf.fit(*digits())
    with pytest.raises(ModelFileError, match="'_metadata_request', which files do not keep"):
        clf.save(tmp_path / "a.model")


def test_parameters_that_a_later_scikit_learn_has_dropped_are_not_missed(tmp_path):
    clf = model("naive-bayes gaussian")
    clf.save(tmp_path / "a.model")
    document, tensors = save_load.read(tmp_path / "a.model")
    parts = document["parts"]["estimator"]["parts"]
    parts["dropped"] = 1
    save_load.write(tmp_path / "a.model", document, tensors)
    with pytest.raises(ModelFileError, match="unexpected keyword argument 'dropped'"):
        load(tmp_path / "a.model")
    parts["left at default"].append("dropped")
    save_load.write(tmp_path / "a.model", document, tensors)
    assert repr(load(tmp_path / "a.model").estimator) == repr(clf.estimator)


def test_bytes_that_skops_did_not_write_are_refused(forest):
    path, _ = forest
    document, tensors = save_load.read(path)
    tensors["skops"] = tensors["skops"][: len(tensors["skops"]) // 2].copy()
    save_load.write(path, document, tensors)
    with pytest.raises(ModelFileError, match="cannot be loaded"):
        load(path, trusted=["sklearn.tree._tree.Tree"])


def test_foreign_objects_do_not_become_models(tmp_path):
    class Unknown(BaseEstimator):
        pass

    clf = NestedDichotomyClassifier(random_state=0).fit(*digits()).set_params(cv=Unknown())
    with pytest.raises(ModelFileError, match="Unknown"):
        clf.save(tmp_path / "a.model")


@pytest.mark.parametrize("trusted", [True, "sklearn.tree._tree.Tree"])
def test_trusted_is_a_list(tmp_path, trusted):
    with pytest.raises(TypeError, match="trusted must be a list"):
        load(tmp_path / "a.model", trusted=trusted)


@pytest.fixture
def machine(tmp_path):
    """A model file with support vector machines at its nodes."""
    clf = NestedDichotomyClassifier(SVC(), internal_calibration="platt", random_state=0).fit(*digits())
    clf.save(tmp_path / "a.model")
    return tmp_path / "a.model"


def test_estimators_that_predict_in_native_code_need_trust(machine):
    """Their arrays may not fit together, which their own code does not check."""
    with pytest.raises(ModelFileError, match=r"not trusted by default.*: sklearn\.svm\._classes\.SVC\. "):
        load(machine)
    X, y = digits()
    assert load(machine, trusted=[SVC]).score(X, y) > 0.8


def _archive(path, change):
    document, tensors = save_load.read(path)
    new = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(tensors["skops"].tobytes())) as before,
        zipfile.ZipFile(
            new, "w", zipfile.ZIP_DEFLATED if change == "compressed" else zipfile.ZIP_STORED
        ) as after,
    ):
        for member in before.infolist():
            after.writestr(member.filename, before.read(member))
    tensors["skops"] = np.frombuffer(new.getvalue(), np.uint8)
    save_load.write(path, document, tensors)


def test_compressed_archives_are_refused(machine):
    """A few megabytes of them may be gigabytes of blanks."""
    _archive(machine, "stored")
    load(machine, trusted=[SVC])
    _archive(machine, "compressed")
    with pytest.raises(ModelFileError, match="is not compressed"):
        load(machine, trusted=[SVC])


def test_workers_are_not_taken_from_files(tmp_path):
    X, y = digits()
    forest = RandomForestClassifier(2, max_depth=2, n_jobs=1)
    clf = NestedDichotomyClassifier(forest, random_state=0, n_jobs=1).fit(X, y).set_params(n_jobs=1000)
    for node in clf.estimators_:
        node.set_params(n_jobs=1000)
    clf.save(tmp_path / "a.model")
    with pytest.raises(ModelFileError) as refused:
        load(tmp_path / "a.model")
    again = load(tmp_path / "a.model", trusted=re.findall(r"--trust (\S+[^.\s])", str(refused.value)))
    assert again.n_jobs is None
    assert all(node.n_jobs is None for node in again.estimators_)
