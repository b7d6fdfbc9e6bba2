-- Metadata of the engine: schema version, applied functions, settings, error registry.

set local lock_timeout = '10s';

create table ff_schema_version (
    version       int    not null primary key,
    applied_at_ms bigint not null,
    migration     text   not null,
    sha256        text   not null
);
comment on table ff_schema_version is
    'One row per applied migration: its number, when it was applied, the file and its checksum.';
comment on column ff_schema_version.version is 'The number of the migration, which its file name begins with.';
comment on column ff_schema_version.applied_at_ms is 'When pyff migrate applied it (Unix time in ms).';
comment on column ff_schema_version.migration is 'The file name without .sql.';
comment on column ff_schema_version.sha256 is
    'The checksum of the file as applied, in hex. pyff migrate refuses a file that was edited later.';

create table ff_schema_state (
    id               boolean not null default true primary key check (id),
    functions_sha256 text    not null,
    pyff_version     text    not null,
    applied_at_ms    bigint  not null
);
comment on table ff_schema_state is
    'One row: the checksum of the installed functions and the pyff release that installed them.';
comment on column ff_schema_state.id is 'Always true: the table has one row.';
comment on column ff_schema_state.functions_sha256 is 'The checksum of all files of db/functions as applied, in hex.';
comment on column ff_schema_state.pyff_version is 'The newest release of pyff that applied the functions.';
comment on column ff_schema_state.applied_at_ms is
    'When the functions were applied (Unix time in ms). An older time than that of a migration means that they '
    'have to be applied again.';

create table ff_setting (
    name        text not null primary key,
    value       text not null,
    description text not null
);
comment on table ff_setting is
    'Settings of the engine. Read with ff_setting(name), changed with ff_set_setting(name, value).';
comment on column ff_setting.name is 'The name that ff_setting and ff_set_setting take.';
comment on column ff_setting.value is 'The value as text; ff_set_setting checks its form and range.';
comment on column ff_setting.description is 'What the setting does, and its unit.';

insert into ff_setting (name, value, description) values
    ('notify', 'on',
     'whether the engine notifies workers and readers; without it they only poll'),
    ('max_execution_bytes', '16777216',
     'the largest payload or result of an execution, in bytes'),
    ('retention_ms', '604800000',
     'how long completed and skipped executions whose policy has no retention_ms are kept after their end, in '
     'milliseconds'),
    ('retention_failed_ms', '2592000000',
     'the same as retention_ms for failed, cancelled and expired executions');

create table ff_error_code (
    sqlstate    text    not null primary key,
    class       text    not null,
    kind        text    not null unique,
    retryable   boolean not null,
    description text    not null,
    hint        text    not null,
    constraint ff_error_code_sqlstate check (sqlstate like 'WF___'),
    constraint ff_error_code_class check (
        class = case substr(sqlstate, 3, 1)
            when '0' then 'not_found'
            when '1' then 'validation'
            when '2' then 'contention'
            when '3' then 'conflict'
            when '4' then 'state'
            when '5' then 'corruption'
            when '6' then 'resource'
        end)
);
comment on table ff_error_code is
    'Every error the engine can raise: SQLSTATE, class, kind, whether a retry may help, what it means, what to do.';
comment on column ff_error_code.sqlstate is
    'The SQLSTATE of the error: WF and three digits, the first of which is the class.';
comment on column ff_error_code.class is 'not_found, validation, contention, conflict, state, corruption or resource.';
comment on column ff_error_code.kind is
    'The name of the error, as HINT and DETAIL of a raised error and the exceptions of the Python package have '
    'it.';
comment on column ff_error_code.retryable is
    'Whether the same call may succeed later without a change of its arguments.';
comment on column ff_error_code.description is 'What happened, in one sentence.';
comment on column ff_error_code.hint is 'What the caller can do.';
