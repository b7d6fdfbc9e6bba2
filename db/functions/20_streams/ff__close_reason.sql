-- Why the stream of an attempt closes, from the attempt's outcome.
create or replace function ff__close_reason(p_outcome text) returns text
language sql immutable parallel safe
as $$
    select case p_outcome
        when 'success' then 'attempt_success' when 'failure' then 'attempt_failure'
        when 'cancelled' then 'attempt_cancelled' when 'expired' then 'expired'
        when 'interrupted_reclaimed' then 'reclaimed' when 'skipped' then 'dependency_impossible' end
$$;
