drop table ff_error_code;
drop table ff_setting;
drop table ff_schema_state;
drop table ff_schema_version;
