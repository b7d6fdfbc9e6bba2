-- The idempotency keys of a batch. Errors: invalid_input (DETAIL.index, from 1).
create or replace function ff__check_idempotency_keys(p_keys text[]) returns void
language plpgsql stable
as $$
declare
    v_at int;
begin
    select min(x.n) into v_at from unnest(p_keys) with ordinality x(key, n) where octet_length(x.key) > 512;
    if v_at is not null then
        perform ff__invalid('p_idempotency_keys', 'must hold keys of at most 512 bytes', jsonb_build_object('index', v_at));
    end if;
end
$$;
