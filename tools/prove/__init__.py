"""Load with faults, planted bugs, and the checker of what came of them: `python -m tools.prove`."""
