"""The duration of a rejection does not depend on how much of a token is right."""

import random
from statistics import median

from tests.suspensions.support import suspended

ROUNDS = 200
TRIES = 12  # a machine that is busy with something else may disturb one of them; what leaks shows in all
BEST_OF = 5  # the quickest of so many: what else the machine does only ever adds

# The server measures itself: a call from outside would mostly measure the way there.
MEASURE = """
create function pg_temp.took(p_execution_id text, p_waitpoint_id uuid, p_token text, p_times int) returns float8
language plpgsql as $$
declare
    v_began timestamptz;
    v_took float8;
begin
    for i in 1 .. p_times loop
        v_began := clock_timestamp();
        begin
            perform ff_deliver_signal(p_execution_id, p_waitpoint_id, p_token, 'approve');
            return null; -- the token opened it
        exception when sqlstate 'WF121' then
            v_took := least(v_took, extract(epoch from clock_timestamp() - v_began));
        end;
    end loop;
    return v_took;
end $$
"""


def changed(token, place):
    return token[:place] + ("0" if token[place] != "0" else "1") + token[place + 1 :]


def told_apart(first, second):
    """How often a member of the one took longer than a member of the other: 0.5 if they are alike."""
    longer = sum((a > b) + 0.5 * (a == b) for a in first for b in second)
    return longer / (len(first) * len(second))


def test_wrong_tokens_cannot_be_told_apart_by_the_time_they_take(db):
    mine, point = suspended(db)
    other, other_point = suspended(db)
    token = point["waitpoint_token"]
    mac = token.index(":") + 1
    here = (mine["execution_id"], point["waitpoint_id"])
    unknown = (mine["execution_id"], "018f3a2e-7b6c-7d1e-9f00-aabbccddee07")
    elsewhere = (mine["execution_id"].replace("01", "02", 1), point["waitpoint_id"])
    wrong = {
        "first letter": (*here, changed(token, mac)),
        "last letter": (*here, changed(token, len(token) - 1)),
        "the token of another waitpoint": (*here, other_point["waitpoint_token"]),
        "no such waitpoint": (*unknown, token),
        "the waitpoint of another execution": (other["execution_id"], point["waitpoint_id"], token),
        "no such execution": (*elsewhere, token),
        # Not a token at all: this one may be seen, and shows that the measure can see.
        "no token": (*here, "nonsense"),
    }
    db.execute(MEASURE)
    found = [differences(measured(db, wrong))]
    while found[-1] and len(found) < TRIES:
        found.append(differences(measured(db, wrong)))
    assert not found[-1], found


def measured(db, wrong):
    times = {name: [] for name in wrong}
    order = list(wrong)
    for _ in range(ROUNDS):
        random.shuffle(order)  # whatever else the machine does meets all of them alike
        for name in order:
            times[name].append(
                db.execute("select pg_temp.took(%s, %s, %s, %s)", [*wrong[name], BEST_OF]).fetchone()[0]
            )
    return times


def differences(times):
    """What an outsider can learn from these times."""
    found = []
    base, none = times["first letter"], times["no token"]
    if told_apart(base, none) <= 0.9:
        found.append("the measure is too coarse to say anything")
    # Alike, with 200 of each, this is 0.5 +- 0.03: 0.15 away is five times that.
    for name in ("last letter", "the token of another waitpoint"):
        if not 0.35 < told_apart(base, times[name]) < 0.65:
            found.append(name)
    # Whether a row is there costs the index a microsecond at most, the MACs alone are a third of the work.
    work = median(base) - median(none)
    found += [
        name
        for name in times.keys() - {"no token"}
        if abs(median(times[name]) - median(base)) >= work / 6 and name not in found
    ]
    return found


def test_the_same_work_is_done_for_every_wrong_token(db):
    """By count, not by clock: as many MACs for an unknown waitpoint as for a wrong letter."""
    mine, point = suspended(db)
    token = point["waitpoint_token"]
    db.execute("set local track_functions = 'all'")
    db.execute(MEASURE)

    def macs(*call):
        query = (
            "select coalesce(sum(s.calls), 0) from pg_stat_xact_user_functions s where s.funcname = 'hmac'"
        )
        before = db.execute(query).fetchone()[0]
        assert db.execute("select pg_temp.took(%s, %s, %s, 1)", call).fetchone()[0]
        return db.execute(query).fetchone()[0] - before

    counted = {
        macs(mine["execution_id"], point["waitpoint_id"], changed(token, len(token) - 1)),
        macs(mine["execution_id"], point["waitpoint_id"], changed(token, token.index(":") + 1)),
        macs(mine["execution_id"], "018f3a2e-7b6c-7d1e-9f00-aabbccddee07", token),
        macs("{fp:7}:018f3a2e-7b6c-7d1e-9f00-aabbccddee07", point["waitpoint_id"], token),
    }
    assert counted == {3}
