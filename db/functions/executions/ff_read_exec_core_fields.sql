create or replace function ff_read_exec_core_fields(p_execution_id text, p_fields text[])
returns table (field text, value text)
language plpgsql stable security definer
as $$
declare
    v_row jsonb;
    v_field text;
begin
    if p_fields is null then
        perform ff__invalid('p_fields', 'must not be null');
    elsif cardinality(p_fields) > 100 then
        perform ff__invalid('p_fields', 'must have at most 100 names');
    end if;
    -- Check the names against the catalog, so that a misspelled one is rejected for an unknown execution too.
    foreach v_field in array p_fields loop
        if v_field is null or not exists (
            select from pg_proc p, unnest(p.proargnames, p.proargmodes) x(name, mode)
             where p.oid = 'ff_describe_execution(text)'::regprocedure and x.mode = 't' and x.name = v_field) then
            perform ff__invalid('p_fields', 'names a field that ff_describe_execution does not return',
                                jsonb_build_object('field', left(v_field, 64)));
        end if;
    end loop;
    select to_jsonb(d.*) into v_row from @extschema@.ff_describe_execution(p_execution_id) d;
    if not found then
        return;
    end if;
    return query
        select f.name, v_row ->> f.name from unnest(p_fields) with ordinality f(name, n) order by f.n;
end
$$;

comment on function ff_read_exec_core_fields(text, text[]) is
$$Selected fields of ff_describe_execution as text, in the order of p_fields. No rows: there is no such execution.

Nullable: value
Errors: invalid_input, invalid_execution_id$$;
-- grant: ff_reader, ff_producer, ff_worker, ff_operator, ff_admin
