create or replace function ff_capabilities() returns table (capability text, supported boolean, note text)
language sql stable security definer
as $$
    select g.capability, p.found,
           case when p.found then g.function_name else format('%s is not in this release', g.function_name) end
      from (values
            ('submission', 'ff_create_execution'), ('batch_submission', 'ff_create_executions'),
            ('lanes', 'ff_set_lane_state'), ('claiming', 'ff_claim'), ('batch_claiming', 'ff_claim_many'),
            ('grants', 'ff_issue_claim_grant'), ('reclaim', 'ff_reclaim_execution'), ('lease_renewal', 'ff_renew'),
            ('completion', 'ff_complete'), ('retries', 'ff_fail'), ('worker_delay', 'ff_delay'),
            ('progress', 'ff_progress'), ('cancellation', 'ff_cancel_execution'),
            ('lease_revocation', 'ff_revoke_lease'),
            ('replay', 'ff_replay_execution'), ('timers', 'ff_expire_execution'), ('retention', 'ff_trim_retention'),
            ('reads', 'ff_describe_execution'), ('tags', 'ff_set_execution_tags'), ('workers', 'ff_register_worker'),
            ('signed_waitpoints', 'ff_seed_waitpoint_hmac_secret'), ('suspension', 'ff_suspend'),
            ('signals', 'ff_deliver_signal'), ('streams', 'ff_append_frame'), ('events', 'ff_read_events'),
            ('flows', 'ff_create_flow'), ('flow_cancellation', 'ff_cancel_flow'),
            ('steps', 'ff_record_step'), ('schedules', 'ff_create_schedule'),
            ('admission', 'ff_check_admission'), ('budgets', 'ff_report_usage'), ('maintenance', 'ff_tick')
           ) g(capability, function_name)
     cross join lateral (select exists (select from pg_proc f
                                         where f.proname = g.function_name
                                           and f.pronamespace = '@extschema@'::regnamespace)) p(found)
     order by g.capability
$$;

comment on function ff_capabilities() is
$$The capabilities of this installation: one row per group of operations. note: the first function of the group.$$;
-- grant: ff_reader, ff_producer, ff_worker, ff_signaler, ff_operator, ff_admin
