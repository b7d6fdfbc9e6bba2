-- The executions that a batch of handles names, in their order: NULL for what cannot be a handle and for a handle that is
-- repeated (only the first can hold the lease). Whether a handle holds one is for its row to say.
create or replace function ff__handle_ids(p_handles text[]) returns uuid[]
language plpgsql stable
as $$
begin
    -- What is left without the digits is the skeleton: the cast cannot fail.
    return array(
        select case when x.handle like 'ff1.________-____-____-____-____________.________-____-____-____-____________.________-%'
                         and translate(left(x.handle, 114), '0123456789abcdef', '') = '.----.----.----'
                         and translate(substr(x.handle, 115), '0123456789', '') = '...'
                         and x.nth = 1
                    then substr(x.handle, 5, 36)::uuid end
          from (select u.handle, u.n, row_number() over (partition by u.handle order by u.n) as nth
                  from unnest(p_handles) with ordinality u(handle, n)) x
         order by x.n);
end
$$;
