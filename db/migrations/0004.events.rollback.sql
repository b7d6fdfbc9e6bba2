drop view ff_event;
drop table ff_event_log;
drop table ff_event_generation;
drop table ff_event_family;
