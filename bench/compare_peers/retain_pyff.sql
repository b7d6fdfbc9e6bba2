-- %(n)s more finished executions like the one that is there, with their inputs and attempts.
do $$
declare
    v_table   text;
    v_columns text;
begin
    create temp table retained as
    select gen_random_uuid() as execution_id, gen_random_uuid() as attempt_id, c.execution_id as model
      from (select e.execution_id from ff_exec_core e where e.lifecycle_phase = 'terminal' limit 1) c,
           generate_series(1, %(n)s);
    foreach v_table in array array['ff_exec_core', 'ff_exec_input', 'ff_attempt'] loop
        select string_agg(quote_ident(a.attname), ', ') into v_columns
          from pg_attribute a
         where a.attrelid = v_table::regclass
           and a.attnum > 0
           and not a.attisdropped
           and a.attgenerated = ''
           and a.attidentity = ''
           and a.attname not in ('execution_id', 'attempt_id');
        execute format(
            'insert into %1$I (execution_id %3$s, %2$s) select r.execution_id %4$s, %5$s from retained r'
            ' join %1$I m on m.execution_id = r.model',
            v_table,
            v_columns,
            case v_table when 'ff_attempt' then ', attempt_id' else '' end,
            case v_table when 'ff_attempt' then ', r.attempt_id' else '' end,
            (select string_agg('m.' || c, ', ') from unnest(string_to_array(v_columns, ', ')) c));
    end loop;
    drop table retained;
end
$$;
