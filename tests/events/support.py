"""Helpers that make and read events."""

from tests.sql import create, one, rows, table, take

FAMILIES = ["completion", "flow", "lease", "operator", "signal", "suspension", "worker"]


def read(db, family=None, **args):
    return rows(db, "ff_read_events", family=family, **args)


def names(found):
    return [f"{e['family']}/{e['event_type']}" for e in found]


def cycle(db, **args):
    """One execution from create to complete: acquired, released, success. Its id."""
    eid = create(db, **args)
    one(db, "ff_complete", handle=take(db, args.get("lane", "default"))["handle"])
    return eid


def stored(db, family=None):
    """The outbox, in its order."""
    return table(
        db,
        "select * from ff_event where %s::text is null or family = %s order by gen, ord, event_id",
        family,
        family,
    )


def settle(db):
    """Waits until nothing is held back: the commit of another test's connection may take a moment."""
    while one(db, "ff_event_lag")["held_back"]:
        pass


EMITTERS = """
create table test_flow (flow_id uuid primary key, last_event_ord bigint not null default 0);

create function test_emit(p_id uuid, p_family text, p_type text) returns void language plpgsql as $$
declare e ff_exec := ff__open(p_id);
begin
    e := ff__emit(e, p_family, p_type);
    update ff_execution c set last_event_ord = e.ord where c.execution_id = e.execution_id;
end $$;

create function test_emit_flow(p_id uuid, p_type text) returns void language plpgsql as $$
declare
    v_ord bigint;
    v_gen int := ff__prepare_event('flow', p_type);
begin
    update test_flow f set last_event_ord = greatest(pg_current_xact_id()::text::bigint, f.last_event_ord)
     where f.flow_id = p_id returning f.last_event_ord into v_ord;
    perform ff__emit_other(v_gen, 'flow', p_type, ff_now_ms(), v_ord, p_namespace => 'default', p_flow_id => p_id);
end $$;
"""
"""Families whose functions are not part of this release are written through the internal emitter."""
