-- Raises invalid_input for one argument.
create or replace function ff__invalid(p_arg text, p_reason text, p_detail jsonb default '{}') returns void
language plpgsql stable
as $$
begin
    perform ff__raise('invalid_input', format('%s %s', p_arg, p_reason),
                      jsonb_build_object('arg', p_arg, 'reason', p_reason) || p_detail);
end
$$;

-- Raises the engine error of this kind: SQLSTATE and default hint from the registry, DETAIL one json object. All engine
-- errors are raised here. Never returns.
create or replace function ff__raise(
    p_kind text,
    p_message text,
    p_detail jsonb default '{}',
    p_hint text default null
) returns void
language plpgsql stable
as $$
declare
    v_sqlstate text;
    v_hint text;
begin
    select c.sqlstate, c.hint into v_sqlstate, v_hint from ff_error_code c where c.kind = p_kind;
    if not found then
        raise exception using
            errcode = 'WF500',
            message = format('error kind %s is not in ff_error_code', p_kind),
            detail = jsonb_build_object('kind', 'corrupt_state', 'unregistered', p_kind)::text,
            hint = 'Run pyff migrate.';
    end if;
    raise exception using
        errcode = v_sqlstate,
        message = p_message,
        detail = (jsonb_build_object('kind', p_kind) || p_detail)::text,
        hint = coalesce(p_hint, v_hint);
end
$$;

-- Raises execution_already_terminal with the execution's state.
create or replace function ff__raise_already_terminal(e ff_exec) returns void
language plpgsql stable
as $$
begin
    perform ff__raise('execution_already_terminal',
                      format('execution %s is %s', ff__wire_id(e.partition_key, e.execution_id), e.public_state),
                      jsonb_build_object('execution_id', ff__wire_id(e.partition_key, e.execution_id),
                                         'public_state', e.public_state));
end
$$;

-- Raises execution_not_found.
create or replace function ff__raise_not_found(p_execution_id text) returns void
language plpgsql stable
as $$
begin
    perform ff__raise('execution_not_found', format('no execution %s', p_execution_id),
                      jsonb_build_object('execution_id', p_execution_id));
end
$$;

-- Raises waitpoint_conflict.
create or replace function ff__raise_waitpoint_conflict(e ff_exec, p_waitpoint_id uuid) returns void
language plpgsql stable
as $$
begin
    perform ff__raise('waitpoint_conflict', format('there is a waitpoint %s already', p_waitpoint_id),
                      jsonb_build_object('execution_id', ff__wire_id(e.partition_key, e.execution_id),
                                         'waitpoint_id', p_waitpoint_id));
end
$$;

-- Raises waitpoint_limit_exceeded.
create or replace function ff__raise_waitpoint_limit(e ff_exec) returns void
language plpgsql stable
as $$
begin
    perform ff__raise('waitpoint_limit_exceeded',
                      format('execution %s has as many open waitpoints as it may',
                             ff__wire_id(e.partition_key, e.execution_id)),
                      jsonb_build_object('execution_id', ff__wire_id(e.partition_key, e.execution_id),
                                         'limit', ff__engine_limit('max_open_waitpoints')));
end
$$;

-- Raises quota_policy_not_found.
create or replace function ff__raise_no_quota_policy(p_quota_policy_id text) returns void
language plpgsql stable
as $$
begin
    perform ff__raise('quota_policy_not_found', format('no quota policy %s', p_quota_policy_id),
                      jsonb_build_object('quota_policy_id', p_quota_policy_id));
end
$$;

-- Rejects a change to the graph of an ended flow. Errors: flow_already_terminal.
create or replace function ff__raise_flow_over(f ff_flow_core) returns void
language plpgsql stable
as $$
begin
    perform ff__raise('flow_already_terminal', format('flow %s is %s', f.flow_id, f.public_flow_state),
                      jsonb_build_object('flow_id', f.flow_id, 'public_flow_state', f.public_flow_state));
end
$$;
