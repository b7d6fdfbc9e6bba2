-- Locks: the execution. Repeatable.
create or replace function ff_set_execution_tags(p_execution_id text, p_tags jsonb, out tags jsonb)
language plpgsql volatile security definer
as $$
declare
    e ff_exec;
begin
    perform ff__check_tags('p_tags', p_tags, true);
    e := ff__lock_execution(p_execution_id);
    tags := jsonb_strip_nulls(e.tags || p_tags);
    if (select count(*) from jsonb_object_keys(tags)) > 64 then
        perform ff__invalid('p_tags', 'makes more than 64 tags', jsonb_build_object('execution_id', p_execution_id));
    end if;
    if tags <> e.tags then
        update ff_execution c set tags = nullif(ff_set_execution_tags.tags, '{}'), last_mutation_at_ms = e.now_ms
         where c.execution_id = e.execution_id;
    end if;
end
$$;

comment on function ff_set_execution_tags(text, jsonb) is
$$Merges tags into those of an execution; a JSON null deletes a key. Allowed in every state. Returns all its tags.

Errors: invalid_input, invalid_execution_id, invalid_tag_key, execution_not_found$$;
-- grant: ff_producer, ff_operator, ff_admin
