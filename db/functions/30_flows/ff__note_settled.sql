-- A member's pause or retry went elsewhere than its verb said (it waits for dependencies, or ended): the record that a
-- replay answers from says where. Returns the public state.
create or replace function ff__note_settled(e ff_exec, p_public_state text) returns text
language plpgsql volatile
as $$
begin
    update ff_attempt a
       set release_detail = a.release_detail || jsonb_build_object('public_state', p_public_state)
     where a.execution_id = e.execution_id and a.attempt_index = e.current_attempt_index
       and a.release_detail ->> 'public_state' <> p_public_state;
    return p_public_state;
end
$$;
