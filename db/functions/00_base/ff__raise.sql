-- Raises the engine error of that kind: SQLSTATE and default hint from the registry, DETAIL one json object.
-- The only way to raise. Never returns.
create or replace function ff__raise(
    p_kind text,
    p_message text,
    p_detail jsonb default '{}',
    p_hint text default null
) returns void
language plpgsql stable
as $$
declare
    v_sqlstate text;
    v_hint text;
begin
    select c.sqlstate, c.hint into v_sqlstate, v_hint from ff_error_code c where c.kind = p_kind;
    if not found then
        raise exception using
            errcode = 'WF500',
            message = format('error kind %s is not in ff_error_code', p_kind),
            detail = jsonb_build_object('kind', 'corrupt_state', 'unregistered', p_kind)::text,
            hint = 'Run pyff migrate.';
    end if;
    raise exception using
        errcode = v_sqlstate,
        message = p_message,
        detail = (jsonb_build_object('kind', p_kind) || p_detail)::text,
        hint = coalesce(p_hint, v_hint);
end
$$;
