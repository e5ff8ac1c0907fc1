"""Where a dataset comes from, and what is said when it comes from nowhere."""

import hashlib
import json
import re

import numpy as np
import pytest

from experiments.datasets import DATASETS, FetchError, RawFile, available, describe, load
from experiments.tests.datasets.test_sources import lines, zipped


@pytest.fixture
def letter(site, cache, monkeypatch):
    """A small letter dataset at a server of our own; returns the class that describes it."""
    cls = DATASETS.get("letter")
    content = zipped({"letter-recognition.data": lines([["T", *range(16)], ["I", *range(16)]])})
    small = {"rows": 2, "features": 16, "classes": 2, "training_rows": 1, "openml": None}
    small["files"] = (RawFile("letter.zip", site.put("letter.zip", content)),)
    for attribute, value in small.items():
        monkeypatch.setattr(cls, attribute, value)
    return cls


def put(folder, name, y):
    (folder / name).mkdir(parents=True)
    np.savez(folder / name / f"{name}.npz", X=np.zeros((2, 16)), y=y)


def test_the_data_folder_comes_before_the_cache_and_that_before_the_source(letter, site, cache, tmp_path):
    assert describe("letter").place == "download"
    assert load("letter", progress=False).y.tolist() == ["T", "I"]
    assert describe("letter").place == "cache"
    assert load("letter").y.tolist() == ["T", "I"]
    put(tmp_path / "data", "letter", ["A", "B"])
    assert describe("letter", tmp_path / "data").place == "data folder"
    assert load("letter", tmp_path / "data").y.tolist() == ["A", "B"]
    assert len(site.requests) == 1


def test_a_cache_that_holds_the_raw_file_needs_no_network(letter, site, cache):
    (cache / "letter").mkdir(parents=True)
    (cache / "letter" / "letter.zip").write_bytes(site.files["letter.zip"])
    assert load("letter", download=False).y.tolist() == ["T", "I"]
    assert site.requests == []


def test_offline_one_sentence_says_which_file_to_put_where(letter, site, cache, tmp_path):
    site.files.clear()
    address = re.escape(letter.files[0].url)
    raw = re.escape(str(cache / "letter" / "letter.zip"))
    with pytest.raises(
        FileNotFoundError, match=rf"\(the source answers 404 .*\): download {address} and put it as {raw}"
    ):
        load("letter", progress=False)
    prepared = re.escape(str(tmp_path / "letter" / "letter.npz"))
    with pytest.raises(
        FileNotFoundError, match=rf"not to be downloaded.*or put a prepared letter\.npz as {prepared}\.$"
    ):
        load("letter", tmp_path, download=False)
    assert not (cache / "letter" / "letter.zip").exists()


def test_a_wrong_checksum_is_not_taken_for_being_offline(letter, monkeypatch):
    monkeypatch.setattr(letter, "files", (RawFile("letter.zip", letter.files[0].url, "0" * 64),))
    with pytest.raises(FetchError, match="thrown away") as caught:
        load("letter", progress=False)
    assert not isinstance(caught.value, FileNotFoundError)


def test_all_files_that_are_needed_are_named(cache):
    with pytest.raises(
        FileNotFoundError,
        match=r"download \S+ \(also needed: sector\.t\.scale\.bz2\) and put it as \S+sector\.scale\.bz2,",
    ):
        load("sector", download=False)


def test_what_needs_registration_says_what_to_do(cache):
    archive = re.escape(str(cache / "ilsvr2010" / "ILSVRC2010_feature_sbow_train.tar"))
    with pytest.raises(
        FileNotFoundError, match=rf"register at https://image-net\.org .* and put it as {archive}"
    ):
        load("ilsvr2010")
    assert describe("ilsvr2010").place == "by hand"


