-- ff__claim_idempotency_key for a batch: the owner of each item, which is its own id where the item is new. NULL and ''
-- are no key. Keys are locked in their order; they were checked (ff__check_idempotency_keys).
-- Errors: idempotency_conflict (DETAIL.index, from 1).
create or replace function ff__claim_idempotency_keys(
    p_namespace text, p_keys text[], p_window_ms bigint, p_ids uuid[], p_hashes bytea[]
) returns uuid[]
language plpgsql volatile
as $$
declare
    v_now bigint;
    v_at int;
    v_owner uuid;
    v_owners uuid[] := p_ids;
    f record;
    k ff_idempotency;
begin
    v_now := ff__now_ms();
    insert into ff_idempotency (namespace, idempotency_key, partition_key, execution_id, expires_at_ms, request_hash)
    select p_namespace, y.key, ff__partition(p_ids[y.n]), p_ids[y.n], ff__time_after(v_now, p_window_ms), p_hashes[y.n]
      from (select x.key collate "C" as key, min(x.n) as n from unnest(p_keys) with ordinality x(key, n)
             where x.key <> '' group by 1) y
     order by y.key
    on conflict do nothing;
    for f in
        select y.key, y.ns[1] as n, y.ns
          from (select x.key collate "C" as key, array_agg(x.n::int order by x.n) as ns
                  from unnest(p_keys) with ordinality x(key, n) where x.key <> '' group by 1) y
         order by y.key
    loop
        select i.* into k from ff_idempotency i
         where i.namespace = p_namespace and i.idempotency_key = f.key for update;
        if found and k.execution_id = p_ids[f.n] then
            v_owner := null;
        else
            -- Somebody's, lapsed, or swept since: the single form knows what to do.
            v_owner := ff__claim_idempotency_key(p_namespace, f.key, p_window_ms, p_ids[f.n], p_hashes[f.n]);
        end if;
        foreach v_at in array f.ns loop
            if p_hashes[v_at] <> p_hashes[f.n] then
                perform ff__raise('idempotency_conflict', 'the batch uses one idempotency key for different requests',
                                  jsonb_build_object('index', v_at, 'namespace', p_namespace));
            end if;
            v_owners[v_at] := coalesce(v_owner, p_ids[f.n]);
        end loop;
    end loop;
    return v_owners;
end
$$;
