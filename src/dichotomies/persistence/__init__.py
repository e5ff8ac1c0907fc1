"""Model files: arrays in safetensors, the rest in versioned JSON; loading runs no code from the file."""

from dichotomies.persistence.catalogue import CATALOGUE, Estimator, Parameters, savable
from dichotomies.persistence.errors import ModelFileError
from dichotomies.persistence.save_load import load, save

__all__ = ["CATALOGUE", "Estimator", "ModelFileError", "Parameters", "load", "savable", "save"]
