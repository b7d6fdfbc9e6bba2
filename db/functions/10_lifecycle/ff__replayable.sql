-- Whether an execution ended other than by success and may be replayed: replays are left, and its flow is not cancelled.
create or replace function ff__replayable(p_execution_id uuid) returns boolean
language sql stable
as $$
    select c.terminal_outcome not in ('none', 'success') and c.replay_count < (i.policy -> 'max_replay_count')::int
           and not exists (select from ff_flow_core f where f.flow_id = c.flow_id and f.public_flow_state = 'cancelled')
      from ff_exec_core c join ff_exec_input i on i.execution_id = c.execution_id
     where c.execution_id = p_execution_id
$$;
