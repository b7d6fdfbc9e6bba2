drop table ff_child_work;
drop table ff_child;
