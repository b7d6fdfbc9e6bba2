-- Steps: results that an execution recorded on its way, so that they are not made again.

set local lock_timeout = '10s';

insert into ff_setting (name, value, description) values
    ('max_step_result_bytes', '1048576', 'the largest result of a recorded step, in bytes'),
    ('max_steps_per_execution', '10000', 'how many steps one execution may have recorded');

-- lease_epoch is the lease that recorded it: a repeated call of the same lease is told from a later run by it.
create table ff_step (
    execution_id    uuid   not null,
    lease_epoch     bigint not null,
    recorded_at_ms  bigint not null,
    ordinal         int    not null,
    attempt_index   int    not null,
    name            text collate "C" not null,
    result_encoding text,
    result          bytea,
    primary key (execution_id, name)
) with (
    autovacuum_vacuum_scale_factor = 0.05,
    autovacuum_analyze_scale_factor = 0.1
);
comment on table ff_step is
    'What executions recorded on their way, by name, in the order of recording. Read them with ff_read_steps.';
create unique index ff_step_ordinal on ff_step (execution_id, ordinal);
