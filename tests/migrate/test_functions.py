"""Functions and views follow the files, whatever changed in them."""

import pytest

from pyff.migrate import MigrateError, Status, check, migrate


def signatures(database):
    return [
        row[0]
        for row in database.rows(
            "select proname || '(' || pg_get_function_arguments(oid) || ')' from pg_proc "
            "where proname like 'ff%' and pronamespace = 'public'::regnamespace order by 1"
        )
    ]


def views(database):
    return [
        row[0] for row in database.rows("select viewname from pg_views where viewname like 'ff%' order by 1")
    ]


def test_a_release_that_changes_only_functions_is_applied(database, release):
    migrate(database.dsn, db=release.function("ff_x", body="select 1").tree)
    release.function("ff_x", body="select 2")
    assert check(database.dsn, db=release.tree).functions_differ
    report = migrate(database.dsn, db=release.tree)
    assert (report.applied, report.functions_applied, report.dropped) == ((), True, ())
    assert database.one("select ff_x()") == 2
    assert check(database.dsn, db=release.tree).status is Status.CURRENT


@pytest.mark.parametrize(
    ("before", "after", "call"),
    [
        ({"arguments": "p_a int"}, {"arguments": "p_b int"}, "select ff_x(p_b => 1)"),
        ({"arguments": "p_a int default 1"}, {"arguments": "p_a int"}, "select ff_x(1)"),
        ({"arguments": "p_a int"}, {"arguments": "p_a int, p_b int default 1"}, "select ff_x(1)"),
        ({"arguments": "p_a int"}, {"arguments": "p_a bigint"}, "select ff_x(1)"),
        ({"arguments": "p_a int, p_b int"}, {"arguments": "p_a int"}, "select ff_x(1)"),
        ({"returns": "int"}, {"returns": "text", "body": "select 'x'"}, "select ff_x()"),
        (
            {"returns": "table (a int)"},
            {"returns": "table (a int, b int)", "body": "select 1, 2"},
            "select b from ff_x()",
        ),
        (
            {"arguments": "out a int, out b int", "returns": "", "body": "select 1, 2"},
            {"arguments": "out a int, out c int", "returns": "", "body": "select 1, 2"},
            "select c from ff_x()",
        ),
    ],
    ids=[
        "renamed argument",
        "default removed",
        "defaulted argument added",
        "argument type",
        "argument removed",
        "result type",
        "result column added",
        "OUT column renamed",
    ],
)
def test_a_changed_signature_replaces_the_old_one(database, release, before, after, call):
    migrate(database.dsn, db=release.function("ff_x", **before).tree)
    report = migrate(database.dsn, db=release.function("ff_x", **after).tree)
    assert len(signatures(database)) == 1
    assert len(report.dropped) == 1
    database.rows(call)


def test_a_function_may_become_a_procedure(database, release):
    migrate(database.dsn, db=release.function("ff_x").tree)
    release.file("nouns/ff_x.sql", "create or replace procedure ff_x() language sql as $$ select 1 $$;")
    migrate(database.dsn, db=release.tree)
    database.rows("call ff_x()")


def test_a_caller_in_sql_never_sees_two_candidates(database, release):
    release.function("ff__help", "p_a int", body="select p_a").function(
        "ff_x", body="select ff__help(1)", room="others"
    )
    migrate(database.dsn, db=release.tree)
    release.function("ff__help", "p_a int, p_b int default 2", body="select p_a + p_b")
    migrate(database.dsn, db=release.tree)
    assert database.one("select ff_x()") == 3


def test_bodies_may_call_what_comes_in_a_later_file(database, release):
    release.function("ff_a", body="select ff_b()").function("ff_b", body="select 1")
    migrate(database.dsn, db=release.tree)
    assert database.one("select ff_a()") == 1


@pytest.mark.parametrize(
    ("language", "body", "complaint"),
    [
        ("sql", "\nselect ff_gone()", "function ff_gone.* does not exist"),
        ("plpgsql", "begin\nreturn 1 end", "syntax error"),
    ],
)
def test_bodies_are_checked_all_the_same(database, release, language, body, complaint):
    release.function("ff_gone")
    release.file(
        "nouns/ff_a.sql",
        f"create or replace function ff_a() returns int\nlanguage {language} as $$ {body} $$;",
    )
    if language == "sql":
        migrate(database.dsn, db=release.tree)
        release.remove("nouns/ff_gone.sql")
    with pytest.raises(MigrateError, match=rf"ff_a\.sql:3: {complaint}"):
        migrate(database.dsn, db=release.tree)


def test_what_left_the_tree_is_dropped_and_nothing_else(database, release):
    database.rows(
        "create function mine() returns int language sql as 'select 1';"
        "create view v_mine as select mine() as x;"
        "create schema other; create function other.ff_theirs() returns int language sql as 'select 1'"
    )
    release.function("ff_a").function("ff_b").view("ff_v_a", "select ff_a() as a").view(
        "ff_v_b", "select ff_b() as b"
    )
    migrate(database.dsn, db=release.tree)
    report = migrate(database.dsn, db=release.remove("nouns/ff_b.sql").remove("views/ff_v_b.sql").tree)
    assert report.dropped == ("ff_b() -> integer", "ff_v_b")
    assert (signatures(database), views(database)) == (["ff_a()"], ["ff_v_a"])
    assert database.rows("select mine(), x, other.ff_theirs() from v_mine") == [(1, 1, 1)]


