"""Written by `python -m tools.codegen` from a migrated database, and checked in. Do not edit."""
