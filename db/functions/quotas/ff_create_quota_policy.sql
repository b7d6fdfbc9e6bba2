-- Locks: the policy's id. Repeatable: already_satisfied.
create or replace function ff_create_quota_policy(
    p_quota_policy_id text,
    p_window_seconds bigint default 0,
    p_max_requests_per_window bigint default 0,
    p_max_concurrent bigint default 0,
    p_jitter_ms bigint default 0,
    out outcome text,
    out quota_policy_id text
)
language plpgsql volatile security definer
as $$
declare
    v_now bigint := ff__now_ms();
    q ff_quota_policy;
begin
    if length(p_quota_policy_id) not between 1 and 200 then
        perform ff__raise('invalid_quota_spec', 'p_quota_policy_id must have 1 to 200 characters',
                          jsonb_build_object('arg', 'p_quota_policy_id', 'characters', length(p_quota_policy_id)));
    end if;
    perform ff__check_policy_id('p_quota_policy_id', p_quota_policy_id);
    if num_nulls(p_window_seconds, p_max_requests_per_window, p_max_concurrent, p_jitter_ms) > 0 then
        perform ff__invalid(case when p_window_seconds is null then 'p_window_seconds'
                                 when p_max_requests_per_window is null then 'p_max_requests_per_window'
                                 when p_max_concurrent is null then 'p_max_concurrent'
                                 else 'p_jitter_ms' end, 'must not be null');
    end if;
    perform ff__check_quota_spec(p_window_seconds, p_max_requests_per_window, p_max_concurrent, p_jitter_ms);
    quota_policy_id := p_quota_policy_id;
    insert into ff_quota_policy as x (
        quota_policy_id, window_seconds, max_requests_per_window, max_concurrent, jitter_ms, created_at_ms,
        updated_at_ms)
    values (p_quota_policy_id, p_window_seconds, p_max_requests_per_window, p_max_concurrent, p_jitter_ms, v_now, v_now)
    on conflict on constraint ff_quota_policy_pkey do nothing;
    if found then
        outcome := 'created';
        return;
    end if;
    outcome := 'already_satisfied';
    select x.* into q from ff_quota_policy x where x.quota_policy_id = p_quota_policy_id;
    if (q.window_seconds, q.max_requests_per_window, q.max_concurrent, q.jitter_ms)
       <> (p_window_seconds, p_max_requests_per_window, p_max_concurrent, p_jitter_ms) then
        perform ff__raise('quota_policy_conflict',
                          format('quota policy %s exists with other limits', p_quota_policy_id),
                          jsonb_build_object('quota_policy_id', p_quota_policy_id, 'window_seconds', q.window_seconds,
                                             'max_requests_per_window', q.max_requests_per_window,
                                             'max_concurrent', q.max_concurrent, 'jitter_ms', q.jitter_ms));
    end if;
end
$$;

comment on function ff_create_quota_policy(text, bigint, bigint, bigint, bigint) is
$$Creates a quota policy: a maximum of starts in any p_window_seconds and of executions at once; 0 is no limit. Attached
with ff_attach_quota or policy.quota_policy_id, it is enforced by every claim. p_jitter_ms: the maximum random delay
added to the retry time of executions denied a start, so that they do not all retry together.

Outcomes: outcome = created | already_satisfied
Errors: invalid_input, invalid_quota_spec, quota_policy_conflict$$;
-- grant: ff_operator, ff_admin
