"""Do open waitpoints depend on keys that no longer verify, or soon will not?"""

from collections.abc import Iterator

from pyff.doctor.patient import Finding, Patient, lasted, run_sql

_TOKENS = """select x.wire_id, x.waitpoint_id, t.waitpoint_token
 from (select '{fp:' || e.partition_key || '}:' || e.execution_id as wire_id, w.waitpoint_id from %(s)s.ff_waitpoint w
 join %(s)s.ff_exec_core e on e.execution_id = w.execution_id
 where w.state in ('pending', 'active') and w.token_kid = '%(kid)s') x,
 lateral ff_read_waitpoint_token(x.wire_id, x.waitpoint_id) t"""


def check(patient: Patient) -> Iterator[Finding]:
    if not patient.installed():
        return
    now = patient.now_ms()
    found = patient.rows("select * from ff_list_waitpoint_hmac_kids()")
    if found and not any(row["active"] for row in found):
        yield Finding(
            "there is no active key", "no execution can suspend for signals", ("pyff keys rotate key-1",)
        )
    for row in found:
        if row["active"] or not row["open_waitpoints"]:
            continue
        tokens = " ".join(_TOKENS.split()) % {"s": patient.private(), "kid": row["kid"]}
        if not row["verifying"]:
            yield Finding(
                f"the key {row['kid']} has expired, but {row['open_waitpoints']} open waitpoints were signed with it",
                "whoever holds their tokens is refused with token_expired, and the work waits for ever",
                (
                    run_sql(tokens, "fresh tokens, to be handed out"),
                    "pyff approve EXECUTION  # or decide as an operator",
                ),
            )
        elif row["expires_at_ms"] - now < patient.thresholds.keys_soon_ms:
            yield Finding(
                f"the key {row['kid']} expires in {lasted(row['expires_at_ms'] - now)}; {row['open_waitpoints']} open "
                "waitpoints were signed with it",
                "their tokens will be refused then",
                (run_sql(tokens, "fresh tokens, once it has expired"),),
            )
