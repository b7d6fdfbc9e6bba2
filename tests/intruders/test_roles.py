"""A login of each role may do what the table of roles says, and nothing else."""

import psycopg
import pytest
from psycopg import sql

from tests.catalogue.test_functions import MAY_CALL
from tests.intruders import matrix
from tests.intruders.matrix import ROLES, login, may_call
from tests.sql import table

RELATIONS = r"""
    select c.oid, n.nspname, c.relname, c.relkind::text as kind
      from pg_class c join pg_namespace n on n.oid = c.relnamespace
     where n.nspname in ('public', 'ff') and c.relkind in ('r', 'v', 'S') and c.relname like 'ff\_%%'
     order by c.relname
"""
HELPERS = r"""
    select format('%%s(%%s)', p.oid::regproc,
                  (select string_agg('null::' || format_type(t, null), ', ' order by n)
                     from unnest(p.proargtypes::oid[]) with ordinality a(t, n))) as call
      from pg_proc p where p.proname like 'ff\_\_%%' and p.prorettype <> 'trigger'::regtype
"""


READS = ["select from {}", "select {c} from {} limit 0"]
WRITES = [
    "insert into {} default values",
    "update {} set {c} = {c}",
    "delete from {}",
    "truncate {}",
    "do $$ begin lock table {} in access exclusive mode; end $$",
    "create index on {} ({c})",
    "copy {} to stdout",
    "create trigger t before insert on {} for each row execute function suppress_redundant_updates_trigger()",
]
CHANGES = ["comment on column {}.{c} is 'mine'", "alter table {} rename to mine"]


def allowed(conn, statement):
    """Whether the right to it is there: anything but 42501 is no matter of rights."""
    try:
        conn.execute(statement)
    except psycopg.errors.InsufficientPrivilege:
        return False
    except psycopg.Error as error:
        assert error.sqlstate[:2] in {"WF", "23", "55", "42"}, error
    return True


def test_a_login_of_each_role_may_call_what_the_page_says(db, dsn):
    """By trying all of them: one grant more or less fails here, and so does a page that was not written anew."""
    found = matrix.tried(db, dsn)
    should = {role: {name for name, roles in MAY_CALL.items() if role in roles} for role in ROLES}
    assert found == should
    assert matrix.section(matrix.PAGE.read_text()) == matrix.rendered(found), (
        "run `python -m tests.intruders.matrix`"
    )


def test_a_login_of_no_role_may_call_nothing(db, dsn):
    with login(db, dsn) as conn:
        assert may_call(conn) == set()


def test_two_roles_are_what_they_are_together_and_no_more(db, dsn):
    with login(db, dsn, "ff_worker", "ff_producer") as conn:
        both = {name for name, roles in MAY_CALL.items() if roles & {"ff_worker", "ff_producer"}}
        assert may_call(conn) == both


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("inside", [False, True], ids=["", "with USAGE on the private schema"])
def test_tables_sequences_and_helpers_are_closed_to_a_login(db, dsn, role, inside):
    db.execute("set search_path = public")  # so that other names are written with their schema
    relations = table(db, RELATIONS)
    columns = {
        r["relname"]: table(
            db,
            "select attname from pg_attribute where attrelid = %s::regclass and attnum > 0 and not attisdropped"
            " and attidentity = ''",
            f"{r['nspname']}.{r['relname']}",
        )
        for r in relations
    }
    assert len(relations) > 40
    with login(db, dsn, role) as conn:
        if inside:
            db.execute(sql.SQL("grant usage on schema ff to {}").format(sql.Identifier(conn.info.user)))
        for relation in relations:
            name = sql.Identifier(relation["nspname"], relation["relname"])
            if relation["kind"] == "S":
                statements = ["select nextval('{}')", "select setval('{}', 1)", "select * from {}"]
                for statement in statements:
                    text = statement.replace("{}", f"ff.{relation['relname']}")
                    assert not allowed(conn, text), text
                continue
            column = sql.Identifier(columns[relation["relname"]][0]["attname"])
            view, shown = relation["kind"] == "v", relation["relname"].startswith("ff_v_")
            closed = CHANGES + (WRITES if not view else []) + (READS if not shown else [])
            for statement in closed:
                text = sql.SQL(statement).format(name, c=column)
                assert not allowed(conn, text), text.as_string()
            if shown:
                for statement in READS:
                    assert allowed(conn, sql.SQL(statement).format(name, c=column)) == (role != "ff_signaler")
            if view:
                writes = (
                    "select has_table_privilege(%s::oid, 'insert,update,delete,truncate,references,trigger')"
                )
                assert conn.execute(writes, [relation["oid"]]).fetchone() == (False,)
        for helper in table(db, HELPERS):
            assert not allowed(conn, f"select {helper['call']}"), helper


