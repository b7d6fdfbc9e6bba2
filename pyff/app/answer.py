"""What a run that goes on has to know, in one call: the signal that ended its wait, recorded as a step, and all steps.

The functions are the public ones. One after another they would be three round trips before the first line of the task.
"""

from typing import Final

from pyff._generated.results import ReadStepsRow
from pyff.statement import Statement, many

_ANSWER: Final = """with last as (
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
     where coalesce(w.name, l.waitpoint_key) is not null
), made as (
    select r.name, r.result, r.result_encoding, r.attempt_index, r.recorded_at_ms, '' as cursor
      from ended e
     cross join lateral ff_record_step(
               p_handle => %(handle)s::text, p_name => 'pyff:wait:' || e.wait,
               p_result => convert_to(e.signal::text, 'UTF8'), p_result_encoding => 'json') r
)
select m.name, m.result, m.result_encoding, m.attempt_index, m.recorded_at_ms, m.cursor from made m"""

ANSWER: Final[Statement[list[ReadStepsRow]]] = many(_ANSWER, ReadStepsRow)
"""Records what ended the wait `wait`: the last signal that counts, or an operator if there is none."""

ENTER: Final[Statement[list[ReadStepsRow]]] = many(
    _ANSWER
    + """
union all
select s.name, s.result, s.result_encoding, s.attempt_index, s.recorded_at_ms, s.cursor
  from ff_read_steps(p_execution_id => %(execution_id)s::text) s""",
    ReadStepsRow,
)
"""The same for the wait that ended last, if a signal ended it; and the steps recorded before, each with its cursor."""


__all__ = ["ANSWER", "ENTER"]
