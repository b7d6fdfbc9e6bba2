"""Compares recorded client histories with the database.

Clients record every call before it is sent and every result before they use it (`Recorder`); `load` reads these
histories, `check` compares them with the database and yields violations. A call whose result was lost may have taken
effect or not: both are valid, anything else is a violation.
"""

from tools.verify.check import check
from tools.verify.history import Call, Recorder, load
from tools.verify.violation import Violation

__all__ = ["Call", "Recorder", "Violation", "check", "load"]
