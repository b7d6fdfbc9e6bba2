-- The id of a schedule: 1 to 256 bytes without control characters. Errors: invalid_input.
create or replace function ff__check_schedule_id(p_schedule_id text) returns void
language plpgsql stable
as $$
begin
    perform ff__check_text('p_schedule_id', p_schedule_id, 1, 256);
end
$$;
