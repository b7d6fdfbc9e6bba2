-- Locks: the id (waits for a concurrent call with the same one). Repeatable with the same kind and namespace.
create or replace function ff_create_flow(
    p_flow_id uuid default null,
    p_flow_kind text default 'dag',
    p_namespace text default 'default',
    p_hold boolean default false,
    p_tags jsonb default '{}',
    out outcome text,
    out flow_id uuid,
    out public_flow_state text,
    out graph_revision bigint
)
language plpgsql volatile security definer
as $$
declare
    f ff_flow_core;
begin
    perform ff__check_flow(p_flow_kind, p_namespace, p_tags);
    if p_hold is null then
        perform ff__invalid('p_hold', 'must not be null');
    end if;
    f := ff__insert_flow(coalesce(p_flow_id, ff__mint_id(ff__now_ms())), p_flow_kind, p_namespace,
                         case when p_hold then 'building' else 'open' end, p_tags);
    outcome := 'created';
    if f.flow_id is null then
        outcome := 'already_satisfied';
        select x.* into f from ff_flow_core x where x.flow_id = p_flow_id;
        if (f.flow_kind, f.namespace) is distinct from (p_flow_kind, p_namespace::text) then
            perform ff__raise_flow_conflict(p_flow_id);
        end if;
    end if;
    flow_id := f.flow_id;
    public_flow_state := f.public_flow_state;
    graph_revision := f.graph_revision;
end
$$;

comment on function ff_create_flow(uuid, text, text, boolean, jsonb) is
$$Creates an empty flow: a graph of executions that wait for each other. p_hold: until ff_start_flow, members cannot be
claimed and the flow cannot end, so the whole graph can be built first.

Outcomes: outcome = created | already_satisfied
Outcomes: public_flow_state = building | open | completed | failed | cancelled
Errors: invalid_input, invalid_tag_key, flow_conflict$$;
-- grant: ff_producer, ff_operator, ff_admin
