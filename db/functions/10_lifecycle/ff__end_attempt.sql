-- The end of an attempt, to be written by ff__end, ff__requeue or ff__lease: what the attempt left open is closed with
-- p_close_reason, and its lease, if it has had no ending event, gets one: released with p_lease_reason, or expired when
-- p_timer names the timer that ended it or its time had run out. p_op is what a replay must ask for:
-- complete | fail | cancel by the lease holder, override | expire | reclaim otherwise. A paused attempt keeps the record of its
-- pause, which its holder may still replay.
create or replace function ff__end_attempt(
    e ff_exec,
    p_op text,
    p_outcome text,
    p_lease_reason text,
    p_timer text default null,
    p_failure_reason text default null,
    p_failure_category text default null,
    p_classification text default null,
    p_release_detail jsonb default null,
    p_close_reason text default 'attempt_ended'
) returns ff_ending
language plpgsql volatile
as $$
declare
    a ff_ending;
begin
    if e.loose_ends then
        perform ff__tie_loose_ends(e, p_close_reason, case when p_close_reason like 'timed_out%' then 'suspension_timeout'
                                                           else ff__close_reason(p_outcome) end);
    end if;
    a := ff__end_lease(e, p_op, p_lease_reason, p_timer, p_release_detail);
    a.outcome := p_outcome;
    a.failure_reason := p_failure_reason;
    a.failure_category := p_failure_category;
    a.classification := p_classification;
    return a;
end
$$;

-- The end of a lease: the pause of its attempt, or a part of ff__end_attempt.
create or replace function ff__end_lease(
    e ff_exec, p_op text, p_lease_reason text, p_timer text default null, p_release_detail jsonb default null
) returns ff_ending
language plpgsql stable
as $$
declare
    a ff_ending;
begin
    if e.lease_id is not null then
        a.op := p_op;
        a.detail := p_release_detail;
    end if;
    if e.ownership_state = 'leased' then
        if p_timer is null and e.lease_expires_at_ms > e.now_ms then
            a.lease_event := 'released';
            a.lease_reason := p_lease_reason;
        else
            a.lease_event := 'expired';
            a.lease_reason := coalesce(p_timer, ff__lapse_reason(e));
        end if;
    end if;
    return a;
end
$$;
