"""Sessions that call functions while a new release replaces them."""

import threading
import time

import psycopg

from pyff.migrate import migrate

PLPGSQL = """\
create or replace function {name}({arguments}) returns {returns}
language plpgsql security definer set search_path from current
as $$ begin {body} end $$;
"""


class Callers:
    """Threads that run a query without pause, prepared and not, until the end of the `with`."""

    def __init__(self, dsn, query, count=4):
        self.errors = []
        self.calls = 0
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(dsn, query, n)) for n in range(count)]

    def _run(self, dsn, query, n):
        with psycopg.connect(dsn, autocommit=True, prepare_threshold=[None, 0][n % 2]) as conn:
            while not self._stop.is_set():
                try:
                    conn.execute(query)
                    self.calls += 1
                except psycopg.Error as error:
                    self.errors.append(str(error))

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        self.go_on(10)
        return self

    def go_on(self, calls):
        """Returns once there were that many calls, or an error."""
        until = time.monotonic() + 90
        while self.calls < calls and not self.errors:
            assert time.monotonic() < until, f"{self.calls} calls"
            time.sleep(0.01)

    def __exit__(self, *_):
        self._stop.set()
        for thread in self._threads:
            thread.join()


def write(release, n):
    help_ = PLPGSQL.format(name="ff__help", arguments="p_n int", returns="int", body=f"return p_n + {n};")
    outer = PLPGSQL.format(
        name="ff_call",
        arguments="p_n int default 1",
        returns="table (a int, b text)",
        body=f"return query select ff__help(p_n), '{n}'::text from ff_thing t, ff_sql() where t.id = 1;",
    )
    release.file("nouns/ff__help.sql", help_).file("others/ff_call.sql", outer)
    release.function("ff_sql", body=f"select {n}", room="nouns")
    release.view("ff_v_x", f"select a, b, {n} as n from ff_call(1)")
    release.file("grants.sql", "revoke all on all functions in schema public from public;")
    return release


def test_callers_of_functions_that_keep_their_signature_see_no_error(database, release):
    migrate(database.dsn, db=write(release, 0).tree)
    database.rows("insert into ff_thing values (1, 'x')")
    with Callers(database.dsn, "select * from ff_call(1), ff_v_x") as callers:
        for n in range(1, 16):
            release.function("ff_other", arguments=f"p_{n} int")  # this one changes its signature every time
            report = migrate(database.dsn, db=write(release, n).tree)
            assert report.functions_applied
            assert len(report.dropped) == (n > 1)
        callers.go_on(100)
    assert callers.errors == []
    assert database.one("select n from ff_v_x") == 15


def test_callers_inside_a_transaction_do_not_block_the_release(database, release):
    migrate(database.dsn, db=write(release, 0).tree)
    database.rows("insert into ff_thing values (1, 'x')")
    with database.connect(autocommit=False) as caller:
        caller.execute("select * from ff_call(1)")
        release.remove("views/ff_v_x.sql")
        release.function("ff_other")
        # One that waited for the caller would be refused after its lock_timeout.
        assert migrate(database.dsn, db=release.tree).functions_applied
        assert caller.execute("select a from ff_call(1)").fetchone() == (1,)
