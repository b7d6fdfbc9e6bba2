-- A limit of the engine: a number among the settings. Callers cannot pass one.
create or replace function ff__limit(p_name text) returns int
language plpgsql stable
as $$
begin
    return (select s.value::int from ff_setting s where s.name = p_name);
end
$$;
