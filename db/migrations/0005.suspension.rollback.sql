drop type ff_signal_row;
drop type ff_suspend_row;
drop type ff_seen_signal;
drop type ff_binding;
drop table ff_signal;
drop table ff_waitpoint;
drop table ff_suspension;
drop table ff_waitpoint_hmac;
delete from ff_setting where name in ('max_payload_bytes', 'max_name_chars', 'max_waitpoints_per_suspension',
                                      'max_condition_nodes', 'max_open_waitpoints');
