"""Compares what clients were told with what the database holds.

Clients write down every call before they make it and every answer before they act on it (`Recorder`); `load` reads
these histories back, `check` compares them with the database and yields what cannot be. A call whose answer was lost
may have happened or not: either is fine, anything else is a violation.
"""

from pyff.verify.check import check
from pyff.verify.history import Call, Recorder, load
from pyff.verify.violation import Violation

__all__ = ["Call", "Recorder", "Violation", "check", "load"]
