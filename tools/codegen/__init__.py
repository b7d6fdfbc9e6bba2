"""Generates the Python methods of the SQL functions: `python -m tools.codegen`; `--check` fails if a file is stale.

The source is a migrated database. pg_proc gives names, arguments, defaults and columns; COMMENT ON FUNCTION
gives what SQL types cannot express (see `comment`); the table ff_error_code gives the errors. The result:

    pyff/_generated/errors.py         one exception per error code
    pyff/_generated/results.py        one frozen dataclass per shape of result
    pyff/_generated/statements.py     one call per function, shared by both engines
    pyff/_generated/async_methods.py  the methods of AsyncEngine
    pyff/_generated/methods.py        the methods of Engine, from the file above
    pyff/engine.py                    from pyff/async_engine.py, which is written by hand;
                                      likewise follow.py and stored_cursor.py

A public function is `ff_<name>`, not `ff__<name>`. Its required arguments are positional or keyword, its
optional ones keyword only, so that a new one can be added anywhere. Procedures have no method: they control
transactions themselves, so `CALL` them on a connection in autocommit mode.
"""

from tools.codegen.files import generate, stale, write

__all__ = ["generate", "stale", "write"]
