"""Every dataset is built from files in the layout of its public source, served by a server of our own."""

import bz2
import gzip
import io
import json
import tarfile
import zipfile

import numpy as np
import pytest
from scipy.io import savemat
from scipy.sparse import issparse
from sklearn.datasets import dump_svmlight_file

from experiments.datasets import DATASETS, RawFile, load


@pytest.fixture
def built(site, cache, monkeypatch):
    """Serve the raw files of a dataset, load it, and load it again without network."""

    def build(name, contents, rows, features, classes):
        cls = DATASETS.get(name)
        files = []
        for file, content in zip(cls.files, contents, strict=True):
            address = site.put(file.name, content)
            files.append(RawFile(file.name, address if file.url else None))
            if not file.url:
                (cache / name).mkdir(parents=True)
                (cache / name / file.name).write_bytes(content)
        sizes = {"rows": rows, "features": features, "classes": classes}
        for attribute, value in {"files": tuple(files), "openml": None, **sizes}.items():
            monkeypatch.setattr(cls, attribute, value)
        dataset = load(name, progress=False)
        site.files.clear()
        again = load(name, download=False)
        assert _dense(dataset.X).tolist() == _dense(again.X).tolist()
        assert dataset.y.tolist() == again.y.tolist()
        assert dataset.extra.keys() == again.extra.keys()
        return dataset

    return build


def _dense(X):
    return X.toarray() if issparse(X) else X


def zipped(files):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def tarred(files, mode="w"):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode) as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


def lines(table, separator=","):
    return "\n".join(separator.join(map(str, row)) for row in table) + "\n"


def parts(dataset):
    return dataset.split("train")[1].tolist(), dataset.split("test")[1].tolist()


def test_optdigits(built, rng):
    table = np.column_stack([rng.integers(0, 17, (7, 64)), [3, 1, 3, 1, 1, 3, 3]])
    data = built(
        "optdigits",
        [zipped({"optdigits.tra": lines(table[:5]), "optdigits.tes": lines(table[5:])})],
        7,
        64,
        2,
    )
    assert np.array_equal(data.X, table[:, :-1])
    assert data.X.dtype == np.uint8
    assert parts(data) == ([3, 1, 3, 1, 1], [3, 3])


def test_letter(built, rng, monkeypatch):
    monkeypatch.setattr(DATASETS.get("letter"), "training_rows", 3)
    X, y = rng.integers(0, 16, (5, 16)), list("TIDAT")
    text = lines([letter, *row] for letter, row in zip(y, X, strict=True))
    data = built("letter", [zipped({"letter-recognition.data": text, "Index": "other"})], 5, 16, 4)
    assert np.array_equal(data.X, X)
    assert parts(data) == (list("TID"), list("AT"))


def test_micromass_lies_in_an_archive_in_the_archive(built, rng):
    X = np.round(rng.random((4, 1300)), 3).astype(np.float32)
    inner = zipped(
        {
            "micromass/pure_spectra_matrix.csv": lines(X.tolist(), ";"),
            "micromass/pure_spectra_metadata.csv": "Species;Strain\nA.B;1\nA.B;2\nC.D;3\nC.D;3\n",
            "micromass/mixed_spectra_matrix.csv": "1;2\n",
        }
    )
    other = zipped({"micromass/pure_spectra_matrix.csv": "0;0\n"})
    files = {"README": "", "micromass_un_anonymized.zip": other, "micromass.zip": inner}
    data = built("micromass", [zipped(files)], 4, 1300, 2)
    assert np.array_equal(data.X, X)
    assert data.y.tolist() == ["A.B", "A.B", "C.D", "C.D"]
    assert data.extra["strain"].tolist() == ["1", "2", "3", "3"]


def test_devanagari_images(built, rng):
    image = pytest.importorskip("PIL.Image")
    pixels = rng.integers(0, 256, (4, 32, 32), dtype=np.uint8)
    folder = "DevanagariHandwrittenCharacterDataset/"
    places = [
        "Test/digit_0/7.png",
        "Train/character_1_ka/1.png",
        "Train/character_1_ka/2.png",
        "Train/digit_0/3.png",
    ]
    files = {}
    for place, each in zip(places, pixels, strict=True):
        buffer = io.BytesIO()
        image.fromarray(each).save(buffer, "png")
        files[folder + place] = buffer.getvalue()
    data = built("devanagari", [zipped(files)], 4, 1024, 2)
    assert np.array_equal(data.X, pixels.reshape(4, -1)[[1, 2, 3, 0]])
    assert parts(data) == (["character_1_ka", "character_1_ka", "digit_0"], ["digit_0"])


