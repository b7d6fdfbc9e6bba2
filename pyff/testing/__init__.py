"""For your own tests: run queued work synchronously, and move the clock.

    from pyff.testing import advance, drain

The pytest plugin `pyff.testing.plugin` has fixtures with a migrated database for every test.
"""

from pyff.testing.clock import advance, freeze, unfreeze
from pyff.testing.drain import Drained, drain

__all__ = ["Drained", "advance", "drain", "freeze", "unfreeze"]
