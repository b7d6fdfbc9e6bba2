-- Steps: results recorded by an execution, so that the steps are not repeated by later attempts.

set local lock_timeout = '10s';

insert into ff_setting (name, value, description) values
    ('max_step_result_bytes', '1048576', 'the largest result of a recorded step, in bytes'),
    ('max_steps_per_execution', '10000', 'the largest number of recorded steps of one execution');

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
    'Step results recorded by executions, by name, in the order of recording. Read them with ff_read_steps.';
comment on column ff_step.execution_id is 'The execution.';
comment on column ff_step.lease_epoch is
    'The lease that recorded it; distinguishes a repeated call of that lease from a later run.';
comment on column ff_step.recorded_at_ms is 'When it was recorded (Unix time in ms).';
comment on column ff_step.ordinal is 'Its position in the order of recording, from 1.';
comment on column ff_step.attempt_index is 'The attempt that recorded it, from 0.';
comment on column ff_step.name is 'The name, as given by the worker; unique in the execution.';
comment on column ff_step.result_encoding is 'The encoding of the result, as named by the worker.';
comment on column ff_step.result is 'The result; NULL: none.';
create unique index ff_step_ordinal on ff_step (execution_id, ordinal);
