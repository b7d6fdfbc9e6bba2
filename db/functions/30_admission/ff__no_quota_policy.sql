-- Raises quota_policy_not_found.
create or replace function ff__no_quota_policy(p_quota_policy_id text) returns void
language plpgsql stable
as $$
begin
    perform ff__raise('quota_policy_not_found', format('no quota policy %s', p_quota_policy_id),
                      jsonb_build_object('quota_policy_id', p_quota_policy_id));
end
$$;
