"""A model file is whole, or says what is wrong with it."""

import errno
import os
import re
import resource
import stat
from hashlib import sha256

import numpy as np
import pytest
from safetensors import safe_open
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression

from dichotomies import CalibratedClassifier, NestedDichotomyClassifier, load
from dichotomies.persistence import ModelFileError, checks, save, save_load
from tests.persistence.models import digits, model


@pytest.fixture
def path(tmp_path):
    """A model file."""
    model("naive-bayes gaussian").save(tmp_path / "a.model")
    return tmp_path / "a.model"


def test_the_same_model_gives_the_same_bytes(path):
    before = path.read_bytes()
    load(path).save(path)
    assert path.read_bytes() == before


def test_any_reader_of_safetensors_reads_the_arrays(path):
    with safe_open(path, framework="numpy") as file:
        center = file.get_tensor("model_.scorer.center")
        assert "nested-dichotomy-classifier" in file.metadata()["dichotomies"]
    np.testing.assert_array_equal(center, model("naive-bayes gaussian").model_.scorer.center)


@pytest.mark.parametrize("part", range(40))
def test_a_truncated_file_is_refused(path, part):
    data = path.read_bytes()
    path.write_bytes(data[: len(data) * part // 40])
    with pytest.raises(ModelFileError, match=rf"^{re.escape(str(path))} is truncated: it has only \d+ bytes"):
        load(path)


def test_every_altered_byte_is_noticed(path, rng):
    original = path.read_bytes()
    header = 8 + int.from_bytes(original[:8], "little")
    for place in [*range(8), *range(8, header, 7), header - 1, *rng.integers(header, len(original), 300)]:
        data = bytearray(original)
        data[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(data)
        with pytest.raises(ModelFileError, match=r"altered|truncated|not a model file"):
            load(path)


def test_bytes_behind_the_end_are_noticed(path):
    path.write_bytes(path.read_bytes() + b"\0")
    with pytest.raises(ModelFileError, match="has been altered since it was saved"):
        load(path)


def test_a_newer_format_is_refused_by_name(path, monkeypatch):
    with monkeypatch.context() as later:
        later.setattr(save_load, "FORMAT", 7)
        later.setattr(save_load, "version", lambda library: "9.9" if library == "dichotomies" else "1.0")
        model("naive-bayes gaussian").save(path)
    wanted = (
        "was written by dichotomies 9.9, in format 7; this is dichotomies .*, "
        f"which reads formats up to {save_load.FORMAT}"
    )
    with pytest.raises(ModelFileError, match=wanted):
        load(path)


def test_a_file_with_a_correct_checksum_but_no_model_is_refused(path):
    data = path.read_bytes().replace(b'\\"model\\":', b'\\"modem\\":')
    claimed = re.search(rb"[0-9a-f]{64}", data)[0]
    data = data.replace(claimed, sha256(data.replace(claimed, b"0" * 64)).hexdigest().encode())
    path.write_bytes(data)
    with pytest.raises(ModelFileError, match="its header cannot be read"):
        load(path)


@pytest.mark.parametrize("content", [b"text that is longer than the beginning of a header", b"PK\3\4" * 20])
def test_other_files_are_refused(path, content):
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match="is not a model file of dichotomies"):
        load(path)


def test_files_of_other_libraries_are_refused(path):
    checks.extra("safetensors.numpy").save_file({"a": np.zeros(3)}, path, metadata={"format": "pt"})
    with pytest.raises(ModelFileError, match="is not a model file of dichotomies"):
        load(path)


def test_paths_that_cannot_be_files_are_refused(tmp_path):
    clf = model("naive-bayes gaussian")
    with pytest.raises(FileNotFoundError, match=r"There is no file .*missing\.model\.$"):
        load(tmp_path / "missing.model")
    with pytest.raises(IsADirectoryError, match="is a folder, not a model file"):
        load(tmp_path)
    with pytest.raises(IsADirectoryError, match="is a folder; give the path of a file"):
        clf.save(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"There is no folder .*nowhere to save a.model in"):
        clf.save(tmp_path / "nowhere" / "a.model")
    assert list(tmp_path.iterdir()) == []


def test_a_pipe_is_not_replaced_by_a_model(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="pipe is a device or a pipe, which a file would replace"):
        model("naive-bayes gaussian").save(tmp_path / "pipe")
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


@pytest.mark.parametrize("failing", ["fsync", "replace"])
def test_a_failure_to_write_leaves_the_old_file_and_nothing_else(path, failing, monkeypatch):
    before = path.read_bytes()

    def no_space(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, failing, no_space)
    with pytest.raises(OSError, match=r"could not be written \(No space left on device\); whatever was"):
        model("logistic").save(path)
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_a_disk_that_is_full_halfway_leaves_the_old_file_and_nothing_else(path):
    before = path.read_bytes()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        with pytest.raises(OSError, match="could not be written"):
            model("logistic").save(path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_an_interruption_leaves_the_old_file_and_nothing_else(path, monkeypatch):
    before = path.read_bytes()

    def interrupted(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model("logistic").save(path)
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_permissions_and_links_survive(path, tmp_path):
    path.chmod(0o640)
    link = tmp_path / "link.model"
    link.symlink_to(path)
    model("logistic").save(link)
    assert link.is_symlink()
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert load(path).learner_ == model("logistic").learner_


def test_what_is_not_fitted_is_not_saved(tmp_path):
    for unfitted in (NestedDichotomyClassifier(), CalibratedClassifier(LogisticRegression())):
        with pytest.raises(NotFittedError):
            unfitted.save(tmp_path / "a.model")


def test_classes_of_the_user_are_refused(tmp_path):
    class Mine(NestedDichotomyClassifier):
        pass

    with pytest.raises(ModelFileError, match="Mine cannot be saved by itself"):
        Mine().fit(*digits()).save(tmp_path / "a.model")
    with pytest.raises(ModelFileError, match="DenseWeights cannot be saved by itself"):
        save(model("logistic").model_.scorer, tmp_path / "a.model")


def test_attributes_that_files_do_not_keep_are_refused(tmp_path):
    clf = NestedDichotomyClassifier(random_state=0).fit(*digits())
    clf.note = "mine"
    with pytest.raises(ModelFileError, match="has an attribute 'note', which files do not keep"):
        clf.save(tmp_path / "a.model")


@pytest.mark.parametrize(
    ("library", "kind"), [("safetensors.numpy", "naive-bayes gaussian"), ("skops.io", "clones logistic")]
)
def test_a_missing_library_is_named_with_its_extra(tmp_path, library, kind, monkeypatch):
    clf = model(kind)

    def missing(name):
        raise ModuleNotFoundError(name) if name == library else AssertionError(name)

    monkeypatch.setattr(checks, "import_module", missing)
    wanted = rf"needs {library.partition('.')[0]}: pip install 'dichotomies\[save\]'"
    with pytest.raises(ImportError, match=wanted):
        clf.save(tmp_path / "a.model")


def test_a_model_that_could_not_be_loaded_is_not_saved(tmp_path):
    clf = NestedDichotomyClassifier(random_state=0).fit(*digits())
    clf.n_features_in_ += 1
    with pytest.raises(ModelFileError, match=r"Classifier cannot be saved: its parts do not fit"):
        clf.save(tmp_path / "a.model")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names on this system")
def test_what_is_no_regular_file_is_refused_without_reading(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for place in (tmp_path / "pipe", "/dev/zero"):
        with pytest.raises(ModelFileError, match="is not a regular file"):
            load(place)


def test_little_is_read_of_a_large_file_that_is_no_model(tmp_path):
    with (tmp_path / "large").open("wb") as file:
        file.truncate(2**40)  # takes no place on the disk
    with pytest.raises(ModelFileError, match="is not a model file"):
        load(tmp_path / "large")


@pytest.mark.parametrize("name", ["naive-bayes gaussian", "logistic", "clones logistic"])
def test_a_mapped_model_predicts_the_same_from_memory_that_processes_share(tmp_path, name):
    clf, (X, _) = model(name), digits()
    clf.save(tmp_path / "a.model")
    mapped = load(tmp_path / "a.model", mmap_mode="r")
    np.testing.assert_array_equal(mapped.predict_proba(X), clf.predict_proba(X))
    for array in save_load.read(tmp_path / "a.model", copy=False)[1].values():
        assert not array.flags.writeable
        assert not array.flags.owndata
    (tmp_path / "a.model").unlink()  # as if replaced by another
    np.testing.assert_array_equal(mapped.predict_proba(X), clf.predict_proba(X))
    with pytest.raises(ValueError, match="mmap_mode must be None or 'r'"):
        load(tmp_path / "a.model", mmap_mode="w")
