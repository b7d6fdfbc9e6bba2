"""`python -m pyff` is the `pyff` command."""

import sys

from pyff.cli import main

sys.exit(main())
