-- %(n)s finished executions on a lane of their own, made as clients make them; each call is a transaction.
do $$
declare
    v_left int := %(n)s;
begin
    while v_left > 0 loop
        perform ff_create_executions('retained', array_fill('\x01'::bytea, array[least(v_left, 1000)]));
        commit;
        perform ff_complete_many(array(select c.handle from ff_claim_many('retained', 'retained', 'retained', 1000) c));
        commit;
        v_left := v_left - 1000;
    end loop;
end
$$;
