"""The demonstration: a newsletter is made, and everything that can go wrong on the way does."""

from pyff.demo.screen import Screen
from pyff.demo.story import Story, run

__all__ = ["Screen", "Story", "run"]
