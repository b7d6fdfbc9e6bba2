-- Whether a claim that found too little looks again. A pick is one statement with one snapshot: other sessions can take
-- the rows of that snapshot while it runs, and rows that became ready since are not visible to it. p_snapshot is
-- pg_current_snapshot() from before the pick: if it still holds, as it always does at REPEATABLE READ, a second look
-- would find the same. Returns the ids that are ready now if one of them was not ready after the look before (p_seen),
-- otherwise NULL: rows that were visible to two looks and not taken are locked by other transactions. Locks nothing.
-- p_policies, p_rated, p_busy, p_budgets: see ff__pick_many.
create or replace function ff__missed(
    p_lane_id text, p_capabilities text[], p_namespace text, p_snapshot text, p_seen uuid[], p_policies text[],
    p_rated text[], p_busy text[], p_budgets text[]
) returns uuid[]
language plpgsql volatile
as $$
declare
    v_now bigint;
    v_ready uuid[];
    l record;
begin
    if pg_current_snapshot()::text = p_snapshot then
        return null;
    end if;
    select x.marked, x.limited into l from ff_lane_registry x
     where x.lane_id = p_lane_id and x.state in ('active', 'draining');
    if not found then
        return null;
    end if;
    v_now := ff__now_ms();
    v_ready := ff__heads(p_lane_id, ff__covered_keys(p_lane_id, p_capabilities, false), l.marked, p_namespace, v_now,
                         null);
    if l.limited then
        v_ready := v_ready || ff__limited_heads(p_lane_id, ff__covered_keys(p_lane_id, p_capabilities, true),
                                                p_namespace, v_now, null, p_policies, p_rated, p_busy, p_budgets,
                                                case p_busy when '{}' then 1000 else 100 end);
    end if;
    if v_ready <> '{}' and exists (select unnest(v_ready) except select unnest(p_seen)) then
        return v_ready;
    end if;
    return null;
end
$$;
