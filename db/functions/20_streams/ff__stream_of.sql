-- The execution whose attempt a reader asks for. Takes no lock.
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
            perform ff__not_found(p_execution_id);
        end if;
        perform ff__raise('attempt_not_found',
                          format('execution %s has no attempt %s', p_execution_id, p_attempt_index),
                          jsonb_build_object('execution_id', p_execution_id, 'attempt_index', p_attempt_index));
    end if;
    return v_id;
end
$$;
