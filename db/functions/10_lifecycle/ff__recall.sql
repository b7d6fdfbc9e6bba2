-- An execution became ready behind a mark of its lane: the mark moves back to it (see ff_scan_mark).
create or replace function ff__recall(p_execution_id uuid) returns void
language plpgsql volatile
as $$
declare
    c record;
    m ff_scan_mark;
begin
    select x.lane_id, x.caps_key, x.priority, x.created_at_ms into c from ff_exec_core x
     where x.execution_id = p_execution_id and not x.limited;
    select x.* into m from ff_scan_mark x
     where x.lane_id = c.lane_id and x.caps_key = c.caps_key and x.priority = c.priority
     order by x.mark_no desc limit 1;
    if (m.from_ms, m.from_id) > (c.created_at_ms, p_execution_id) then
        perform ff__set_mark(c.lane_id, c.caps_key, c.priority, c.created_at_ms, p_execution_id, m.looked_ms, m.walked);
    end if;
end
$$;
