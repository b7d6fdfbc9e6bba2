-- Checks a list of capability tokens of an execution or a worker; returns it sorted and distinct.
-- Errors: invalid_input (NULL), invalid_capabilities (DETAIL.reason).
create or replace function ff__check_capabilities(p_arg text, p_tokens text[]) returns text[]
language plpgsql stable
as $$
declare
    v_reason text;
    v_tokens text[];
begin
    if p_tokens is null then
        perform ff__invalid(p_arg, 'must not be null');
    elsif cardinality(p_tokens) = 0 then
        return '{}'::text[];
    end if;
    select case
               when bool_or(t.token is null) then 'null_token'
               when bool_or(t.token = '') then 'empty_token'
               when bool_or(t.token like '%,%') then 'comma'
               when bool_or(t.token ~ E'[\\x01-\\x20\\x7f]') then 'space_or_control_character'
           end,
           array_agg(distinct t.token collate "C" order by t.token collate "C")
      into v_reason, v_tokens
      from unnest(p_tokens) t(token);
    if v_reason is null and cardinality(v_tokens) > 256 then
        v_reason := 'too_many_tokens';
    elsif v_reason is null and octet_length(array_to_string(v_tokens, ',')) > 4096 then
        v_reason := 'too_long';
    end if;
    if v_reason is not null then
        perform ff__raise('invalid_capabilities', format('%s is not a list of capabilities: %s', p_arg, v_reason),
                          jsonb_build_object('arg', p_arg, 'reason', v_reason));
    end if;
    return v_tokens;
end
$$;

-- A lane id: 1 to 64 bytes of printable ASCII. Errors: invalid_input (NULL), invalid_lane_id.
create or replace function ff__check_lane_id(p_lane_id text) returns void
language plpgsql stable
as $$
begin
    if p_lane_id is null then
        perform ff__invalid('p_lane_id', 'must not be null');
    elsif octet_length(p_lane_id) not between 1 and 64 or p_lane_id ~ E'[^\\x20-\\x7e]' then
        perform ff__raise('invalid_lane_id', 'the lane id is not 1 to 64 bytes of printable ASCII',
                          jsonb_build_object('lane_id', left(p_lane_id, 64)));
    end if;
end
$$;

-- A page size: 0 to p_max. Never clamped, so that a short page means the end. Errors: invalid_input.
create or replace function ff__check_limit(p_value int, p_max int default 1000) returns void
language plpgsql stable
as $$
begin
    if p_value is null then
        perform ff__invalid('p_limit', 'must not be null');
    elsif p_value not between 0 and p_max then
        perform ff__invalid('p_limit', format('must be between 0 and %s', p_max), jsonb_build_object('value', p_value));
    end if;
end
$$;

-- Checks that stored bytes do not exceed the limit in a setting. p_what names them in the message. NULL passes. An
-- execution's payload or result of up to 1024 bytes needs no check: that is the minimum of its setting.
-- Errors: payload_too_large (DETAIL.size, DETAIL.limit).
create or replace function ff__check_size(p_setting text, p_what text, p_bytes bytea, p_detail jsonb default '{}')
returns void
language plpgsql stable
as $$
declare
    v_limit int := ff__engine_limit(p_setting);
begin
    if octet_length(p_bytes) > v_limit then
        perform ff__raise('payload_too_large',
                          format('the %s has %s bytes, %s are allowed', p_what, octet_length(p_bytes), v_limit),
                          jsonb_build_object('size', octet_length(p_bytes), 'limit', v_limit) || p_detail,
                          format('Store large data elsewhere and pass a reference, or raise the setting %s.',
                                 p_setting));
    end if;
end
$$;

-- A tag key: area.name in lower case, at most 128 bytes. Errors: invalid_input (NULL), invalid_tag_key.
create or replace function ff__check_tag_key(p_key text) returns void
language plpgsql stable
as $$
begin
    if p_key is null then
        perform ff__invalid('p_key', 'must not be null');
    elsif octet_length(p_key) > 128 or p_key !~ E'^[a-z][a-z0-9_]*\\.[a-z0-9_][a-z0-9_.]*$' then
        perform ff__raise('invalid_tag_key', 'the tag key does not have the form area.name',
                          jsonb_build_object('key', left(p_key, 128)));
    end if;
end
$$;

-- Checks a set of tags: an object of at most 64 string values, keys of the form area.name. With p_allow_null a JSON
-- null is accepted too (it deletes the key).
-- Errors: invalid_input, invalid_tag_key.
create or replace function ff__check_tags(p_arg text, p_tags jsonb, p_allow_null boolean default false) returns void
language plpgsql stable
as $$
declare
    v_key text;
    v_value jsonb;
    v_count int := 0;
