drop table ff_step;
delete from ff_setting where name in ('max_step_result_bytes', 'max_steps_per_execution');
