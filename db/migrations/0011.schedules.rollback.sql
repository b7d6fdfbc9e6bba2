delete from ff_reconciler where name = 'fire_schedules';
drop table ff_schedule;
drop type ff_cron;
