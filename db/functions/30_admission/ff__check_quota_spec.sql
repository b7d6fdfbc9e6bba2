-- The limits of a quota policy: 0 is no limit, and starts are counted in a window. What is parked by them waits until
-- ff__last_ms at most. Errors: invalid_quota_spec.
create or replace function ff__check_quota_spec(
    p_window_seconds bigint, p_max_requests_per_window bigint, p_max_concurrent bigint, p_jitter_ms bigint
) returns void
language plpgsql stable
as $$
declare
    c_max constant bigint := 9007199254740;
    v_longest_ms constant bigint := ff__last_ms(ff__now_ms());
    r record;
begin
    for r in
        select x.name, x.value, x.max
          from (values ('window_seconds', p_window_seconds, v_longest_ms / 1000),
                       ('max_requests_per_window', p_max_requests_per_window, c_max),
                       ('max_concurrent', p_max_concurrent, c_max), ('jitter_ms', p_jitter_ms, v_longest_ms))
               x(name, value, max)
         where x.value not between 0 and x.max limit 1
    loop
        perform ff__raise('invalid_quota_spec', format('%s must be between 0 and %s', r.name, r.max),
                          jsonb_build_object('arg', 'p_' || r.name, 'value', r.value));
    end loop;
    if p_max_requests_per_window > 0 and p_window_seconds = 0 then
        perform ff__raise('invalid_quota_spec', 'a number of starts needs a window',
                          jsonb_build_object('arg', 'p_window_seconds', 'value', p_window_seconds));
    end if;
end
$$;
