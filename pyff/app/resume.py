"""Loads the state of a resumed run in one call: the signal that ended its wait, recorded as a step, and all steps.

The statement calls the public functions. Separate calls would cost three round trips before the task starts.
"""

from typing import Final

from pyff._generated.results import ReadStepsRow
from pyff.statement import Statement, many

RESUME: Final[Statement[list[ReadStepsRow]]] = many(
    """with known as materialized (
    select s.name, s.result, s.result_encoding, s.attempt_index, s.recorded_at_ms, s.cursor
      from ff_read_steps(p_execution_id => %(execution_id)s::text) s
), last as (
    select g.*
      from ff_observe_signals(
               p_handle => %(handle)s::text, p_suspension_id => %(suspension_id)s::uuid, p_matched_only => true
           ) with ordinality g
     order by g.ordinality desc limit 1
), ended as materialized (
    select coalesce(w.name, l.waitpoint_key) as wait,
           case when l.signal_id is null then json_build_object('name', 'resumed', 'source_type', 'operator')
                when l.source_type = 'engine' and l.signal_name = 'timeout'
                then json_build_object('name', l.signal_name, 'source_type', l.source_type)
                else json_build_object('name', l.signal_name, 'payload', encode(l.payload, 'hex'),
                                       'source', l.source_identity, 'source_type', l.source_type)
           end as signal
      from (select %(wait)s::text) w(name) left join last l on true
     where w.name is not null
        or l.waitpoint_key is not null
           and not exists (select from known k where k.name = 'pyff:wait:' || l.waitpoint_key)
)
select r.name, r.result, r.result_encoding, r.attempt_index, r.recorded_at_ms, '' as cursor
  from ended e
 cross join lateral ff_record_step(
           p_handle => %(handle)s::text, p_name => 'pyff:wait:' || e.wait,
           p_result => convert_to(e.signal::text, 'UTF8'), p_result_encoding => 'json') r
union all
select k.name, k.result, k.result_encoding, k.attempt_index, k.recorded_at_ms, k.cursor from known k""",
    ReadStepsRow,
)
"""Records what ended a wait: the last matching signal, or an operator if there is none. Without a name: the most recent
wait, if a signal ended it and no earlier run recorded it. Returns that row, which has no cursor, and the steps recorded
before."""


__all__ = ["RESUME"]