def test_an_archive_without_the_file_says_what_it_holds(built):
    with pytest.raises(
        ValueError, match=r"letter\.zip has no file 'letter-recognition\.data'; .*\['Index'\]"
    ):
        built("letter", [zipped({"Index": ""})], 1, 16, 1)


def test_files_of_another_size_are_not_taken_for_the_dataset(built, cache):
    content = zipped({"letter-recognition.data": lines([["T", *range(16)]])})
    with pytest.raises(
        ValueError, match=r"gave \(1, 16, 1\) rows, features and classes instead of \(2, 16, 1\)"
    ):
        built("letter", [content], 2, 16, 1)
    assert not (cache / "letter" / "letter.npz").exists()


def svmlight(X, y):
    buffer = io.BytesIO()
    dump_svmlight_file(X, y, buffer, zero_based=False)
    return bz2.compress(buffer.getvalue())


@pytest.mark.parametrize("name", ["rcv1", "sector"])
def test_libsvm_training_and_test_files(built, rng, name):
    X = np.round(rng.random((6, 9)) * (rng.random((6, 9)) < 0.4), 2)
    X[:, -1] = 0  # a feature that no row has is still a column
    y = np.array([4, 1, 4, 2, 2, 1])
    data = built(name, [svmlight(X[:4], y[:4]), svmlight(X[4:], y[4:])], 6, 9, 3)
    assert issparse(data.X)
    assert np.allclose(data.X.toarray(), X, atol=1e-7)
    assert parts(data) == ([4, 1, 4, 2], [2, 1])


def test_aloi_holds_out_a_stratified_tenth(built, rng):
    X, y = np.round(rng.random((40, 8)), 3), np.repeat([1, 2], 20)
    data = built("aloi", [svmlight(X, y)], 40, 8, 2)
    assert np.allclose(data.X, X)
    train, test = parts(data)
    assert sorted(test) == [1, 1, 2, 2]
    assert len(train) == 36


def test_odp_keeps_the_most_frequent_classes_of_the_training_file(built):
    train = "7 | 3:0.5 1:2\n9 | 0:1\n7 |f 2:1.5\n5 | 1:1\n5 | 4:1\n8 | 0:1\n"
    test = "8 | 1:1\n7 | 0:4\n5 | 5:0.25\n"
    data = built("odp5k", [gzip.compress(train.encode()), gzip.compress(test.encode())], None, None, 2)
    assert parts(data) == ([7, 7, 5, 5], [7, 5])
    expected = np.zeros((6, 6))
    expected[[0, 0, 1, 2, 3, 4, 5], [1, 3, 2, 1, 4, 0, 5]] = [2, 0.5, 1.5, 1, 1, 4, 0.25]
    assert data.X.toarray().tolist() == expected.tolist()


def test_ilsvr2010_counts_the_visual_words_of_what_was_put_there_by_hand(built, site):
    def mat(images):
        cells = np.array(
            [(f"im{i}", {"word": np.array(words, np.uint16)[:, None]}) for i, words in enumerate(images)],
            dtype=[("ID", object), ("sbow", object)],
        )
        buffer = io.BytesIO()
        savemat(buffer, {"image_sbow": cells[:, None]})
        return buffer.getvalue()

    files = {"train/n02.sbow.mat": mat([[0, 2, 2], [3]]), "train/n01.sbow.mat": mat([[1, 1, 0, 3]])}
    data = built("ilsvr2010", [tarred(files)], 3, 4, 2)
    assert data.y.tolist() == ["n01", "n02", "n02"]
    assert data.X.toarray().tolist() == [[1, 2, 0, 1], [1, 0, 2, 0], [0, 0, 0, 1]]
    assert site.requests == []


def test_clinc150_takes_its_vocabulary_from_training_queries(built):
    queries = {
        "train": [["Pay my at&t bill, please", "pay"], ["pay my rent", "pay"], ["what's up", "hi"]],
        "val": [["what's my bill", "pay"]],
        "test": [["pay pay", "pay"]],
        "oos_train": [["unknown", "oos"]],
    }
    data = built("clinc150", [json.dumps(queries).encode()], 5, 3, 2)
    assert data.extra["vocab"].tolist() == ["my", "pay", "pay my"]
    assert data.X.toarray().tolist() == [[1, 1, 1], [1, 1, 1], [0, 0, 0], [1, 0, 0], [0, 2, 0]]
    assert data.split("val")[1].tolist() == ["pay"]
    assert parts(data) == (["pay", "pay", "hi"], ["pay"])


