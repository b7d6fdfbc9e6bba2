-- The rows of ff_event_log that hold an event of an execution: those of its own by its id; those with arrays by the times
-- in the ids. A row of length class s spans 1000 * 16 ^ s ms at most, so the last of its ids is at most that much younger
-- than the one sought. Plain SQL, so that it is inlined.
create or replace function ff__event_rows(p_execution_id uuid) returns setof ff_event_log
language sql stable
as $$
    select l.* from ff_event_log l where l.execution_id = p_execution_id
    union all
    select r.*
      from (values (0, 1000), (1, 16000), (2, 256000), (3, 4096000), (4, 65536000), (5, 1048576000)) s(span, width)
     cross join (select ('x' || left(p_execution_id::text, 8) || substr(p_execution_id::text, 10, 4))::bit(48)::bigint
                     as ms offset 0) t
     cross join lateral (
           select l.* from ff_event_log l
            where l.size is not null and (l.batch).span = s.span and (l.batch).last_id_ms >= t.ms
              and (l.batch).last_id_ms <= t.ms + s.width and (l.batch).first_id_ms <= t.ms
              and p_execution_id = any ((l.batch).execution_ids)) r
$$;
