-- Whether a text can be the name of a signal or the key of a waitpoint: 1 to p_max characters, none of them a control
-- character.
create or replace function ff__is_name(p_text text, p_max int) returns boolean
language plpgsql immutable parallel safe
as $$
begin
    return p_text <> '' and length(p_text) <= p_max and p_text !~ E'[\\x01-\\x1f\\x7f]';
end
$$;
