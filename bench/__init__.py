"""Speed, as ratios taken back to back in one run. Never part of the tests."""
