"""
Calibrating somebody else's probabilities
=========================================

The calibrators work on the probabilities, or logits, of any model: a network, a classifier of another library, a file. They need only
held-out rows with their labels.
"""

# %%
# A network of scikit-learn, trained until it is sure of everything, as networks are. Its logits are all that is used below; those of
# PyTorch or Keras would do as well.
import warnings

import numpy as np
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

X, y = load_digits(return_X_y=True)
rng = np.random.default_rng(0)
X = X + rng.normal(scale=6, size=X.shape)  # hard enough that it errs
X_train, X_rest, y_train, y_rest = train_test_split(X, y, train_size=700, stratify=y, random_state=0)
X_held, X_test, y_held, y_test = train_test_split(
    X_rest, y_rest, train_size=500, stratify=y_rest, random_state=0
)
with warnings.catch_warnings():
    warnings.simplefilter("ignore", ConvergenceWarning)
    network = MLPClassifier((64,), max_iter=300, random_state=0).fit(X_train, y_train)
logits_held, logits_test = (np.log(network.predict_proba(rows)) for rows in (X_held, X_test))

# %%
# Every multiclass calibrator of the library, fitted to 500 held-out rows. Logits need not be normalised.
from dichotomies.calibrators.multiclass import MULTICLASS
from dichotomies.metrics import expected_calibration_error, negative_log_likelihood

results = {"none": logits_test}
for name in MULTICLASS.names():
    calibrator = MULTICLASS.create(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        results[name] = calibrator.fit(logits_held, y_held).predict_log_proba(logits_test)
nll = {name: negative_log_likelihood(y_test, log_proba, is_log=True) for name, log_proba in results.items()}
ece = {name: expected_calibration_error(y_test, np.exp(log_proba)) for name, log_proba in results.items()}
for name in sorted(nll, key=nll.get):
    print(f"{name:16}  NLL {nll[name]:.3f}  ECE {ece[name]:.3f}")

# %%
# To keep model and calibrator together, and to save them as one file, wrap the classifier. One that is fitted is not fitted again.
from dichotomies import CalibratedClassifier

calibrated = CalibratedClassifier(network, method="vector").fit(X_held, y_held)
print(calibrated.predict_proba(X_test[:2]).round(2))

# %%
# Before and after:
from dichotomies.plots import ReliabilityDisplay

display = ReliabilityDisplay.from_estimator({"network": network, "calibrated": calibrated}, X_test, y_test)
