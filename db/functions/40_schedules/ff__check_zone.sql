-- A time zone by its name in the server's list (abbreviations and POSIX rules have no daylight saving that lasts). CET,
-- EST and the like are names too, but AT TIME ZONE takes them for abbreviations, and the session says which.
-- Errors: invalid_input (NULL), invalid_schedule.
create or replace function ff__check_zone(p_zone text) returns void
language plpgsql stable
as $$
begin
    perform ff__check_text('p_time_zone', p_zone, 1, 64);
    -- The lists are read from files: not for the usual answers, a zone that is in use, or what cannot be a name.
    if p_zone in ('UTC', 'GMT') or exists (select from ff_schedule s where s.time_zone = p_zone) then
        return;
    elsif p_zone !~ '^[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+){0,2}$'
          or not exists (select from pg_timezone_names n where n.name = p_zone)
    then
        perform ff__invalid_schedule('time_zone', p_zone, 'is not the name of a time zone, such as Europe/Berlin');
    elsif exists (select from pg_timezone_abbrevs a where a.abbrev = upper(p_zone)) then
        perform ff__invalid_schedule('time_zone', p_zone,
                                     'is an abbreviation of one offset: name the place, such as Europe/Berlin');
    end if;
end
$$;