begin
    if p_tags is null then
        perform ff__invalid(p_arg, 'must not be null');
    elsif jsonb_typeof(p_tags) <> 'object' then
        perform ff__invalid(p_arg, 'must be a json object');
    end if;
    for v_key, v_value in select t.key, t.value from jsonb_each(p_tags) t loop
        perform ff__check_tag_key(v_key);
        if jsonb_typeof(v_value) = 'null' and p_allow_null then
            continue;
        elsif jsonb_typeof(v_value) <> 'string' then
            perform ff__invalid(p_arg, 'must have string values only', jsonb_build_object('key', v_key));
        elsif octet_length(v_value #>> '{}') > 4096 then
            perform ff__invalid(p_arg, 'has a value longer than 4096 bytes', jsonb_build_object('key', v_key));
        end if;
        v_count := v_count + 1;
    end loop;
    if v_count > 64 then
        perform ff__invalid(p_arg, 'has more than 64 tags');
    end if;
end
$$;

-- A text argument: present, between p_min and p_max bytes, no control characters. Errors: invalid_input.
create or replace function ff__check_text(p_arg text, p_value text, p_min int, p_max int) returns void
language plpgsql stable
as $$
begin
    if p_value is null then
        perform ff__invalid(p_arg, 'must not be null');
    elsif octet_length(p_value) not between p_min and p_max then
        perform ff__invalid(p_arg, format('must have %s to %s bytes', p_min, p_max),
                            jsonb_build_object('bytes', octet_length(p_value)));
    elsif p_value ~ E'[\\x01-\\x1f\\x7f]' then
        perform ff__invalid(p_arg, 'must not contain control characters');
    end if;
end
$$;

-- Checks a time, or with p_from_ms a duration added to that time: at least p_min, at most ff__max_time_ms. NULL passes.
-- Errors: invalid_input.
create or replace function ff__check_time(
    p_arg text, p_value bigint, p_min bigint default 0, p_from_ms bigint default 0
) returns void
language plpgsql stable
as $$
begin
    if p_value not between p_min and ff__max_time_ms(p_from_ms) then
        perform ff__invalid(p_arg, format('must be between %s and %s', p_min, ff__max_time_ms(p_from_ms)),
                            jsonb_build_object('value', p_value));
    end if;
end
$$;

-- A time to live in milliseconds: 1 ms to 24 h. Errors: invalid_input.
create or replace function ff__check_ttl(p_arg text, p_value bigint) returns void
language plpgsql stable
as $$
begin
    if p_value is null then
        perform ff__invalid(p_arg, 'must not be null');
    elsif p_value not between 1 and 86400000 then
        perform ff__invalid(p_arg, 'must be between 1 and 86400000', jsonb_build_object('value', p_value));
    end if;
end
$$;

-- Checks the arguments common to all claims. Errors: invalid_input.
create or replace function ff__check_claimant(
    p_worker_id text, p_worker_instance_id text, p_ttl_arg text, p_ttl_ms bigint, p_namespace text default null
) returns void
language plpgsql stable
as $$
begin
    perform ff__check_text('p_worker_id', p_worker_id, 1, 256);
    perform ff__check_text('p_worker_instance_id', p_worker_instance_id, 1, 256);
    perform ff__check_ttl(p_ttl_arg, p_ttl_ms);
    if p_namespace is not null then
        perform ff__check_text('p_namespace', p_namespace, 1, 64);
    end if;
end
$$;

-- Whether a text is valid as signal name or waitpoint key: 1 to p_max characters, no control characters.
create or replace function ff__is_name(p_text text, p_max int) returns boolean
language plpgsql immutable parallel safe
as $$
begin
    return p_text <> '' and length(p_text) <= p_max and p_text !~ E'[\\x01-\\x1f\\x7f]';
end
$$;

-- Checks that a limit is attached to either an execution or a flow. Errors: invalid_input.
create or replace function ff__check_target(p_execution_id text, p_flow_id uuid) returns void
language plpgsql stable
as $$
begin
    if num_nonnulls(p_execution_id, p_flow_id) <> 1 then
        perform ff__invalid('p_execution_id', 'or p_flow_id must be given, and not both');
    end if;
end
$$;

-- The policy of an edge group. Errors: invalid_input.
create or replace function ff__check_group_policy(p_policy text, p_k int, p_on_satisfied text) returns void
language plpgsql stable
as $$
begin
    if p_policy is null or p_policy not in ('all_of', 'any_of', 'quorum') then
        perform ff__invalid('p_policy', 'must be all_of, any_of or quorum');
    elsif p_policy = 'quorum' and (p_k is null or p_k < 1) then
        perform ff__invalid('p_k', 'must be 1 or more for a quorum', jsonb_build_object('value', p_k));
    elsif p_policy <> 'quorum' and p_k is not null then
        perform ff__invalid('p_k', 'is for a quorum only', jsonb_build_object('value', p_k));
    elsif p_on_satisfied is null or p_on_satisfied not in ('cancel_remaining', 'let_run') then
        perform ff__invalid('p_on_satisfied', 'must be cancel_remaining or let_run');
    end if;
end
$$;

-- Checks that a new member of a flow is in the flow's partition. Pure arithmetic. Errors: partition_mismatch.
create or replace function ff__check_partition(p_flow_id uuid, p_execution_id uuid) returns void
language plpgsql stable
as $$
begin
    if ff__partition(p_flow_id) <> ff__partition(p_execution_id) then
        perform ff__raise('partition_mismatch',
                          format('the flow lies in partition %s, the execution in %s', ff__partition(p_flow_id),
                                 ff__partition(p_execution_id)),
                          jsonb_build_object('flow_id', p_flow_id, 'flow_partition', ff__partition(p_flow_id),
                                             'execution_id',
                                             ff__wire_id(ff__partition(p_execution_id), p_execution_id)));
    end if;
end
$$;
