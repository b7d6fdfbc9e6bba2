drop table ff_event;
drop table ff_event_generation;
drop table ff_event_family;
