-- Whether a matcher accepts a signal name. No matcher, or "wildcard": any. Pure.
create or replace function ff__matches(p_matcher jsonb, p_name text) returns boolean
language plpgsql immutable parallel safe
as $$
begin
    return case when p_matcher is null or p_matcher = '"wildcard"' then true
                when p_matcher ? 'by_name' then p_matcher ->> 'by_name' = p_name collate "C"
                else p_matcher -> 'one_of' ? p_name end;
end
$$;
