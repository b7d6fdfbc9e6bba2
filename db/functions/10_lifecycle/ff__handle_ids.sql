-- The executions that a batch of handles names, in their order: NULL for what cannot be a handle, so that nobody waits on
-- its behalf. Whether a handle holds a lease is for its row to say. One that is repeated is named again: an update that joins
-- them writes a row once, for the first.
create or replace function ff__handle_ids(p_handles text[]) returns uuid[]
language plpgsql stable
as $$
begin
    return array(
        select case when x.handle like 'ff1.________-____-____-____-____________.________-____-____-____-____________.________-____-____-____-____________.%'
                         and translate(substr(x.handle, 115), '0123456789', '') = '...'
                         and num_nulls(substr(x.handle, 42, 36)::uuid, substr(x.handle, 79, 36)::uuid) = 0
                    then substr(x.handle, 5, 36)::uuid end
          from unnest(p_handles) with ordinality x(handle, n) order by x.n);
exception when invalid_text_representation then
    -- Something among them only looks like one. What is left without the digits is the skeleton: the cast cannot fail.
    return array(
        select case when x.handle like 'ff1.________-____-____-____-____________.________-____-____-____-____________.________-%'
                         and translate(left(x.handle, 114), '0123456789abcdef', '') = '.----.----.----'
                         and translate(substr(x.handle, 115), '0123456789', '') = '...'
                    then substr(x.handle, 5, 36)::uuid end
          from unnest(p_handles) with ordinality x(handle, n) order by x.n);
end
$$;
