"""`python -m tools.codegen [--check] [DSN]`"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import psycopg

from pyff.failure import Failure
from tools.codegen.files import generate, stale, write


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tools.codegen", description="Writes pyff/_generated and the reference in docs."
    )
    parser.add_argument(
        "dsn", nargs="?", help="a migrated database (default: a temporary one with db/ installed)"
    )
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a file is stale")
    args = parser.parse_args(argv)
    try:
        with _database(args.dsn) as dsn, psycopg.connect(dsn) as conn:
            texts = generate(conn)
    except Failure as failure:
        print(failure, file=sys.stderr)
        return failure.exit_code
    if args.check:
        differences = stale(texts)
        print("\n".join(differences.values()), end="\n" if differences else "")
        return 1 if differences else 0
    for name in write(texts):
        print(f"wrote {name}")
    return 0


@contextmanager
def _database(dsn: str | None) -> Iterator[str]:
    if dsn is not None:
        yield dsn
        return
    from pyff.migrate import migrate
    from pyff.postgres import temporary

    with temporary() as server:
        migrate(server.dsn)
        yield server.dsn


if __name__ == "__main__":
    sys.exit(main())
