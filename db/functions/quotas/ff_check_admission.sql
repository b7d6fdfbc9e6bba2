-- Locks: the execution if there is one, the policy (waits for them). Repeated while the slot is held: already_admitted.
create or replace function ff_check_admission(
    p_quota_policy_id text,
    p_execution_id text,
    p_hold_ms bigint default 60000,
    out outcome text,
    out retry_after_ms bigint,
    out active_concurrency bigint,
    out window_count bigint
)
language plpgsql volatile security definer
as $$
declare
    v_id uuid;
    v_hold bigint := p_hold_ms;
    q ff_quota_policy;
    e ff_exec;
    a ff_admission;
begin
    perform ff__check_policy_id('p_quota_policy_id', p_quota_policy_id);
    v_id := ff__slot_key(p_execution_id);
    if p_hold_ms is null then
        perform ff__invalid('p_hold_ms', 'must not be null');
    end if;
    perform ff__check_time('p_hold_ms', p_hold_ms, 1, ff__now_ms());
    select x.* into q from ff_quota_policy x where x.quota_policy_id = p_quota_policy_id;
    if not found then
        perform ff__raise_no_quota_policy(p_quota_policy_id);
    end if;
    e := ff__open(v_id);
    if e.lifecycle_phase = 'terminal' then
        v_hold := null; -- it will not run
    end if;
    -- The attempt that the next claim runs: the paused one, or a new one.
    a := ff__admit(p_quota_policy_id, array[v_id],
                   array[case when e.lifecycle_phase in ('runnable', 'suspended')
                                   and e.attempt_state = 'attempt_interrupted'
                              then e.current_attempt_index else coalesce(e.total_attempt_count, 0) end],
                   '{true}', v_hold, true);
    if a.outcome = 'admitted' and v_hold is not null and not e.limited then
        -- So that its end releases the slot.
        update ff_execution c set limited = true where c.execution_id = v_id;
        perform ff__change_queue(array[v_id]);
    end if;
    outcome := a.outcome;
    retry_after_ms := a.retry_after_ms;
    active_concurrency := coalesce(a.active_concurrency, ff__slots_taken(p_quota_policy_id, a.now_ms, false));
    window_count := coalesce(a.window_count, ff__window_count(p_quota_policy_id, q.window_seconds, a.now_ms));
end
$$;

comment on function ff_check_admission(text, text, bigint) is
$$Requests a start and a slot from a quota policy, and reserves the slot for p_hold_ms: for work that is started by
other means, or before it is claimed; the claim of an execution under the policy takes the slot over. The execution need
not exist: then its id is the key of a plain limiter. rate_exceeded: retry after retry_after_ms. concurrency_exceeded:
retry when an execution of the policy has finished. Denials write nothing.

Outcomes: outcome = admitted | already_admitted | rate_exceeded | concurrency_exceeded
Nullable: retry_after_ms
Errors: invalid_input, invalid_execution_id, quota_policy_not_found$$;
-- grant: ff_producer, ff_worker, ff_operator, ff_admin
