-- Of executions that the caller has locked, those whose streams no other transaction has locked (ff_watch_stream takes
-- no lock on the execution), with the locks on these: closing or deleting a locked stream would wait.
create or replace function ff__free_streams(p_ids uuid[]) returns uuid[]
language plpgsql volatile
as $$
declare
    v_held uuid[];
begin
    with locked as materialized (
        select m.execution_id, m.attempt_index
          from unnest(p_ids) x(id) join ff_stream_meta m on m.execution_id = x.id for update of m skip locked)
    select array_agg(m.execution_id) into v_held
      from unnest(p_ids) x(id) join ff_stream_meta m on m.execution_id = x.id
     where (m.execution_id, m.attempt_index) not in (select l.execution_id, l.attempt_index from locked l);
    if v_held is null then
        return p_ids;
    end if;
    return array(select x.id from unnest(p_ids) with ordinality x(id, n) where x.id <> all (v_held) order by x.n);
end
$$;
