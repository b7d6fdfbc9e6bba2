-- Locks: the flows, without waiting. Safe to run many at once.
create or replace function ff_project_flows(p_limit int default 200, out processed int, out errors int, out more boolean)
language plpgsql volatile security definer
as $$
declare
    b ff_sweep := ff__sweep_open('project_flows', p_limit);
begin
    while b.again loop
        -- Flows that were never projected, or were reopened since; then those that live, the longest unseen first.
        b.keys := array(
            select f.flow_id::text from ff_flow_core f
             where f.node_count > 0 and not f.projected and f.flow_id::text not in (select unnest(b.seen))
               and not (b.putting_off and ff__put_off(b.name, f.flow_id::text))
             order by f.created_at_ms limit b.room);
        b.keys := b.keys || array(
            select s.flow_id::text from ff_flow_summary s
             where not s.final and s.projected_at_ms < b.now_ms
               and not (b.putting_off and ff__put_off(b.name, s.flow_id::text))
               and s.flow_id::text not in (select unnest(b.seen))
               and not exists (select from ff_flow_core f where f.flow_id = s.flow_id and not f.projected)
             order by s.projected_at_ms limit b.room - cardinality(b.keys));
        b := ff__sweep_batch(b);
    end loop;
    select s.processed, s.errors into processed, errors from ff__sweep_close(b) s;
    if errors > 0 then
        -- Out of the way until their next try.
        begin
            update ff_flow_core f set projected = true
             where not f.projected
               and f.flow_id in (select x.flow_id from unnest(b.seen) k(key) join ff_flow_core x on x.flow_id = k.key::uuid
                                  where ff__put_off(b.name, k.key) for update of x skip locked);
        exception when others then
            -- It is the row itself: the note alone puts it off.
            if ff__stops_sweep(sqlstate) then
                raise;
            end if;
        end;
    end if;
    -- What lives is projected for ever: only what has not been for the usual while asks for more at once.
    more := b.full_ and processed + errors > 0
            and (exists (select from ff_flow_core f
                          where f.node_count > 0 and not f.projected and f.flow_id::text not in (select unnest(b.seen))
                            and not ff__put_off(b.name, f.flow_id::text))
                 or exists (select from ff_flow_summary s
                             where not s.final and s.projected_at_ms <= b.now_ms - 15000
                               and s.flow_id::text not in (select unnest(b.seen))
                               and not ff__put_off(b.name, s.flow_id::text)));
end
$$;

comment on function ff_project_flows(int) is
$$Projects flows (ff_project_flow_summary): those that live, the longest unseen first, and those that ended, once more.

Errors: invalid_input$$;
