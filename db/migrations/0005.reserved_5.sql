-- Built on another branch; this file keeps the numbers in a row until both meet.
do $$ begin end $$;
