"""Trials that can be stopped and resumed: run over several processes, measured, stored."""
