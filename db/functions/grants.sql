-- Grants of functions and views. Always applied last. PUBLIC gets nothing, tables stay with their owner, ff__ helpers
-- are granted to no role; roles that may read may select from the views, ff_v_. Roles that do not exist in this cluster
-- are skipped. Grants are direct, not by membership, so that the owner of the schema needs no rights on the roles.
do $grants$
declare
    v_every text[] := '{ff_now_ms, ff_ping, ff_capabilities, ff_setting}';
    v_read text[] := '{ff_handle_encode, ff_handle_decode, ff_describe_execution, ff_read_execution_state,
        ff_read_execution_info, ff_read_execution_context, ff_read_current_attempt_index, ff_read_total_attempt_count,
        ff_get_execution_namespace, ff_get_execution_result, ff_list_attempts, ff_read_exec_core_fields,
        ff_list_executions, ff_list_children, ff_get_execution_tag, ff_list_lanes, ff_list_workers,
        ff_list_expired_leases, ff_get_budget_status, ff_read_budget_usage_and_limits,
        ff_stream_info, ff_read_stream, ff_tail_stream, ff_watch_stream, ff_read_summary, ff_read_events,
        ff_read_completions, ff_read_lease_events, ff_read_suspension_events, ff_read_signal_events,
        ff_read_operator_events, ff_read_worker_events, ff_read_flow_events, ff_event_cursor, ff_event_lag,
        ff_read_dependency_inputs, ff_evaluate_flow_eligibility, ff_describe_flow, ff_list_flows, ff_list_flow_members,
        ff_list_edge_groups, ff_list_edges, ff_describe_edge, ff_resolve_execution_flow_id, ff_get_flow_tag,
        ff_read_steps, ff_list_schedules, ff_describe_schedule, ff_preview_schedule,
        ff_read_quota_policy_limits}';
    v_produce text[] := '{ff_create_execution, ff_create_executions, ff_set_execution_tags, ff_set_execution_tag,
        ff_cancel_execution, ff_attach_budget, ff_detach_budget, ff_record_spend, ff_release_budget,
        ff_create_flow, ff_start_flow, ff_submit_flow, ff_add_execution_to_flow, ff_stage_dependency_edge,
        ff_apply_dependency_to_child, ff_add_dependency, ff_set_edge_group_policy, ff_set_flow_tag, ff_cancel_flow,
        ff_cancel_flow_header, ff_ack_cancel_member, ff_dispatch_completion, ff_project_flow_summary,
        ff_create_schedule, ff_pause_schedule, ff_resume_schedule, ff_delete_schedule,
        ff_check_admission, ff_release_admission, ff_attach_quota, ff_detach_quota}';
    v_work text[] := '{ff_claim, ff_claim_many, ff_claim_for_worker, ff_issue_claim_grant, ff_claim_execution,
        ff_claim_resumed_execution, ff_claim_from_resume_grant, ff_claim_from_grant, ff_issue_reclaim_grant,
        ff_issue_grant_and_claim,
        ff_report_usage, ff_record_spend, ff_release_budget,
        ff_reclaim_execution, ff_renew, ff_renew_lease, ff_progress, ff_update_progress, ff_complete,
        ff_complete_execution, ff_fail, ff_fail_execution, ff_delay, ff_delay_execution, ff_cancel, ff_register_worker,
        ff_heartbeat_worker, ff_mark_worker_dead, ff_complete_many, ff_renew_many, ff_append_frame, ff_suspend,
        ff_suspend_execution, ff_create_waitpoint, ff_close_waitpoint, ff_observe_signals, ff_wait_children,
        ff_wait_children_execution,
        ff_record_step, ff_tick, ff_run_maintenance,
        ff_check_admission, ff_release_admission}';
    v_signal text[] := '{ff_deliver_signal}';
    v_operate text[] := '{ff_check_invariants, ff_revoke_lease, ff_change_priority, ff_replay_execution,
        ff_complete_execution, ff_fail_execution, ff_delay_execution, ff_wait_children_execution,
        ff_create_budget, ff_update_budget, ff_reset_budget, ff_report_usage_admin, ff_sweep_budget_resets,
        ff_sweep_budget_breaches, ff_sweep_terminal_spend,
        ff_set_lane_state, ff_mark_lease_expired_if_due, ff_promote_delayed,
        ff_expire_execution, ff_list_suspended, ff_list_pending_waitpoints, ff_list_signals,
        ff_list_waitpoint_hmac_kids, ff_deliver_approval_signal, ff_resume_execution, ff_read_waitpoint_token,
        ff_expire_suspension, ff_dispatch_completions, ff_drain_sibling_cancels, ff_drain_cancel_backlog,
        ff_project_flows, ff_forget_steps, ff_fire_schedule, ff_fire_schedules,
        ff_sweep_expired_leases, ff_sweep_attempt_timeouts, ff_sweep_deadlines, ff_sweep_delayed,
        ff_sweep_suspensions, ff_sweep_waitpoints, ff_sweep_claim_grants, ff_sweep_workers, ff_sweep_expired, ff_tick,
        ff_run_maintenance,
        ff_create_quota_policy, ff_update_quota_policy, ff_block_execution_for_admission,
        ff_unblock_execution, ff_sweep_admissions}';
    v_admin text[] := '{ff_set_setting, ff_trim_retention, ff_seed_waitpoint_hmac_secret,
        ff_rotate_waitpoint_hmac_secret, ff_trim_streams, ff_trim_events, ff_set_event_family, ff_rebase_events,
        ff_set_reconciler}';
    v_routine record;
    v_view text;
    v_role text;
