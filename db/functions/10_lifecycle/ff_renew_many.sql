-- Locks: the executions, in the order of their ids. Each item is judged as ff_renew would.
create or replace function ff_renew_many(p_handles text[], p_lease_ttl_ms bigint default null)
returns table (ordinal int, outcome text, lease_expires_at_ms bigint, error_kind text)
language plpgsql volatile security definer
as $$
declare
    v_count int := cardinality(p_handles);
    v_fences ff_fence[];
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
    p_handles := p_handles[:]; -- from index 1 on, whatever the caller's bounds
    v_fences := ff__parse_handles(p_handles);
    v_expiry := ff__renew(v_fences, p_lease_ttl_ms, ff__lock_fences(v_fences));
    for v_n in 1..v_count loop
        ordinal := v_n;
        lease_expires_at_ms := v_expiry[v_n];
        error_kind := null;
        if lease_expires_at_ms is null then
            -- Refused, or a handle that is repeated: the first of them was renewed.
            v_fence := v_fences[v_n];
            if v_fence.lease_id is null then
                error_kind := case when p_handles[v_n] is null then 'invalid_input' else 'invalid_handle' end;
            else
                error_kind := ff__verdict(ff__open(v_fence.execution_id), v_fence, null);
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
$$ff_renew for up to 1000 handles in one call: keeps all leases of a worker alive. One row per handle, in their order; one
that ff_renew would refuse is refused with that error_kind, the others are renewed.

Outcomes: outcome = renewed | refused
Nullable: lease_expires_at_ms, error_kind
Errors: invalid_input$$;
