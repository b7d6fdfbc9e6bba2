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

create table ff_schema_state (
    id               boolean not null default true primary key check (id),
    functions_sha256 text    not null,
    pyff_version     text    not null,
    applied_at_ms    bigint  not null
);
comment on table ff_schema_state is
    'One row: the checksum of the installed functions and the pyff release that installed them.';

create table ff_setting (
    name        text not null primary key,
    value       text not null,
    description text not null
);
comment on table ff_setting is
    'Settings of the engine. Read with ff_setting(name), changed with ff_set_setting(name, value).';

insert into ff_setting (name, value, description) values
    ('notify', 'on',
     'on | off: whether the engine sends NOTIFY at all; polling works either way'),
    ('max_execution_bytes', '16777216',
     'the largest payload or result of an execution, in bytes: 1024 to 536870912'),
    ('retention_ms', '604800000',
     'how long executions are kept that ended completed or skipped and whose policy has no retention_ms, in '
     'milliseconds'),
    ('retention_failed_ms', '2592000000',
     'the same for those that ended failed, cancelled or expired');

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
