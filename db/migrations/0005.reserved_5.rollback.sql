-- Nothing.
do $$ begin end $$;
