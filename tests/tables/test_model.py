"""A model of tables is its classifier and its texts, saved and loaded without change."""

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline

from dichotomies import CalibratedClassifier, NestedDichotomyClassifier
from dichotomies.persistence import ModelFileError, load
from dichotomies.tables import Columns, Table, TableFileError, TableModel, TextFeatures, open_table
from dichotomies.tables.encoders import MAX_TERMS, NGRAMS

TEXTS = ["head nurse", "nurse", "data engineer", "software engineer", "pastry cook", "C cook 3"] * 6
LABELS = np.array(["007", "007", "011", "011", "009", "009"] * 6)


def titles(numbers=False):
    X = np.arange(36.0).reshape(36, 1) if numbers else np.empty((36, 0))
    return Table(X, LABELS, ("age",) if numbers else (), {"title": TEXTS})


def classifier():
    return NestedDichotomyClassifier(
        LogisticRegression(C=10), internal_calibration=None, external_calibration=None, random_state=0
    )


@pytest.mark.parametrize("ngrams", NGRAMS)
def test_text_features_are_those_of_scikit_learn(ngrams):
    settings = {"word": {"ngram_range": (1, 2), "token_pattern": r"\b\w+\b"}, "char": {"ngram_range": (2, 4)}}
    analyzer = {"word": "word", "char": "char_wb"}[ngrams]
    reference = TfidfVectorizer(analyzer=analyzer, sublinear_tf=True, **settings[ngrams]).fit(TEXTS)
    features = TextFeatures.fit("title", TEXTS, ngrams)
    new = ["nurse engineer nurse", "", "ÄRZTE"]
    np.testing.assert_array_equal(features.matrix(new).toarray(), reference.transform(new).toarray())


def test_the_vocabulary_is_bounded(monkeypatch):
    monkeypatch.setattr("dichotomies.tables.encoders.MAX_TERMS", 3)
    assert len(TextFeatures.fit("title", TEXTS).terms) == 3
    assert MAX_TERMS > 3


def test_texts_without_words_are_refused():
    with pytest.raises(TableFileError, match="'title' has no words in any row"):
        TextFeatures.fit("title", ["", "!"])


def test_a_model_of_texts_is_a_pipeline_of_scikit_learn():
    vectorizer = TfidfVectorizer(sublinear_tf=True, **NGRAMS["word"])
    reference = make_pipeline(vectorizer, classifier()).fit(TEXTS, LABELS)
    model = TableModel.fit(classifier(), titles())
    np.testing.assert_allclose(
        model.predict_log_proba(titles()), reference.predict_log_proba(TEXTS), rtol=1e-9, atol=1e-9
    )


@pytest.mark.parametrize("numbers", [False, True])
def test_a_saved_model_gives_the_same_probabilities(numbers, tmp_path):
    table = titles(numbers)
    model = TableModel.fit(classifier(), table, label="code")
    model.save(tmp_path / "titles.model")
    again = load(tmp_path / "titles.model")
    assert (again.label, again.features) == ("code", table.names)
    np.testing.assert_array_equal(again.predict_log_proba(table), model.predict_log_proba(table))


def test_a_model_whose_parts_do_not_fit_is_not_saved(tmp_path):
    model = TableModel.fit(classifier(), titles())
    wrong = TableModel(model.classifier, ("one", "too many"), model.text)
    with pytest.raises(ModelFileError, match="features has n_numeric entries"):
        wrong.save(tmp_path / "titles.model")


def test_weights_count_rows():
    weights = np.array([2.0, 1.0] * 18)
    weighted = Table(titles().X, LABELS, (), {"title": TEXTS}, weight=weights)
    rows = np.repeat(np.arange(36), weights.astype(int))
    # the terms are those of the rows, not of their copies, so let there be one vocabulary
    text = (TextFeatures.fit("title", TEXTS),)
    X, repeated = text[0].matrix(TEXTS), text[0].matrix([TEXTS[i] for i in rows])
    reference = classifier().fit(repeated, LABELS[rows])
    model = TableModel.fit(classifier(), weighted)
    np.testing.assert_allclose(
        model.predict_log_proba(weighted), reference.predict_log_proba(X), rtol=1e-3, atol=1e-3
    )


def test_a_classifier_fitted_to_a_data_frame_reads_its_columns(tmp_path, iris):
    pandas = pytest.importorskip("pandas")
    X, y = iris
    frame = pandas.DataFrame(X, columns=["a", "b", "c", "d"])
    clf = NestedDichotomyClassifier(random_state=0).fit(frame, y)
    frame.assign(other="x")[["d", "other", "c", "b", "a"]].to_csv(tmp_path / "iris.csv", index=False)
    model = TableModel.of(clf)
    table = open_table(tmp_path / "iris.csv").read(model.columns())
    np.testing.assert_array_equal(model.predict_log_proba(table), clf.predict_log_proba(frame))


def test_a_calibrated_classifier_reads_the_columns_of_the_one_it_wraps(iris):
    pandas = pytest.importorskip("pandas")
    X, y = iris
    frame = pandas.DataFrame(X, columns=["a", "b", "c", "d"])
    calibrated = CalibratedClassifier(GaussianNB().fit(frame[::2], y[::2])).fit(frame[1::2], y[1::2])
    model = TableModel.of(calibrated)
    assert model.columns().features == ("a", "b", "c", "d")
    log_proba = model.predict_log_proba(Table(X, names=model.features))
    np.testing.assert_array_equal(log_proba, calibrated.predict_log_proba(frame))


def test_the_top_k_are_the_most_probable_whether_the_classifier_finds_them_or_not(iris):
    X, y = iris
    found = NestedDichotomyClassifier(random_state=0).fit(X, y)
    sorted_here = CalibratedClassifier(GaussianNB().fit(X[::2], y[::2])).fit(X[1::2], y[1::2])
    for clf in (found, sorted_here):
        proba = clf.predict_proba(X)
        order = np.argsort(-proba, axis=1, kind="stable")
        for k in (1, 2, 9):
            labels, best = TableModel(clf).predict_top_k(Table(X), k)
            np.testing.assert_array_equal(labels, clf.classes_[order[:, :k]])
            np.testing.assert_array_equal(best, np.take_along_axis(proba, order[:, :k], axis=1))


def test_labels_are_known_by_their_text():
    clf = NestedDichotomyClassifier().fit([[0.0], [1.0], [2.0]] * 4, [5, 7, 11] * 4)
    assert TableModel.of(clf).codes(np.array(["11", "5", "011", "x"])).tolist() == [2, 0, -1, -1]


def test_a_model_of_texts_needs_a_file_with_texts():
    model = TableModel.fit(classifier(), titles())
    with pytest.raises(TableFileError, match="reads texts, which only CSV and Parquet files have"):
        model.matrix(Table(np.empty((1, 0))))


def test_a_model_without_names_needs_a_file_without_names():
    clf = NestedDichotomyClassifier().fit([[0.0], [1.0]] * 4, [5, 7] * 4)
    with pytest.raises(TableFileError, match="give it an svmlight or NPZ file"):
        TableModel.of(clf).matrix(Table(np.ones((1, 1)), names=("x",)))


def test_what_is_no_classifier_is_refused():
    with pytest.raises(TypeError, match="not a fitted classifier"):
        TableModel.of(Columns())
