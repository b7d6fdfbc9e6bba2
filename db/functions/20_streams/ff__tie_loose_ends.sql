-- Closes what an attempt leaves open when it ends. Called only when there is something (e.loose_ends), under the
-- execution's lock. p_reason: why its stream closes. Returns e without loose ends.
create or replace function ff__tie_loose_ends(e ff_exec, p_reason text) returns ff_exec
language plpgsql volatile
as $$
begin
    perform ff__close_stream(e, p_reason);
    e.loose_ends := false;
    return e;
end
$$;
