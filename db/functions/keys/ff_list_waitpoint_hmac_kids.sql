create or replace function ff_list_waitpoint_hmac_kids()
returns table (
    kid text, active boolean, installed_at_ms bigint, expires_at_ms bigint, verifying boolean, open_waitpoints bigint
)
language sql stable security definer
as $$
    select h.kid, h.active, h.installed_at_ms, h.expires_at_ms,
           h.secret is not null and (h.active or h.expires_at_ms > ff__now_ms()), coalesce(w.open_waitpoints, 0)
      from ff_waitpoint_hmac h
      left join (select x.token_kid, count(*) as open_waitpoints from ff_waitpoint x
                  where x.state in ('pending', 'active') group by x.token_kid) w on w.token_kid = h.kid
     order by h.installed_at_ms, h.kid
$$;

comment on function ff_list_waitpoint_hmac_kids() is
$$The keys that sign waitpoint tokens, oldest first: whether tokens of each are accepted, and how many open waitpoints
have one. Does not return secrets.

Nullable: expires_at_ms$$;
-- grant: ff_operator, ff_admin