def story(number, part, topics, title, body, has_topics="YES"):
    tags = "".join(f"<D>{topic}</D>" for topic in topics)
    return (
        f'<REUTERS TOPICS="{has_topics}" LEWISSPLIT="{part}" OLDID="9" NEWID="{number}">\n'
        f"<TOPICS>{tags}</TOPICS>\n<TEXT>&#2;\n<TITLE>{title}</TITLE>\n<BODY>{body}\n&#3;</BODY></TEXT>\n</REUTERS>\n"
    )


def test_reuters52_takes_stories_with_one_topic_that_both_parts_have(built):
    pages = [b""] * 22
    pages[0] = (
        story(2, "TEST", ["tea"], "TEA &lt;T>", "up 3 pct")
        + story(1, "TRAIN", ["tea"], "TEA", "is up\nup")
        + story(3, "TRAIN", ["tea", "gas"], "TEA", "gas")
        + story(4, "TRAIN", ["gas"], "GAS", "only here")
        + story(5, "TRAIN", ["tea"], "TEA", "no", has_topics="NO")
    ).encode("latin-1")
    pages[1] = story(6, "TRAIN", ["tea"], "TEA", "up &amp; x").encode("latin-1")
    data = built("reuters52", pages, 3, 2, 1)
    assert data.extra["vocab"].tolist() == ["tea", "up"]
    assert data.extra["newid"].tolist() == [1, 6, 2]
    assert data.X.toarray().tolist() == [[1, 2], [1, 1], [1, 1]]
    assert parts(data) == (["tea", "tea"], ["tea"])


def test_onet_titles_of_occupations_with_five(built):
    head = "O*NET-SOC Code\tAlternate Title\tShort Title\tSource(s)\n"
    titles = [
        "11-1\tNurse A",
        "11-1\tNurse B",
        "11-1\tNurse C",
        "11-1\tNurse C",
        "11-1\tNurse D",
        "22-2\tCook",
    ]
    own = "O*NET-SOC Code\tTitle\tDescription\n11-1\tNurses\tThey nurse.\n22-2\tCooks\tThey cook.\n"
    text = head + "".join(f"{title}\tn/a\t08\n" for title in titles)
    data = built("onet_titles", [text.encode(), own.encode()], 5, 15, 1)
    assert data.y.tolist() == ["11-1"] * 5
    padded = " nurse "
    sequences = {padded[i : i + n] for n in (2, 3, 4) for i in range(len(padded) - n + 1)}
    assert data.extra["vocab"].tolist() == sorted(sequences)
    assert data.X.toarray().sum(axis=0).max() == 5


def test_wordnet_takes_meanings_with_one_parent(built):
    def noun(offset, words, parents, gloss):
        pointers = " ".join(f"@ {parent:08d} n 0000" for parent in parents)
        pairs = " ".join(f"{word} 0" for word in words)
        n_pointers = f"{len(parents):03d} {pointers}".strip()
        return f"{offset:08d} 03 n {len(words):02x} {pairs} {n_pointers} | {gloss}  \n"

    nouns = "  1 This software and database\n" + noun(100, ["living_thing", "being"], [], "what lives")
    nouns += "".join(noun(200 + i, [f"kind_{i}"], [100], "a being's kind") for i in range(4))
    nouns += noun(300, ["both"], [100, 200], "two parents") + noun(301, ["few"], [200], "a small family")
    verbs = '00000500 29 v 01 do 0 002 @ 00000100 n 0000 + 00000200 n 0101 01 + 08 00 | act; "do it"  \n'
    content = tarred({"dict/data.noun": nouns.encode(), "dict/data.verb": verbs.encode()}, "w:gz")
    data = built("wordnet", [content], 5, 4, 1)
    assert data.y.tolist() == ["00000100n.living_thing"] * 5
    assert data.extra["vocab"].tolist() == ["a", "being's", "kind"]
    assert data.X.toarray().tolist() == [[1, 1, 2]] * 4 + [[0, 0, 0]]


def test_cifar100_probabilities(built, rng):
    buffer = io.BytesIO()
    probabilities = rng.dirichlet(np.ones(4), 3).astype(np.float32)
    np.savez(buffer, predictions=probabilities, ground_truth=np.array([[2], [0], [2]]))
    data = built("cifar100_probs", [buffer.getvalue()], 3, 4, 2)
    assert np.array_equal(data.X, probabilities)
    assert data.y.tolist() == [2, 0, 2]
