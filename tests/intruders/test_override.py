"""Only an operator acts in place of the lease holder: p_source operator_override without a fence."""

import psycopg
import pytest

from pyff.migrate import migrate
from tests.intruders.matrix import login
from tests.sql import create, execution, one, refused, table, take

FUNCTIONS = {
    "ff_complete_execution": {"result": b"mine"},
    "ff_fail_execution": {"classification": "permanent"},
    "ff_delay_execution": {"delay_ms": 5},
    "ff_wait_children_execution": {},
}
OVERRIDE = {"source": "operator_override"}
FENCE = ("execution_id", "lease_id", "lease_epoch", "attempt_id")
every_function = pytest.mark.parametrize("function", FUNCTIONS)


def held(db):
    """An execution that another worker holds; its claim."""
    create(db)
    return take(db)


def override(conn, claim, function="ff_complete_execution"):
    return one(conn, function, execution_id=claim["execution_id"], **OVERRIDE, **FUNCTIONS[function])


def overridden(db, claim):
    query = "select from ff_event where event_type = 'overridden' and execution_id = %s"
    return len(table(db, query, claim["execution_id"][-36:]))


@every_function
def test_a_worker_cannot_act_in_place_of_another_lease_holder(db, dsn, function):
    claim = held(db)
    before = execution(db, claim["execution_id"])
    with login(db, dsn, "ff_worker", "ff_producer") as worker, refused("override_not_allowed") as refusal:
        override(worker, claim, function)
    assert refusal.error.sqlstate == "WF430"
    assert refusal.detail["execution_id"] == claim["execution_id"]
    assert execution(db, claim["execution_id"]) == before
    assert overridden(db, claim) == 0


@every_function
@pytest.mark.parametrize("role", ["ff_operator", "ff_admin"])
def test_operators_and_admins_act_in_place_of_the_lease_holder(db, dsn, function, role):
    claim = held(db)
    with login(db, dsn, role) as operator:
        override(operator, claim, function)
    assert overridden(db, claim) == 1


@every_function
def test_a_worker_that_gives_its_own_fence_needs_no_operator_role(db, dsn, function):
    claim = held(db)
    fence = {name: claim[name] for name in FENCE}
    args = FUNCTIONS[function] | OVERRIDE
    with login(db, dsn, "ff_worker") as worker:
        with refused("partial_fence"):
            one(worker, function, execution_id=claim["execution_id"], lease_id=claim["lease_id"], **args)
        with refused("stale_lease"):
            one(worker, function, **{**fence, "lease_epoch": 7}, **args)
        one(worker, function, **fence, **args)
    assert overridden(db, claim) == 0


def test_an_operator_with_a_wrong_fence_is_refused_like_a_worker(db, dsn):
    claim = held(db)
    fence = {name: claim[name] for name in FENCE}
    with login(db, dsn, "ff_operator") as operator, refused("stale_lease"):
        one(operator, "ff_complete_execution", **{**fence, "lease_epoch": 7}, **OVERRIDE)
    assert execution(db, claim["execution_id"])["lifecycle_phase"] == "active"


@pytest.mark.own_session("sets a role")
def test_the_role_that_is_set_decides_and_not_the_login(db, dsn):
    claim = held(db)
    with login(db, dsn, "ff_worker", "ff_operator") as both:
        both.execute("set role ff_worker")
        with refused("override_not_allowed"):
            override(both, claim)
        both.execute("set role ff_operator")
        override(both, claim, "ff_delay_execution")
        both.execute("reset role")
        other = held(db)
        override(both, other)


@pytest.mark.own_session("sets a role")
def test_a_superuser_that_takes_the_role_of_a_worker_is_a_worker(db, connect):
    claim = held(db)
    session = connect()
    session.execute("set role ff_worker")
    with refused("override_not_allowed"):
        override(session, claim)
    session.execute("reset role")
    override(session, claim)


def test_a_security_definer_function_of_an_operator_lends_no_override(db, dsn):
    """The caller counts, through any number of functions that run with the rights of their owners."""
    claim = held(db)
    db.execute(
        "create function wrapper(p_id text) returns void language sql security definer begin atomic"
        " select ff_complete_execution(p_execution_id => p_id, p_source => 'operator_override'); end"
    )
    with login(db, dsn, "ff_worker") as worker, refused("override_not_allowed"):
        worker.execute("select wrapper(%s)", [claim["execution_id"]])


def test_a_role_that_inherits_from_an_operator_is_one(db, dsn):
    claim = held(db)
    with login(db, dsn, "ff_operator") as operator, login(db, dsn, operator.info.user) as deputy:
        override(deputy, claim)
    assert overridden(db, claim) == 1


def test_the_owner_overrides_without_a_role_and_passes_no_right_on(db, dsn):
    """As in an installation without roles, where the owner is the only operator."""
    with login(db, dsn) as owner:
        me = owner.info.user
        db.execute(f"create schema own authorization {me}")
        db.execute(f"create schema own_private authorization {me}")
        own = psycopg.conninfo.make_conninfo(dsn, user=me, options="-csearch_path=own")
        migrate(own, private_schema="own_private", roles=False)
        with psycopg.connect(own, autocommit=True) as conn:
            override(conn, held(conn))
            claim = held(conn)
            conn.execute("grant usage on schema own to public")
            conn.execute("grant execute on function ff_complete_execution to public")
        with login(db, dsn, "ff_worker") as other:
            other.execute("set search_path = own")
            with refused("override_not_allowed"):
                override(other, claim)
        db.execute("drop schema own, own_private cascade")
