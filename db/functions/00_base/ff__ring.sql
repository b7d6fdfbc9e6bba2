-- Rings the doorbell of an event family; always true, so that a statement can ring in passing. Postgres folds repeats in
-- one transaction.
create or replace function ff__ring(p_family text) returns boolean
language plpgsql volatile
as $$
begin
    if (select s.value from ff_setting s where s.name = 'notify') = 'on' then
        perform pg_notify('ff_event_' || p_family, '');
    end if;
    return true;
end
$$;
