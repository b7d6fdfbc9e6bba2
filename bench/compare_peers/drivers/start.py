"""Starts a driver that uses pyff itself: python start.py DRIVER client|worker DSN [OPTIONS]"""

import runpy
import sys
from pathlib import Path

here = Path(__file__).parent
sys.path[:0] = [str(here), str(here.parents[2])]
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
