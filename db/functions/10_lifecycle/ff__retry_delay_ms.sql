-- How long to wait before the next retry, by the stored retry policy. p_retries = retries made before this failure.
create or replace function ff__retry_delay_ms(p_retry_policy jsonb, p_retries int) returns bigint
language plpgsql volatile
as $$
declare
    v_backoff jsonb := p_retry_policy -> 'backoff';
    v_initial float8;
    v_max float8;
    v_multiplier float8;
    v_delay float8;
begin
    if v_backoff ->> 'type' = 'fixed' then
        return (v_backoff -> 'delay_ms')::bigint;
    end if;
    v_initial := (v_backoff -> 'initial_delay_ms')::float8;
    v_max := (v_backoff -> 'max_delay_ms')::float8;
    v_multiplier := (v_backoff -> 'multiplier')::float8;
    -- In logarithms: multiplier ^ retries leaves the range of float8 long before the policy's limits are reached.
    if v_initial <= 0 or v_max <= 0 then
        v_delay := 0;
    elsif ln(v_initial) + p_retries * ln(v_multiplier) >= ln(v_max) then
        v_delay := v_max;
    else
        v_delay := v_initial * power(v_multiplier, p_retries);
    end if;
    v_delay := floor(v_delay);
    if (v_backoff -> 'jitter')::boolean then
        -- Whole milliseconds between half of it and all of it, both included.
        v_delay := ceil(v_delay / 2) + floor(random() * (floor(v_delay / 2) + 1));
    end if;
    return v_delay::bigint;
end
$$;
