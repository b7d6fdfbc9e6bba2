-- Rules of recorded steps that must hold at every commit; each branch returns the rows that break one.
create or replace function ff__invariants_steps() returns table (invariant text, subject text, detail text)
language plpgsql stable
as $$
#variable_conflict use_column
begin
    return query
    select 'step_orphan', s.execution_id::text, format('%s steps', count(*))
      from ff_step s
     where not exists (select from ff_execution c where c.execution_id = s.execution_id)
     group by s.execution_id
    union all
    select 'step_order', s.execution_id::text, format('%s steps, numbered from %s to %s', count(*), min(s.ordinal),
                                                      max(s.ordinal))
      from ff_step s
     group by s.execution_id
    having min(s.ordinal) <> 1 or max(s.ordinal) <> count(*)
    union all
    select 'step_lease', s.execution_id::text, format('step %s was recorded by epoch %s after one of epoch %s',
                                                      s.ordinal, s.lease_epoch, s.before)
      from (select x.*, lag(x.lease_epoch) over (partition by x.execution_id order by x.ordinal) as before
              from ff_step x) s
     where s.lease_epoch < s.before
    union all
    select 'step_attempt', s.execution_id::text, format('step %s names attempt %s and epoch %s', s.ordinal,
                                                        s.attempt_index, s.lease_epoch)
      from ff_step s
      join ff_execution c on c.execution_id = s.execution_id
      left join ff_attempt a on a.execution_id = s.execution_id and a.attempt_index = s.attempt_index
     where a.execution_id is null or s.lease_epoch > a.lease_epoch;
end
$$;