begin
    for v_role in select r.rolname from pg_roles r
                   where r.rolname in ('ff_reader', 'ff_producer', 'ff_worker', 'ff_signaler', 'ff_operator',
                                       'ff_admin')
    loop
        execute format('grant usage on schema %s to %I', '@extschema@', v_role);
        execute format('revoke all on schema %I from %I', current_schema(), v_role);
    end loop;
    execute format('revoke all on schema %I from public', current_schema());  -- the private one
    for v_routine in
        select p.oid::regprocedure as signature, p.proname::text as name
          from pg_proc p
         where p.pronamespace in ('@extschema@'::regnamespace, quote_ident(current_schema())::regnamespace)
           and p.proname like E'ff\\_%'
    loop
        execute format('revoke all on routine %s from public', v_routine.signature);
        foreach v_role in array '{ff_reader,ff_producer,ff_worker,ff_signaler,ff_operator,ff_admin}'::text[] loop
            continue when not exists (select from pg_roles r where r.rolname = v_role);
            execute format(
                case when v_routine.name = any (case v_role
                              when 'ff_reader' then v_every || v_read
                              when 'ff_producer' then v_every || v_read || v_produce
                              when 'ff_worker' then v_every || v_read || v_work
                              when 'ff_signaler' then v_every || v_signal
                              when 'ff_operator' then v_every || v_read || v_produce || v_operate
                              else v_every || v_read || v_produce || v_work || v_signal || v_operate || v_admin end)
                     then 'grant execute on routine %s to %I'
                     else 'revoke all on routine %s from %I' end, v_routine.signature, v_role);
        end loop;
    end loop;
    for v_view in
        select c.oid::regclass::text from pg_class c
         where c.relnamespace = '@extschema@'::regnamespace and c.relname like E'ff\\_v\\_%' and c.relkind = 'v'
    loop
        execute format('revoke all on %s from public', v_view);
        foreach v_role in array '{ff_reader,ff_producer,ff_worker,ff_signaler,ff_operator,ff_admin}'::text[] loop
            continue when not exists (select from pg_roles r where r.rolname = v_role);
            execute format('revoke all on %s from %I', v_view, v_role);
            if v_role <> 'ff_signaler' then
                execute format('grant select on %s to %I', v_view, v_role);
            end if;
        end loop;
    end loop;
end
$grants$;
