-- Who may call what. Always applied last. PUBLIC gets nothing, tables stay with their owner, ff__ helpers are granted to
-- nobody. A role that does not exist in this cluster is passed over. Grants are direct, not by membership, so that the
-- owner of the schema needs no rights on the roles.
do $grants$
declare
    v_every text[] := '{ff_now_ms,ff_ping,ff_capabilities,ff_setting}';
    v_read text[] := '{ff_handle_encode,ff_handle_decode}';
    v_produce text[] := '{ff_create_execution}';
    v_work text[] := '{ff_claim,ff_renew,ff_renew_lease,ff_complete,ff_complete_execution}';
    v_operate text[] := '{ff_check_invariants,ff_cancel_execution,ff_revoke_lease,ff_change_priority,ff_replay_execution,ff_set_lane_state,ff_mark_lease_expired_if_due,ff_promote_delayed,ff_expire_execution}';
    v_admin text[] := '{ff_set_setting}';
    v_routine record;
    v_role text;
begin
    for v_routine in
        select p.oid::regprocedure as signature, p.proname::text as name
          from pg_proc p
         where p.pronamespace = quote_ident(current_schema())::regnamespace and p.proname like 'ff\_%'
    loop
        execute format('revoke all on routine %s from public', v_routine.signature);
        foreach v_role in array '{ff_reader,ff_producer,ff_worker,ff_signaler,ff_operator,ff_admin}'::text[] loop
            continue when not exists (select from pg_roles r where r.rolname = v_role);
            execute format(
                case when v_routine.name = any (case v_role
                              when 'ff_reader' then v_every || v_read
                              when 'ff_producer' then v_every || v_read || v_produce
                              when 'ff_worker' then v_every || v_read || v_work
                              when 'ff_signaler' then v_every
                              when 'ff_operator' then v_every || v_read || v_produce || v_operate
                              else v_every || v_read || v_produce || v_work || v_operate || v_admin end)
                     then 'grant execute on routine %s to %I'
                     else 'revoke all on routine %s from %I' end, v_routine.signature, v_role);
        end loop;
    end loop;
end
$grants$;
