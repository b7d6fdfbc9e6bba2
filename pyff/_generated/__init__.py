"""Written by `python -m pyff.codegen` from a migrated database, and checked in. Do not edit."""
