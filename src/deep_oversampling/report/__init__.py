"""A run told on one self-contained HTML page."""

from .page import write_report
from .storing import load_story, save_story
from .story import Mistake, Moment, OverSampled, Story

__all__ = [
    "Mistake",
    "Moment",
    "OverSampled",
    "Story",
    "load_story",
    "save_story",
    "write_report",
]
