"""Do the clocks of this machine, the server and the engine agree?"""

import time
from collections.abc import Iterator

from pyff.doctor.context import CheckContext, Finding, duration, reapply

SAMPLES = 3  # the fastest is the most exact

_TIMES = "select (extract(epoch from clock_timestamp()) * 1000)::bigint as server"
_ENGINE = "select (extract(epoch from clock_timestamp()) * 1000)::bigint as server, ff_now_ms() as engine"


def check(context: CheckContext) -> Iterator[Finding]:
    most = context.thresholds.skew_ms
    installed = context.installed()
    samples = []
    for _ in range(SAMPLES):
        sent = time.time() * 1000
        row = context.rows(_ENGINE if installed else _TIMES)[0]
        got = time.time() * 1000
        samples.append((got - sent, row["server"] - (sent + got) / 2, row))
    trip, ahead, row = min(samples, key=lambda sample: sample[0])
    if abs(ahead) - trip / 2 > most:
        which = "behind" if ahead > 0 else "ahead of"
        yield Finding(
            f"this machine's clock is {duration(abs(ahead))} {which} the server's",
            "leases are counted by the server's clock, but deadlines and delays that programs here compute are not",
            ("timedatectl set-ntp true  # on the machine that is wrong",),
        )
    if installed and abs(row["engine"] - row["server"]) > most:
        which = "ahead of" if row["engine"] > row["server"] else "behind"
        yield Finding(
            f"ff_now_ms() is {duration(abs(row['engine'] - row['server']))} {which} the server's own clock",
            "the function was replaced: leases and delays end at the wrong time",
            reapply(context),
        )
