"""Do this machine, the server and the engine agree on the time?"""

import time
from collections.abc import Iterator

from pyff.doctor.patient import Finding, Patient, again, lasted

LOOKS = 3  # the quickest of them is the most exact

_TIMES = "select (extract(epoch from clock_timestamp()) * 1000)::bigint as server"
_ENGINE = "select (extract(epoch from clock_timestamp()) * 1000)::bigint as server, ff_now_ms() as engine"


def check(patient: Patient) -> Iterator[Finding]:
    most = patient.thresholds.skew_ms
    installed = patient.installed()
    looks = []
    for _ in range(LOOKS):
        sent = time.time() * 1000
        row = patient.rows(_ENGINE if installed else _TIMES)[0]
        got = time.time() * 1000
        looks.append((got - sent, row["server"] - (sent + got) / 2, row))
    trip, ahead, row = min(looks, key=lambda look: look[0])
    if abs(ahead) - trip / 2 > most:
        which = "behind" if ahead > 0 else "ahead of"
        yield Finding(
            f"this machine's clock is {lasted(abs(ahead))} {which} the server's",
            "leases are counted by the server's clock, but deadlines and delays that programs here compute are not",
            ("timedatectl set-ntp true  # on the machine that is wrong",),
        )
    if installed and abs(row["engine"] - row["server"]) > most:
        which = "ahead of" if row["engine"] > row["server"] else "behind"
        yield Finding(
            f"ff_now_ms() is {lasted(abs(row['engine'] - row['server']))} {which} the server's own clock",
            "somebody has replaced the function: leases and delays end at the wrong time",
            again(patient),
        )
