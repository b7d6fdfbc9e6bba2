"""Lists pairs of places in db/ and pyff/ that share ten or more lines of the same shape: `python -m tools.duplicates`.

Two lines have the same shape if they differ in names, strings and numbers only. Not counted are comments, docstrings,
imports, lines of nothing but strings, numbers and brackets, and lists: ten lines of fewer than five shapes. Of SQL the
bodies of functions and the queries of views count: signatures and COMMENTs declare an interface, and a released
migration is never edited. Generated modules do not count. CONTRIBUTING.md explains the pairs that remain.
"""

from tools.duplicates.explained import explanations, stale, unexplained
from tools.duplicates.pairs import Pair, find

__all__ = ["Pair", "explanations", "find", "stale", "unexplained"]