@pytest.mark.own_session("acts as a role")
@pytest.mark.parametrize("role", ROLES)
def test_no_login_becomes_another_role(db, dsn, role):
    others = [other for other in ROLES if other != role]
    with login(db, dsn, role) as conn:
        me = conn.info.user
        for statement in [
            *(f"set role {other}" for other in others),
            *(f"grant {other} to {me}" for other in others),
            f"set role {db.info.user}",
            f"grant {role} to {me} with admin option",
            f"set session authorization {db.info.user}",
            f"alter role {me} superuser",
            f"alter role {role} login",
            f"alter role {me} createrole",
            f"create role mine in role {role}",
            "set session_replication_role = replica",
            "alter system set log_statement = 'all'",
            f"alter database {db.info.dbname} set search_path = pg_temp",
            "grant execute on function ff_claim to public",
            "create schema mine",
        ]:
            assert not allowed(conn, statement) or granted_nothing(db, statement), statement
        assert conn.execute("select current_user").fetchone() == (me,)


def granted_nothing(db, statement):
    """GRANT of what one may not give is a warning where nothing of it may be given."""
    assert statement.startswith("grant execute")
    return not table(
        db,
        "select from pg_proc p, aclexplode(p.proacl) a where p.proname like 'ff\\_%%' and a.grantee = 0",
    )


@pytest.mark.parametrize("role", ROLES)
def test_files_programs_and_large_objects_are_out_of_reach(db, dsn, role):
    db.execute("select lo_from_bytea(4711, 'not yours')")
    with login(db, dsn, role) as conn:
        for statement in [
            "select pg_read_file('PG_VERSION')",
            "select pg_read_binary_file('PG_VERSION')",
            "select pg_ls_dir('.')",
            "select pg_stat_file('PG_VERSION')",
            "select lo_import('/etc/passwd')",
            "select lo_export(4711, '/tmp/mine')",
            "select lo_get(4711)",
            "select loread(lo_open(4711, 262144), 100)",
            "select lo_put(4711, 0, 'mine')",
            "select lo_unlink(4711)",
            "select * from pg_largeobject",
            "copy (select 1) to '/tmp/mine'",
            "copy (select 1) to program 'true'",
            "create function f() returns int language c as 'libc', 'getpid'",
            "create function f() returns int language internal as 'pg_backend_pid'",
            "load 'plpgsql.so'",
            "select pg_reload_conf()",
            "select pg_advisory_unlock_all(), pg_switch_wal()",
        ]:
            assert not allowed(conn, statement), statement


def test_no_login_ends_a_session_of_another_role(db, dsn):
    with login(db, dsn, "ff_admin") as conn, psycopg.connect(dsn, autocommit=True) as other:
        for function in ("pg_terminate_backend", "pg_cancel_backend"):
            pid = other.execute("select pg_backend_pid()").fetchone()[0]
            assert not allowed(conn, f"select {function}({pid})")
        assert other.execute("select 1").fetchone() == (1,)


def test_no_argument_has_a_type_that_reaches_into_the_server(db):
    """Names of objects, large objects, records and polymorphic values would be resolved with the owner's rights."""
    types = table(
        db,
        """select distinct format_type(t, null) as name
             from pg_proc p, unnest(p.proargtypes::oid[]) a(t)
            where p.proname like 'ff\\_%%' and p.proname not like 'ff\\_\\_%%'""",
    )
    assert {t["name"] for t in types} <= {
        "text",
        "text[]",
        "uuid",
        "uuid[]",
        "bytea",
        "bytea[]",
        "jsonb",
        "jsonb[]",
        "boolean",
        "integer",
        "integer[]",
        "smallint",
        "bigint",
        "bigint[]",
        "double precision",
    }
