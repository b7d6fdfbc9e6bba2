-- Opens a claim on a lane: checks its arguments, and lets what is due on the lane enter the ready index. Returns the
-- worker's capabilities, sorted and distinct; NULL when the lane hands out no work (unknown, paused or disabled).
-- The plain case is one expression and one probe. Errors: invalid_input, invalid_lane_id, invalid_capabilities.
create or replace function ff__check_claim(
    p_lane_id text, p_worker_id text, p_worker_instance_id text, p_capabilities text[], p_ttl_arg text, p_ttl_ms bigint,
    p_namespace text
) returns text[]
language plpgsql volatile
as $$
declare
    v_state text;
    v_due boolean;
    v_capabilities text[] := p_capabilities;
begin
    if (octet_length(p_worker_id) between 1 and 256 and octet_length(p_worker_instance_id) between 1 and 256
        and (p_worker_id || p_worker_instance_id) !~ '[\x01-\x1f\x7f]' and p_ttl_ms between 1 and 86400000
        and p_namespace is null and p_capabilities = '{}') is not true
    then
        perform ff__check_claimant(p_worker_id, p_worker_instance_id, p_ttl_arg, p_ttl_ms, p_namespace);
        v_capabilities := ff__check_capabilities('p_capabilities', p_capabilities);
    end if;
    select l.state,
           exists (select from ff_exec_core c
                    where c.lane_id = p_lane_id and coalesce(c.lease_check_at_ms, c.delay_until_ms) <= ff_now_ms()
                      and (c.ownership_state = 'leased' or c.eligibility_state = 'not_eligible_until_time'))
      into v_state, v_due
      from ff_lane_registry l where l.lane_id = p_lane_id;
    if not found then
        perform ff__check_lane_id(p_lane_id);
        return null;
    elsif v_state in ('paused', 'disabled') then
        return null;
    elsif v_due then
        perform ff__enter_due(p_lane_id);
    end if;
    return v_capabilities;
end
$$;
