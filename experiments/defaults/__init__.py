"""The study of the default calibration: against the default before it, and against every fixed pair."""
