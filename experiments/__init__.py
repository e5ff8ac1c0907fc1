"""The paper's reproduction and a study of trees and calibrations; run from the repository, not installed."""