@pytest.mark.parametrize(
    "query", ["select 1 as a, 2 as b, 3 as c", "select 1 as a", "select 1 as b", "select 'x' as a"]
)
def test_a_view_is_replaced_whatever_its_columns_become(database, release, query):
    migrate(database.dsn, db=release.view("ff_v_x", "select 1 as a, 2 as b").tree)
    migrate(database.dsn, db=release.view("ff_v_x", query).tree)
    assert database.rows("select * from ff_v_x") == database.rows(query)


def test_views_on_a_changed_function_or_view_come_back(database, release):
    release.function("ff_x", returns="table (n int)").view("ff_v_a", "select 1 as a")
    release.view("ff_v_b", "select n from ff_x()").view("ff_v_c", "select b.n, a.a from ff_v_b b, ff_v_a a")
    release.view("ff_v_d", "select c.n from ff_v_c c, ff_v_b b")
    migrate(database.dsn, db=release.tree)
    release.function("ff_x", returns="table (n int, m int)", body="select 1, 2")
    release.view("ff_v_b", "select m, n from ff_x()")
    migrate(database.dsn, db=release.tree)
    assert views(database) == ["ff_v_a", "ff_v_b", "ff_v_c", "ff_v_d"]
    assert database.rows("select * from ff_v_b, ff_v_d") == [(2, 1, 1)]


def test_a_view_of_another_owner_survives_until_its_column_is_dropped(database, release):
    release.view("ff_v_x", "select 1 as a")
    migrate(database.dsn, db=release.tree)
    database.rows("create view dashboard as select a from ff_v_x")
    migrate(database.dsn, db=release.view("ff_v_x", "select 2 as a, 3 as b").tree)
    assert database.rows("table dashboard") == [(2,)]
    release.function("ff_new").view("ff_v_x", "select 4 as b")
    with pytest.raises(MigrateError, match=r"ff_v_x\.sql: cannot drop view.*dashboard depends on") as refused:
        migrate(database.dsn, db=release.tree)
    assert refused.value.hint
    assert database.rows("table ff_v_x") == [(2, 3)]
    assert signatures(database) == []


def test_a_mistake_in_a_file_is_reported_with_its_line_and_changes_nothing(database, release):
    migrate(database.dsn, db=release.function("ff_a", body="select 1").tree)
    release.function("ff_a", body="select 2").file(
        "nouns/ff_b.sql",
        """\
        create or replace function ff_b() returns int
        language sql
        as $$ select nonsense from ff_thing $$;
        """,
    )
    with pytest.raises(MigrateError, match=r'ff_b\.sql:3: column "nonsense" does not exist'):
        migrate(database.dsn, db=release.tree)
    assert database.one("select ff_a()") == 1
    assert signatures(database) == ["ff_a()"]
    assert check(database.dsn, db=release.tree).functions_differ


@pytest.mark.parametrize(
    ("path", "text", "complaint"),
    [
        ("nouns/ff_a.sql", "create or replace function ff__b() ", "ff_a, after which it is named"),
        ("nouns/shared.sql", "create or replace function ff_b() ", "not named after ff_b"),
        ("nouns/shared.sql", "create or replace function mine() ", "mine is not the name of"),
        ("nouns/shared.sql", "create or replace function ff__x() ", "defines the same name"),
        ("nouns/shared.sql", "select 1", "defines no function or view"),
        (
            "nouns/shared.sql",
            "create or replace function ff__b() \n-- grant: ff_reader",
            "ff__b has a grant line",
        ),
        ("nouns/ff_b.sql", "create or replace function ff_b() \n", "ff_b has no grant line"),
        (
            "nouns/ff_b.sql",
            "create or replace function ff_b() \n-- grant: x",
            "the grant line of ff_b must name",
        ),
        (
            "nouns/ff_b.sql",
            "create or replace function ff_b() \n-- grant: ff_admin, ff_reader",
            "the grant line of ff_b must name roles in the order of ff_reader",
        ),
        ("views/ff_v_b.sql", "create or replace view ff_v_b as select 1 as b;", "ff_v_b has no grant line"),
    ],
)
def test_a_file_with_what_does_not_belong_there_is_refused(release, path, text, complaint):
    release.function("ff__x", room="core").file(path, text)
    (release.root / "functions" / path).write_text(text)  # without the grant line that `file` appends
    with pytest.raises(MigrateError, match=complaint):
        _ = release.tree


def test_a_file_may_define_several_helpers_and_views_come_after_functions(database, release):
    release.file(
        "core/idea.sql",
        """\
        -- The first.
        create or replace function ff__a() returns int language sql as 'select ff__b()';

        -- The second.
        create or replace function ff__b() returns int language sql as 'select 2';
        """,
    )
    release.file("admin/ff_v_b.sql", "create or replace view ff_v_b as select ff_b() as b;").function("ff_b")
    migrate(database.dsn, db=release.tree)
    said = "select obj_description(p.oid) from pg_proc p where proname in ('ff__a', 'ff__b') order by proname"
    assert database.rows(said) == [("Internal. The first.",), ("Internal. The second.",)]
    assert database.rows("table ff_v_b") == [(1,)]


def test_a_function_that_a_table_calls_stays_until_the_table_lets_it_go(database, release):
    migrate(database.dsn, db=release.function("ff_x").tree)
    database.rows("create table theirs (id int default ff_x())")
    assert migrate(database.dsn, db=release.remove("nouns/ff_x.sql").tree).dropped == ()
    database.rows("drop table theirs")
    assert migrate(database.dsn, db=release.function("ff_y").tree).dropped == ("ff_x() -> integer",)


def test_the_tools_of_the_migration_are_gone_afterwards(database, release):
    migrate(database.dsn, db=release.function("ff_x").tree)
    assert database.rows("select proname from pg_proc where proname like 'pyff%'") == []
