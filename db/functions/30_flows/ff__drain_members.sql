-- Ends these members of a cancelled flow, which the caller has locked, for ff_drain_cancel_backlog: as a set, or if one of
-- them cannot be ended each on its own, and those that cannot are noted. p_failed: earlier failures may be noted.
create or replace function ff__drain_members(f ff_flow_core, p_ids uuid[], p_failed boolean, out done int, out errors int)
language plpgsql volatile
as $$
declare
    v_id uuid;
begin
    done := 0;
    errors := 0;
    begin
        done := ff__cancel_members(f, p_ids);
        if p_failed then
            perform ff__sweep_healed('drain_cancel_backlog', p_ids::text[]);
        end if;
        return;
    exception when others then
        if ff__stops_sweep(sqlstate) then
            raise;
        end if;
        done := 0;
    end;
    foreach v_id in array p_ids loop
        begin
            done := done + ff__cancel_member(f, v_id)::int;
            if p_failed then
                perform ff__sweep_healed('drain_cancel_backlog', array[v_id::text]);
            end if;
        exception when others then
            if ff__stops_sweep(sqlstate) then
                raise;
            end if;
            errors := errors + 1;
            perform ff__sweep_failed('drain_cancel_backlog', v_id::text, sqlstate, sqlerrm);
        end;
    end loop;
end
$$;
