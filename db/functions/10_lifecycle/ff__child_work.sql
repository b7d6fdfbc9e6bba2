-- One row of ff_child_work, which the caller has locked: does it and deletes it. Never waits. Returns done; busy if the
-- child or its flow is busy; parent_busy if nothing of this parent can be done now: it is busy, or with p_inline it has too
-- many children for the call that ended it.
create or replace function ff__child_work(w ff_child_work, p_inline boolean) returns text
language plpgsql volatile
as $$
declare
    v_rows bigint[] := array[w.work_id];
    v_outcome text;
    v_flow uuid;
    v_below uuid[];
    e ff_exec;
begin
    if w.action = 'check' then
        -- Read before the parent's state: of a check that is visible the child is visible too.
        v_rows := array(select x.work_id from ff_child_work x
                         where x.parent_id = w.parent_id and x.action = 'check' for update skip locked);
        if w.work_id <> all (v_rows) then
            return 'busy'; -- done with an earlier one
        end if;
    end if;
    if w.action = 'replay' then
        v_outcome := coalesce((select c.terminal_outcome from ff_exec_core c where c.execution_id = w.parent_id), 'gone');
    else
        v_outcome := ff__lock_parent(w.parent_id);
    end if;
    if v_outcome = 'busy' then
        return 'parent_busy';
    elsif w.action = 'check' and v_outcome not in ('none', 'success') then
        if p_inline and (select count(*) from (
                             select from ff_child k join ff_exec_core c on c.execution_id = k.child_id
                              where k.parent_id = w.parent_id and not k.detached and c.terminal_outcome = 'none'
                              limit 100) x) = 100 then
            return 'parent_busy';
        end if;
        insert into ff_child_work (parent_id, child_id, action)
        select k.parent_id, k.child_id, 'cancel'
          from ff_child k join ff_exec_core c on c.execution_id = k.child_id
         where k.parent_id = w.parent_id and not k.detached and c.terminal_outcome = 'none'
         order by k.created_at_ms, k.child_id;
    elsif w.action = 'cancel' and v_outcome not in ('none', 'success')
          or w.action = 'replay' and v_outcome in ('none', 'success') then
        if w.action = 'replay' then
            -- Those that wait for it may be changed by its replay.
            v_flow := (select c.flow_id from ff_exec_core c where c.execution_id = w.child_id);
            v_below := array(select d.downstream_eid from ff_edge d
                              where d.flow_id = v_flow and d.upstream_eid = w.child_id);
            if v_flow is not null and not ff__try_flow(v_flow) then
                return 'busy';
            elsif (select count(*) from (select from ff_exec_core c where c.execution_id = any (v_below)
                                            for update skip locked) x) < cardinality(v_below) then
                perform ff__close_flow(v_flow);
                return 'busy';
            end if;
        end if;
        e := ff__try_open(w.child_id);
        -- Or it has just been added to a flow.
        if e.execution_id is null and exists (select from ff_exec_core c where c.execution_id = w.child_id)
           or w.action = 'replay' and e.flow_id is distinct from v_flow then
            if v_flow is not null then
                perform ff__close_flow(v_flow);
            end if;
            return 'busy';
        elsif exists (select from ff_child k where k.child_id = e.execution_id and not k.detached) then
            if w.action = 'cancel' and e.lifecycle_phase <> 'terminal' then
                perform ff__cancel(e, 'override', 'parent_ended', 'engine');
            elsif w.action = 'replay' and ff__replayable(e.execution_id) then
                perform ff__replay(e, 'parent_replayed', 'engine');
            end if;
        end if;
        if v_flow is not null then
            perform ff__close_flow(v_flow);
        end if;
    end if;
    delete from ff_child_work x where x.work_id = any (v_rows);
    return 'done';
end
$$;
