-- Opens the outbox for one event: the current generation, or NULL when its type is muted. Rings channel
-- ff_event_<family> if the family notifies at commit; Postgres folds repeats in one transaction.
create or replace function ff__event_gate(p_family text, p_event_type text) returns int
language plpgsql volatile
as $$
declare
    v_muted text[];
    v_notify text;
    v_gen int;
begin
    select f.muted, f.notify, g.gen into v_muted, v_notify, v_gen
      from ff_event_family f, ff_event_generation g where f.family = p_family and g.id;
    if v_muted <> '{}' and (p_event_type = any (v_muted) or '*' = any (v_muted)) then
        return null;
    end if;
    if v_notify = 'commit' and (select s.value from ff_setting s where s.name = 'notify') = 'on' then
        perform pg_notify('ff_event_' || p_family, '');
    end if;
    return v_gen;
end
$$;
