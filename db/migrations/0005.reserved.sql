-- Keeps the number free for the tables of suspension.

set local lock_timeout = '10s';
