"""The generated files are those of this database; what the generator cannot express it refuses."""

import pytest

from pyff.failure import Failure
from tools.codegen import generate, stale
from tools.codegen.__main__ import main
from tools.codegen.comment import Comment, parse


def test_the_generated_files_are_up_to_date(db):
    differences = stale(generate(db))
    assert not differences, "run python -m tools.codegen\n" + "\n".join(differences.values())


def test_the_check_passes_on_a_database_that_fits_and_fails_on_another(db, dsn, capsys):
    assert main(["--check", dsn]) == 0
    db.execute("comment on function ff_ping is 'Something else.'")
    assert main(["--check", dsn]) == 1
    assert '+        """Something else."""' in capsys.readouterr().out
    db.execute("comment on function ff_ping is 'Nullable: nowhere'")
    assert main(["--check", dsn]) == 1
    assert "names unknown columns" in capsys.readouterr().err


@pytest.mark.parametrize(
    "change",
    [
        "create function ff_brand_new() returns int language sql as 'select 1'",
        "drop function ff_ping",
        "alter function ff_ping rename to ff_pong",
        "create or replace function ff_setting(p_name text default 'x', out value text) language sql as ''",
        "comment on function ff_ping is 'Something else.'",
        "update ff_error_code set description = 'Something else.' where sqlstate = 'WF401'",
    ],
)
def test_the_files_are_stale_when_the_database_differs(db, change):
    db.execute("set local check_function_bodies = off")
    db.execute(change)
    assert any("_generated/" in name for name in stale(generate(db)))


def test_internal_helpers_and_procedures_have_no_method(db):
    db.execute("create function ff__helper() returns int language sql as 'select 1'")
    db.execute("create procedure ff_run() language sql as 'select 1'")
    assert [*stale(generate(db))] == [
        "../docs/functions.md",
        "../docs/reference/other.md",
    ]  # where it is listed


def test_a_function_of_every_shape_gets_its_signature(db):
    db.execute(
        """
        create function ff_zz_list(p_from text, p_ids bigint[], p_limit int default 10,
            p_tags jsonb default '{}', p_nodes jsonb default '[]', p_ratio float8 default 0.5,
            p_note text default 'it''s', p_flag boolean default false, p_names text[] default '{}')
        returns table (id uuid, names text[], child_public_state text) language plpgsql as 'begin end';
        comment on function ff_zz_list is 'Lists.\n\nNullable: names';
        create function ff_zz_maybe() returns setof int language sql as 'select 1';
        comment on function ff_zz_maybe is 'Rows: at most one';
        create function ff_zz_exact(p_a int, p_b uuid) returns setof int language sql as 'select 1';
        comment on function ff_zz_exact is 'Rows: exactly one\nNullable: p_b';
        create function ff_zz_nothing() returns void language sql as '';
        """
    )
    texts = generate(db)
    signature = " ".join(texts["_generated/async_methods.py"].split())
    assert (
        "async def zz_list( self, from_: str, ids: Sequence[int | None], *, limit: int = 10,"
        " tags: Mapping[str, str] = EMPTY_OBJECT, nodes: JsonValue = (), ratio: float = 0.5,"
        ' note: str = "it\'s", flag: bool = False, names: Sequence[str] = (),'
        " conn: AsyncConnection[object] | None = None, ) -> list[ZzListRow]:"
    ) in signature
    assert ") -> int | None:" in signature.split("zz_maybe")[1]
    assert "a: int, b: UUID | None, *," in signature.split("zz_exact")[1]
    assert ") -> int:" in signature.split("zz_exact")[1]
    assert ") -> None:" in signature.split("zz_nothing")[1]
    row = texts["_generated/results.py"].split("class ZzListRow")[1]
    assert "id: UUID\n    names: tuple[str, ...] | None\n    child_public_state: PublicState\n" in row


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("comment on function ff_ping is 'Nullable: nowhere'", "names unknown columns"),
        ("comment on function ff_ping is 'Outcomes: nowhere = a | b'", "names unknown columns"),
        ("comment on function ff_ping is 'Errors: no_such_kind'", "unknown errors"),
        ("comment on function ff_ping is 'Rows: at most one'", "always returns one row"),
        ("comment on function ff_ping is 'Rows: exactly one'", "always returns one row"),
        ("comment on function ff_ping is 'Rows: some'", "cannot read"),
        ("comment on function ff_ping is 'Outcomes: ok = a || b'", "cannot read"),
        ("create function ff_zz(p_at timestamptz) returns int language sql as 'select 1'", "not supported"),
        ("create function ff_zz(a int) returns int language sql as 'select 1'", "neither"),
        (
            "create function ff_zz(p_a text default now()) returns int language sql as 'select 1'",
            "not a constant",
        ),
        ("create function ff_zz() returns record language sql as 'select 1'", "without columns"),
        ("create function ff_ping(p_a int) returns int language sql as 'select 1'", "overloaded"),
    ],
)
def test_what_has_no_place_in_python_is_refused_with_a_reason(db, change, reason):
    db.execute(change)
    with pytest.raises(Failure, match=reason):
        generate(db)


def test_functions_that_share_a_result_must_stay_alike(db):
    for name in ("ff_renew", "ff_renew_lease"):
        db.execute(f"drop function if exists {name}")
    db.execute("create function ff_renew() returns table (a int, b int) language sql as 'select 1, 2'")
    db.execute("create function ff_renew_lease() returns table (a int, c int) language sql as 'select 1, 2'")
    with pytest.raises(Failure, match="ff_renew_lease does not return RenewResult like ff_renew: see b, c"):
        generate(db)


def test_a_comment_is_prose_and_lines_for_programs():
    text = (
        "Does it.\n\nIn two ways: one, two.\n\nOutcomes: outcome = a | b_2\nOutcomes: kind = c\n"
        "Outcomes: outcome = d\nNullable: x, y\nNullable: z\n"
        "Errors: stale_lease,lease_expired\nErrors: lease_revoked\nRows: at most one"
    )
    assert parse(text) == Comment(
        prose="Does it.\n\nIn two ways: one, two.",
        outcomes={"outcome": ("a", "b_2", "d"), "kind": ("c",)},
        nullable=frozenset({"x", "y", "z"}),
        errors=("stale_lease", "lease_expired", "lease_revoked"),
        rows="at most one",
    )
