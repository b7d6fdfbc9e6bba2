-- Whether a quota policy is the one that is attached already; false if none is. Errors: quota_attach_conflict
-- (another).
create or replace function ff__quota_attached(p_quota_policy_id text, p_attached text) returns boolean
language plpgsql stable
as $$
begin
    if p_attached <> p_quota_policy_id then
        perform ff__raise('quota_attach_conflict', format('quota policy %s is attached', p_attached),
                          jsonb_build_object('attached', p_attached, 'quota_policy_id', p_quota_policy_id));
    end if;
    return p_attached is not null;
end
$$;
