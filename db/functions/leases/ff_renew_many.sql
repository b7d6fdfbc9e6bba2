-- Locks: the executions, in the order of their ids. Each item is checked as by ff_renew.
create or replace function ff_renew_many(p_handles text[], p_lease_ttl_ms bigint default null)
returns table (ordinal int, outcome text, lease_expires_at_ms bigint, error_kind text)
language plpgsql volatile security definer
as $$
declare
    v_count int := cardinality(p_handles);
    v_ids uuid[];
    v_fence ff_fence;
    v_expiry bigint[];
begin
    if p_handles is null then
        perform ff__invalid('p_handles', 'must not be null');
    elsif array_ndims(p_handles) > 1 then
        perform ff__invalid('p_handles', 'must have one dimension');
    elsif v_count > 1000 then
        perform ff__invalid('p_handles', 'must have at most 1000 items');
    elsif p_lease_ttl_ms is not null then
        perform ff__check_ttl('p_lease_ttl_ms', p_lease_ttl_ms);
    end if;
    p_handles := p_handles[:]; -- makes the lower bound 1
    v_ids := ff__handle_ids(p_handles);
    v_expiry := ff__renew(v_ids, p_handles, p_lease_ttl_ms, ff__lock_executions(v_ids));
    for v_n in 1..v_count loop
        ordinal := v_n;
        lease_expires_at_ms := v_expiry[v_n];
        error_kind := null;
        if lease_expires_at_ms is null then
            -- The handle is rejected, or it repeats an earlier one that was renewed.
            v_fence := ff__parse_handle(p_handles[v_n]);
            if v_fence.lease_id is null then
                error_kind := case when p_handles[v_n] is null then 'invalid_input' else 'invalid_handle' end;
            else
                error_kind := ff__fence_status(ff__open(v_fence.execution_id), v_fence, null);
                lease_expires_at_ms := case when error_kind is null
                                            then v_expiry[array_position(p_handles, p_handles[v_n])] end;
            end if;
        end if;
        outcome := case when error_kind is null then 'renewed' else 'refused' end;
        return next;
    end loop;
end
$$;

comment on function ff_renew_many(text[], bigint) is
$$ff_renew for up to 1000 handles in one call: renews all leases of a worker. Returns one row per handle, in their
order. A handle that ff_renew would reject gets outcome refused with that error_kind; the others are renewed.

Outcomes: outcome = renewed | refused
Nullable: lease_expires_at_ms, error_kind
Errors: invalid_input$$;
-- grant: ff_worker, ff_admin
