-- Takes no lock. Finds the holder in pg_locks, visible to all roles: each transaction with an id holds a lock on that
-- id.
create or replace function ff_event_lag(
    p_family text default null,
    out horizon bigint,
    out newest_ord bigint,
    out held_back bigint,
    out oldest_held_ms bigint,
    out holder_pid int,
    out holder_database text
)
language plpgsql stable security definer
as $$
declare
    v_xid xid := pg_snapshot_xmin(pg_current_snapshot())::xid;
    v_now bigint := ff__now_ms();
begin
    if p_family is not null then
        perform ff__check_family(p_family);
    end if;
    horizon := ff__event_horizon();
    select max(n.ord), sum(h.held), v_now - min(h.oldest_ms) into newest_ord, held_back, oldest_held_ms
      from ff_event_generation g
     cross join ff_event_family f
     cross join lateral (values (f.family), (case when f.family = 'lease' then 'completion' end)) s(family)
      left join lateral (select x.ord from ff_event_log x
                          where x.family = s.family and x.gen = g.gen
                            and (s.family = f.family or x.lease_type is not null)
                          order by x.ord desc, x.event_id desc limit 1) n on true
     cross join lateral (select coalesce(sum(coalesce(x.size, 1)), 0) as held, min(x.occurred_at_ms) as oldest_ms
                           from ff_event_log x
                          where x.family = s.family and x.gen = g.gen and x.ord >= horizon
                            and (s.family = f.family or x.lease_type is not null)) h
     where g.id and (p_family is null or f.family = p_family);
    select l.pid, d.datname into holder_pid, holder_database
      from pg_locks l
      left join pg_stat_activity a on a.pid = l.pid
      left join pg_prepared_xacts p on p.transaction = l.transactionid
      left join pg_database d on d.datname = coalesce(a.datname, p.database)
     where l.locktype = 'transactionid' and l.transactionid = v_xid and l.mode = 'ExclusiveLock' and l.granted limit 1;
end
$$;

comment on function ff_event_lag(text) is
$$Shows why events have not been delivered yet. horizon: readers see events with a smaller ord; newest_ord: the greatest
ord; held_back: number of committed events at or above the horizon; oldest_held_ms: age of the oldest of them;
holder_pid, holder_database: the session whose write transaction holds the horizon (pid NULL with a database: a prepared
transaction). p_family NULL: all families.

Nullable: newest_ord, oldest_held_ms, holder_pid, holder_database
Errors: invalid_input$$;
-- grant: ff_reader, ff_producer, ff_worker, ff_operator, ff_admin
