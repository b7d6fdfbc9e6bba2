-- A lane id: 1 to 64 bytes of printable ASCII. Errors: invalid_input (NULL), invalid_lane_id.
create or replace function ff__check_lane_id(p_lane_id text) returns void
language plpgsql stable
as $$
begin
    if p_lane_id is null then
        perform ff__invalid('p_lane_id', 'must not be null');
    elsif octet_length(p_lane_id) not between 1 and 64 or p_lane_id ~ E'[^\\x20-\\x7e]' then
        perform ff__raise('invalid_lane_id', 'the lane id is not 1 to 64 bytes of printable ASCII',
                          jsonb_build_object('lane_id', left(p_lane_id, 64)));
    end if;
end
$$;
