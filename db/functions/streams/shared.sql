-- Checks p_visibility: all, or exclude_best_effort (no frames that expire). Errors: invalid_input.
create or replace function ff__check_visibility(p_visibility text) returns void
language plpgsql stable
as $$
begin
    if p_visibility is null or p_visibility not in ('all', 'exclude_best_effort') then
        perform ff__invalid('p_visibility', 'must be all or exclude_best_effort');
    end if;
end
$$;

-- Parses a position in a stream: <ms>-<seq>; with p_bounds also start, end and a bare <ms>, which is seq p_bare_seq.
-- Checks before it casts. Errors: invalid_input (NULL), invalid_cursor.
create or replace function ff__frame_id(
    p_arg text, p_cursor text, p_bounds boolean, p_bare_seq int
) returns ff_frame_id
language plpgsql stable
as $$
declare
    v_ms text := split_part(p_cursor, '-', 1);
    v_seq text := split_part(p_cursor, '-', 2);
begin
    if p_cursor is null then
        perform ff__invalid(p_arg, 'must not be null');
    elsif p_bounds and p_cursor = 'start' then
        return (0, 0)::ff_frame_id;
    elsif p_bounds and p_cursor = 'end' then
        return (9223372036854775807, 2147483647)::ff_frame_id;
    elsif length(p_cursor) > 30 or p_cursor !~ '^(0|[1-9][0-9]{0,18})(-(0|[1-9][0-9]{0,9}))?$'
          or (not p_bounds and v_seq = '')
          or lpad(v_ms, 19, '0') collate "C" > '9223372036854775807'
          or lpad(v_seq, 10, '0') collate "C" > '2147483647'
    then
        perform ff__raise('invalid_cursor', format('%s is not a place in a stream', p_arg),
                          jsonb_build_object('arg', p_arg, 'cursor', left(p_cursor, 80)));
    end if;
    return (v_ms::bigint, coalesce(nullif(v_seq, '')::int, p_bare_seq))::ff_frame_id;
end
$$;

-- Creates the meta row of the current attempt's stream and marks the execution, whose end will close it. Runs under the
-- execution's lock, so not concurrently.
create or replace function ff__open_stream(e ff_exec) returns void
language plpgsql volatile
as $$
begin
    insert into ff_stream_meta (execution_id, attempt_index) values (e.execution_id, e.current_attempt_index);
    update ff_execution c set stream_open = true, last_mutation_at_ms = e.now_ms where c.execution_id = e.execution_id;
end
$$;

-- Frames of one stream from p_from to p_to, both included, by their ids, without expired ones.
create or replace function ff__read_frames(
    p_execution_id uuid, p_attempt_index int, p_from ff_frame_id, p_to ff_frame_id, p_limit int, p_visibility text
) returns setof ff_stream_frame
language plpgsql stable
as $$
declare
    v_now bigint := ff__now_ms();
begin
    return query
        select f.* from ff_stream_frame f
         where f.execution_id = p_execution_id and f.attempt_index = p_attempt_index
           and (f.ts_ms, f.seq) >= (p_from.ts_ms, p_from.seq) and (f.ts_ms, f.seq) <= (p_to.ts_ms, p_to.seq)
           and (f.expires_at_ms is null or f.expires_at_ms > v_now)
           and (p_visibility = 'all' or f.mode <> 'best_effort_live')
         order by f.ts_ms, f.seq limit p_limit;
end
$$;

-- The execution of the attempt that a reader names. Takes no lock.
-- Errors: invalid_input, invalid_execution_id, execution_not_found, attempt_not_found.
create or replace function ff__stream_of(p_execution_id text, p_attempt_index int) returns uuid
language plpgsql stable
as $$
declare
    v_id uuid := ff__execution_uuid(p_execution_id);
begin
    if p_attempt_index is null then
        perform ff__invalid('p_attempt_index', 'must not be null');
    elsif not exists (select from ff_attempt a where a.execution_id = v_id and a.attempt_index = p_attempt_index) then
        if not exists (select from ff_execution c where c.execution_id = v_id) then
            perform ff__raise_not_found(p_execution_id);
        end if;
        perform ff__raise('attempt_not_found',
                          format('execution %s has no attempt %s', p_execution_id, p_attempt_index),
                          jsonb_build_object('execution_id', p_execution_id, 'attempt_index', p_attempt_index));
    end if;
    return v_id;
end
$$;
