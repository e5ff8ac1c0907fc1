"""``python -m dichotomies`` is the command line."""

from dichotomies.cli import main

main()
