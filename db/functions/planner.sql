-- All settings of functions. CREATE OR REPLACE removes them, so this runs after every change of a function and skips
-- functions that have their settings. Entry points pin the search_path of this migration (pyff/migrate/sql/path.sql);
-- helpers inherit it. Each setting adds about a microsecond to every call: set only what the plans in
-- tests/catalogue/test_plans.py need.
do $planner$
declare
    v_settings jsonb;
    v_unknown text;
    v_routine record;
begin
    select jsonb_object_agg(f.name, g.settings) into v_settings
      from (values
            -- Look-ups by key, independent of statistics. One plan per session.
            ('{enable_seqscan=off, jit=off, plan_cache_mode=force_generic_plan}',
             '{ff_ack_cancel_member, ff_add_dependency, ff_add_execution_to_flow, ff_append_frame,
               ff_apply_dependency_to_child, ff_attach_quota, ff_block_execution_for_admission, ff_cancel,
               ff_cancel_execution, ff_cancel_flow, ff_cancel_flow_header, ff_change_priority, ff_check_admission,
               ff_claim_execution, ff_claim_from_grant, ff_claim_from_resume_grant, ff_claim_resumed_execution,
               ff_close_waitpoint, ff_complete, ff_complete_execution, ff_create_execution, ff_create_flow,
               ff_create_waitpoint, ff_delay, ff_delay_execution, ff_deliver_approval_signal, ff_deliver_signal,
               ff_detach_quota, ff_dispatch_completion, ff_dispatch_completions, ff_expire_execution,
               ff_expire_suspension,
               ff_fail, ff_fail_execution, ff_heartbeat_worker, ff_issue_claim_grant, ff_issue_grant_and_claim,
               ff_issue_reclaim_grant, ff_mark_lease_expired_if_due, ff_mark_worker_dead, ff_progress,
               ff_promote_delayed, ff_read_quota_policy_limits, ff_reclaim_execution, ff_record_spend,
               ff_record_step, ff_register_worker, ff_release_admission, ff_release_budget, ff_renew,
               ff_renew_lease, ff_replay_execution, ff_report_usage, ff_report_usage_admin, ff_reset_budget,
               ff_resume_execution, ff_revoke_lease, ff_set_edge_group_policy, ff_set_execution_tag,
               ff_set_execution_tags, ff_set_flow_tag, ff_stage_dependency_edge, ff_suspend, ff_suspend_execution,
               ff_sweep_budget_breaches, ff_sweep_terminal_spend, ff_tick,
               ff_unblock_execution, ff_update_progress, ff_update_quota_policy, ff_wait_children,
               ff_wait_children_execution}'),
            -- Look-ups whose best plan depends on the arguments: arrays, optional conditions.
            ('{enable_seqscan=off, jit=off}',
             '{ff_attach_budget, ff_create_budget, ff_create_executions, ff_create_quota_policy, ff_detach_budget,
               ff_event_lag, ff_forget_steps, ff_observe_signals, ff_read_stream, ff_start_flow, ff_submit_flow,
               ff_tail_stream, ff_trim_retention, ff_update_budget, ff_watch_stream}'),
            -- Lists with optional conditions: the best index depends on the arguments.
            ('{plan_cache_mode=force_custom_plan}',
             '{ff_list_edges, ff_list_executions, ff_list_flow_members, ff_list_flows, ff_list_suspended}'),
            -- The first rows of an index in its order: a bitmap scan or a sort would read all rows.
            ('{enable_seqscan=off, jit=off, plan_cache_mode=force_generic_plan, enable_bitmapscan=off,
               enable_sort=off}',
             '{ff_drain_cancel_backlog, ff_drain_sibling_cancels, ff_fire_schedules,
               ff_project_flows, ff_read_events, ff_sweep_attempt_timeouts, ff_sweep_budget_resets,
               ff_sweep_claim_grants, ff_sweep_deadlines, ff_sweep_delayed, ff_sweep_expired, ff_sweep_expired_leases,
               ff_sweep_suspensions, ff_sweep_waitpoints, ff_sweep_workers, ff_trim_streams}'),
            -- Batches: one look-up for each row of the batch.
            ('{enable_seqscan=off, jit=off, plan_cache_mode=force_generic_plan, enable_bitmapscan=off,
               enable_hashjoin=off, enable_mergejoin=off}',
             '{ff_claim, ff_claim_for_worker, ff_claim_many, ff_complete_many, ff_renew_many}'),
            -- A custom plan contains the values, here secrets, and auto_explain prints plans.
            ('{plan_cache_mode=force_generic_plan}',
             '{ff_read_waitpoint_token, ff_rotate_waitpoint_hmac_secret, ff_seed_waitpoint_hmac_secret}'),
            -- Reads whole tables, for interactive use.
            ('{jit=off, work_mem=64MB}',
             '{ff_check_invariants}'),
            ('{enable_bitmapscan=off, enable_sort=off}',
             '{ff__notify_due_families}'),
            ('{enable_seqscan=off, jit=off, enable_bitmapscan=off, enable_sort=off}',
             '{ff_trim_events}'),
            ('{enable_seqscan=off, jit=off, plan_cache_mode=force_generic_plan, enable_sort=off}',
             '{ff_sweep_admissions}')
           ) g(settings, functions)
     cross join lateral unnest(g.functions::text[]) f(name);

    select string_agg(s.name, ', ' order by s.name) into v_unknown
      from jsonb_object_keys(v_settings) s(name)
     where not exists (select from pg_proc p
                        where p.proname = s.name
                          and p.pronamespace in ('@extschema@'::regnamespace,
                                                 quote_ident(current_schema())::regnamespace));
    if v_unknown is not null then
        raise exception 'planner.sql has settings for functions that do not exist: %', v_unknown;
    end if;

    for v_routine in
        select p.oid::regprocedure as signature, w.settings
          from pg_proc p
         cross join lateral (select array_remove(
                   case when p.prosecdef then 'search_path=' || current_setting('search_path') end
                   || (v_settings ->> p.proname)::text[], null)) w(settings)
         where p.proname like E'ff\\_%'
           and p.pronamespace in ('@extschema@'::regnamespace, quote_ident(current_schema())::regnamespace)
           and not (coalesce(p.proconfig, '{}') @> w.settings and w.settings @> coalesce(p.proconfig, '{}'))
    loop
        execute format('alter routine %s reset all %s', v_routine.signature,
                       (select string_agg(case when s.setting like 'search_path=%' then 'set search_path from current'
                                               else format('set %I = %L', split_part(s.setting, '=', 1),
                                                           split_part(s.setting, '=', 2)) end, ' ')
                          from unnest(v_routine.settings) s(setting)));
    end loop;
end
$planner$;