def test_what_is_not_built_from_a_source_says_where_to_put_it(cache, tmp_path):
    with pytest.raises(
        FileNotFoundError, match=r"put omniglot\.npz into the folder omniglot of the data folder that"
    ):
        load("omniglot")
    with pytest.raises(
        FileNotFoundError, match=rf"put omniglot\.npz as {re.escape(str(tmp_path))}/omniglot/omniglot"
    ):
        load("omniglot", tmp_path)


def test_a_name_that_is_nowhere_is_told_what_there_is(cache, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no dataset 'other': no file .*other\.npz.*'letter'"):
        load("other", tmp_path)


def test_all_of_the_registry_are_listed_with_a_place(cache):
    places = {each.name: each.place for each in available()}
    assert list(places) == DATASETS.names()
    assert {name for name, place in places.items() if place == "by hand"} == {
        "ilsvr2010",
        "kanji_fonts",
        "nhcd",
        "omniglot",
    }


def openml_pages(site, data_id, X, y):
    """What scikit-learn asks OpenML for."""
    columns = [f"x{j}" for j in range(X.shape[1])]
    arff = "@RELATION letter\n" + "".join(f"@ATTRIBUTE {column} INTEGER\n" for column in columns)
    arff += f"@ATTRIBUTE class {{{','.join(sorted(set(y)))}}}\n@DATA\n"
    arff += lines([*row, label] for row, label in zip(X, y, strict=True))
    features = [{"name": each, "data_type": "numeric"} for each in columns]
    features.append({"name": "class", "data_type": "nominal", "is_target": "true"})
    for index, feature in enumerate(features):
        feature |= {"index": str(index), "is_ignore": "false", "is_row_identifier": "false"}
        feature["number_of_missing_values"] = "0"
        feature.setdefault("is_target", "false")
    description = {
        "id": str(data_id),
        "name": "letter",
        "version": "1",
        "format": "ARFF",
        "status": "active",
        "description": "letters",
        "url": site.put("data/v1/download/1/letter.arff", arff.encode()),
        "default_target_attribute": "class",
        "md5_checksum": hashlib.md5(arff.encode()).hexdigest(),
    }
    qualities = [{"name": "NumberOfInstances", "value": str(len(y))}]
    site.put(f"api/{data_id}", json.dumps({"data_set_description": description}).encode())
    site.put(f"api/features/{data_id}", json.dumps({"data_features": {"feature": features}}).encode())
    site.put(f"api/qualities/{data_id}", json.dumps({"data_qualities": {"quality": qualities}}).encode())


def test_openml_is_asked_when_the_source_is_out_of_reach(letter, site, cache, monkeypatch, capsys):
    site.files.clear()
    monkeypatch.setattr(letter, "openml", 6)
    for page, path in {
        "_DATA_INFO": "",
        "_DATA_FEATURES": "features/",
        "_DATA_QUALITIES": "qualities/",
    }.items():
        monkeypatch.setattr(f"sklearn.datasets._openml.{page}", f"{site.url}/api/{path}{{}}")
    monkeypatch.setattr("sklearn.datasets._openml._OPENML_PREFIX", site.url + "/", raising=False)
    X = np.arange(32).reshape(2, 16)
    openml_pages(site, 6, X, ["I", "T"])
    data = load("letter", progress=False)
    assert np.array_equal(data.X, X)
    assert data.y.tolist() == ["I", "T"]
    assert "Trying OpenML" in capsys.readouterr().err
    assert not (cache / "letter" / "letter.npz").exists()


def test_without_source_and_openml_the_sentence_names_the_source(letter, site, cache, monkeypatch):
    site.files.clear()
    monkeypatch.setattr(letter, "openml", 6)
    monkeypatch.setattr("sklearn.datasets._openml._DATA_INFO", "http://127.0.0.1:9/{}")
    monkeypatch.setattr("time.sleep", lambda _: None)  # scikit-learn waits between its tries
    with pytest.raises(
        FileNotFoundError,
        match=r"the source answers 404 .*, and OpenML does not help\): download .*letter\.zip",
    ):
        load("letter", progress=False)
