-- Runs a step. p_scan yields the keys of due rows, oldest first and without a limit, so that rows that are locked or
-- backed off hide none behind them. A batch is one subtransaction; if it fails, each of its rows is tried in its own.
-- A row that fails alone is recorded (ff__sweep_failed) and excluded; its retries come before the scan, at most
-- p_limit / 4 at a time. p_retry false: the scan covers only a part of the step. p_keep_ms: see ff__trim_rows.
create or replace function ff__sweep(
    p_name text, p_limit int, p_scan refcursor, p_retry boolean default true, p_keep_ms bigint[] default null,
    out processed int, out errors int, out more boolean
)
language plpgsql volatile
as $$
declare
    v_failed jsonb := (select jsonb_object_agg(x.row_key, x.next_retry_at_ms) from ff_reconciler_error x
                        where x.name = p_name and x.row_key <> '');
    v_now bigint := ff__now_ms();
    v_keys text[] := '{}'::text[];
    v_alone boolean := true;
    v_limit int;
    v_key text;
begin
    perform ff__check_limit(p_limit, 100000);
    processed := 0;
    errors := 0;
    if v_failed is not null and p_retry and p_limit > 0 then
        v_keys := array(select x.key from jsonb_each_text(v_failed) x where x.value::bigint <= v_now
                         order by x.value::bigint limit greatest(1, p_limit / 4));
    end if;
    more := cardinality(v_keys) = greatest(1, p_limit / 4);
    loop
        if not v_alone then
            begin
                processed := processed + ff__sweep_rows(p_name, v_keys, v_now, p_keep_ms);
            exception when others then
                if ff__stops_sweep(sqlstate) then
                    raise;
                end if;
                v_alone := true;
            end;
        end if;
        if v_alone then
            foreach v_key in array v_keys loop
                begin
                    processed := processed + ff__sweep_rows(p_name, array[v_key], v_now, p_keep_ms);
                    if v_failed ? v_key then
                        perform ff__sweep_healed(p_name, array[v_key]);
                    end if;
                exception when others then
                    if ff__stops_sweep(sqlstate) then
                        raise;
                    end if;
                    errors := errors + 1;
                    perform ff__sweep_failed(p_name, v_key, sqlstate, sqlerrm);
                end;
            end loop;
        end if;
        -- A retry that failed takes no place of a due row.
        v_limit := coalesce(v_limit, p_limit + errors);
        v_alone := false;
        v_keys := '{}';
        while cardinality(v_keys) < v_limit - processed - errors loop
            fetch p_scan into v_key;
            exit when not found;
            if (v_failed ? v_key) is not true then
                v_keys := v_keys || v_key;
            end if;
        end loop;
        exit when v_keys = '{}';
    end loop;
    close p_scan;
    more := processed + errors > 0 and (more or processed + errors >= v_limit);
end
$$;
