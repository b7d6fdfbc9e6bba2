-- Locks: the step's row (waits for it: a running ff_tick holds it until it commits). Repeatable.
create or replace function ff_set_reconciler(
    p_name text,
    p_enabled boolean default null,
    p_interval_ms bigint default null,
    out name text,
    out enabled boolean,
    out interval_ms bigint
)
language plpgsql volatile security definer
as $$
begin
    if p_name is null then
        perform ff__invalid('p_name', 'must not be null');
    elsif p_interval_ms not between 0 and 86400000 then
        perform ff__invalid('p_interval_ms', 'must be between 0 and 86400000',
                            jsonb_build_object('value', p_interval_ms));
    end if;
    update ff_reconciler r
       set enabled = coalesce(p_enabled, r.enabled), interval_ms = coalesce(p_interval_ms, r.interval_ms)
     where r.name = p_name
    returning r.name, r.enabled, r.interval_ms
         into ff_set_reconciler.name, ff_set_reconciler.enabled, ff_set_reconciler.interval_ms;
    if not found then
        perform ff__invalid('p_name', 'names no step of maintenance', jsonb_build_object('name', left(p_name, 64)));
    end if;
end
$$;

comment on function ff_set_reconciler(text, boolean, bigint) is
$$Switches a step of maintenance on or off, or changes how often ff_tick runs it; NULL keeps the setting. p_name: the
step's function without ff_. The work of a disabled step is left to claims, where they can do it.

Errors: invalid_input$$;
-- grant: ff_admin
