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
