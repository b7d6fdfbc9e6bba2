"""Do open waitpoints depend on keys that have expired, or expire soon?"""

from collections.abc import Iterator

from pyff.doctor.context import CheckContext, Finding, duration, run_sql

_TOKENS = """select x.wire_id, x.waitpoint_id, t.waitpoint_token
 from (select '{fp:' || e.partition_key || '}:' || e.execution_id as wire_id, w.waitpoint_id from %(s)s.ff_waitpoint w
 join %(s)s.ff_exec_core e on e.execution_id = w.execution_id
 where w.state in ('pending', 'active') and w.token_kid = '%(kid)s') x,
 lateral ff_read_waitpoint_token(x.wire_id, x.waitpoint_id) t"""


def check(context: CheckContext) -> Iterator[Finding]:
    if not context.installed():
        return
    now = context.now_ms()
    found = context.rows("select * from ff_list_waitpoint_hmac_kids()")
    if found and not any(row["active"] for row in found):
        yield Finding("no key is active", "no execution can suspend for signals", ("pyff keys rotate key-1",))
    for row in found:
        if row["active"] or not row["open_waitpoints"]:
            continue
        tokens = " ".join(_TOKENS.split()) % {"s": context.private(), "kid": row["kid"]}
        if not row["verifying"]:
            yield Finding(
                f"the key {row['kid']} has expired, but {row['open_waitpoints']} open waitpoints were signed with it",
                "their tokens are rejected with token_expired, and the work waits for ever",
                (
                    run_sql(tokens, "new tokens, to hand out"),
                    "pyff approve EXECUTION  # or decide as an operator",
                ),
            )
        elif row["expires_at_ms"] - now < context.thresholds.keys_soon_ms:
            yield Finding(
                f"the key {row['kid']} expires in {duration(row['expires_at_ms'] - now)}; {row['open_waitpoints']} "
                "open waitpoints were signed with it",
                "their tokens will be rejected then",
                (run_sql(tokens, "new tokens, once it has expired"),),
            )
