"""The classifiers that users construct."""
