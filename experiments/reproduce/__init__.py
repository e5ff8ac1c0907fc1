"""The paper's experiments run again, and its tables with our numbers beside its own."""
