"""A ten-second demo: a newsletter, with a crash, a failure, a rate limit and an exhausted budget on the way."""

from tools.demo.screen import Screen
from tools.demo.story import Story, run

__all__ = ["Screen", "Story", "run"]
