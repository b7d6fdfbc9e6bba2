-- Locks: the execution if there is one (waits for it), the reservation. Repeatable: already_released.
create or replace function ff_release_admission(
    p_quota_policy_id text,
    p_execution_id text,
    p_refund_rate boolean default false,
    out outcome text,
    out active_concurrency bigint
)
language plpgsql volatile security definer
as $$
declare
    v_id uuid;
    v_now bigint;
    e ff_exec;
    r ff_quota_reservation;
begin
    perform ff__check_policy_id('p_quota_policy_id', p_quota_policy_id);
    v_id := ff__slot_key(p_execution_id);
    if p_refund_rate is null then
        perform ff__invalid('p_refund_rate', 'must not be null');
    end if;
    e := ff__open(v_id);
    if e.ownership_state = 'leased' and e.lease_expires_at_ms > e.now_ms
       and exists (select from ff_execution c
                    where c.execution_id = v_id and c.quota_policy_id = p_quota_policy_id) then
        perform ff__raise('slot_in_use',
                          format('execution %s runs under quota policy %s', p_execution_id, p_quota_policy_id),
                          jsonb_build_object('execution_id', p_execution_id, 'quota_policy_id', p_quota_policy_id));
    end if;
    delete from ff_quota_reservation x
     where x.quota_policy_id = p_quota_policy_id and x.execution_id = v_id
    returning x.* into r;
    v_now := ff__now_ms();
    outcome := 'already_released';
    if r.expires_at_ms > v_now then
        outcome := 'released';
        if p_refund_rate then
            delete from ff_quota_window w
             where w.quota_policy_id = p_quota_policy_id and w.execution_id = v_id
               and w.attempt_index = r.attempt_index;
        end if;
        perform ff__unpark_peers(p_quota_policy_id, 1);
    end if;
    active_concurrency := ff__slots_taken(p_quota_policy_id, v_now, false);
end
$$;

comment on function ff_release_admission(text, text, boolean) is
$$Releases a slot reserved by ff_check_admission; p_refund_rate: also the start. An execution that runs under the policy
keeps its slot until it stops.

Outcomes: outcome = released | already_released
Errors: invalid_input, invalid_execution_id, slot_in_use$$;
-- grant: ff_producer, ff_worker, ff_operator, ff_admin
