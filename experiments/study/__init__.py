"""A study of all structures, base learners and calibrations, compared."""
