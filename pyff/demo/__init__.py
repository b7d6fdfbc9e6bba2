"""A ten-second demo: a newsletter, with a crash, a failure, a rate limit and an exhausted budget on the way."""

from pyff.demo.screen import Screen
from pyff.demo.story import Story, run

__all__ = ["Screen", "Story", "run"]
