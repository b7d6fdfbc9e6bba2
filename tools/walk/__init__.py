"""Draws the walk of one execution through the functions of db: `python -m tools.walk`.

The functions of a temporary database announce each of their calls, with the stack that PostgreSQL reports. So the walk
has what runs, in order, and nothing that a body only names.
"""

from tools.walk.counts import Counts, count
from tools.walk.life import Step, walk

__all__ = ["Counts", "Step", "count", "walk"]
