-- Raises invalid_policy for one place of a policy.
create or replace function ff__policy_fault(p_path text, p_reason text) returns void
language plpgsql stable
as $$
begin
    perform ff__raise('invalid_policy', concat_ws(' ', 'policy', nullif(p_path, ''), p_reason),
                      jsonb_build_object('path', p_path, 'reason', p_reason));
end
$$;
