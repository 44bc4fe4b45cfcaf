"""``python -m deep_oversampling`` is ``dos``."""

from .cli import main

main()
