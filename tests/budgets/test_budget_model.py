"""Random histories of a budget against a model of it in a few lines: every answer and every count agree."""

import random

import pytest

from tests.budgets.support import breaches, budget, release, report, spend, status, used
from tests.sql import one, violations

DAY = 86_400_000
SPENDERS = [f"{{fp:{n}}}:018f3a2e-7b6c-7d1e-9f00-aabbccddee{n:02x}" for n in (1, 2, 3)]
NAMES = ["a", "b", "c", "z"]  # z is not declared


class Model:
    def __init__(self, mode, action, limits):
        self.mode, self.action, self.limits = mode, action, dict(limits)
        self.used = dict.fromkeys(limits, 0)
        self.spent, self.keys, self.now = {}, {}, 0
        self.breached, self.count, self.soft = False, 0, 0

    def passed(self, deltas, which):
        for name in sorted(deltas):
            limit = self.limits.get(name, (None, None))[which]
            if deltas[name] and limit and self.used.get(name, 0) + deltas[name] > limit:
                return name, limit
        return None

    def report(self, deltas, key, spender=None):
        if not deltas:
            return "ok", True, None, None, None
        known = self.keys.get(key) if key else None
        if known and known[2] > self.now:
            if known[0] != deltas:
                return "dedup_key_conflict"
            return "already_applied", *known[1][1:]
        hard, soft = self.passed(deltas, 0), self.passed(deltas, 1)
        self.count += bool(hard)
        if hard and self.mode == "strict":
            self.breached = self.breached or self.action != "fail"
            return "hard_breach", False, hard[0], self.used[hard[0]], hard[1]
        self.soft += bool(soft)
        for name, amount in deltas.items():
            self.used[name] = self.used.get(name, 0) + amount
            if spender and amount:
                ledger = self.spent.setdefault(spender, {})
                ledger[name] = ledger.get(name, 0) + amount
        name, limit = hard or soft or (None, None)
        outcome = "hard_breach" if hard else "soft_breach" if soft else "ok"
        answer = outcome, True, name, self.used.get(name) if name else None, limit
        if key:
            self.keys[key] = deltas, answer, self.now + DAY
        return answer

    def release(self, spender):
        ledger = self.spent.pop(spender, {})
        for name, amount in ledger.items():
            self.used[name] -= amount
        return ("released", len(ledger)) if ledger else ("nothing_to_release", 0)

    def reset(self):
        self.used = dict.fromkeys(self.used, 0)
        self.spent, self.breached = {}, False

    def update(self, name, hard, soft):
        self.limits[name] = hard, soft
        self.used.setdefault(name, 0)
        reached = any(h and self.used.get(n, 0) >= h for n, (h, _) in self.limits.items())
        self.breached = self.breached and reached
        return self.breached


def answered(call, *args, **named):
    try:
        row = call(*args, **named)
    except Exception as error:
        assert error.sqlstate == "WF318", error
        return "dedup_key_conflict"
    return row["outcome"], row["applied"], row["dimension"], row["current_usage"], row["limit_value"]


@pytest.mark.slow("long run")
@pytest.mark.parametrize("seed", range(24))
def test_a_random_history_agrees_with_the_model(db, clock, seed):
    chance = random.Random(seed)
    clock.freeze()
    mode, action = chance.choice(["strict", "strict", "warn"]), chance.choice(["fail", "block", "cancel_all"])
    limits = {name: chance.choice([(20, 10), (15, None), (None, 8), (None, None)]) for name in NAMES[:3]}
    budget(
        db,
        dimensions=list(limits),
        hard_limits=[hard for hard, _ in limits.values()],
        soft_limits=[soft for _, soft in limits.values()],
        enforcement_mode=mode,
        on_hard_limit=action,
    )
    model = Model(mode, action, limits)
    for _ in range(60):
        what = chance.choice(["report"] * 4 + ["spend"] * 4 + ["release", "reset", "update", "time"])
        deltas = {n: chance.choice([0, 1, 3, 9]) for n in chance.sample(NAMES, chance.randint(0, 3))}
        key, spender = f"k{chance.randint(1, 12)}", chance.choice(SPENDERS)
        if what == "report":
            key = chance.choice([key, "", None])
            assert answered(report, db, deltas, dedup_key=key) == model.report(deltas, key)
        elif what == "spend":
            assert answered(spend, db, spender, deltas, key) == model.report(deltas, key, spender)
        elif what == "release":
            assert release(db, spender) == model.release(spender)
        elif what == "reset":
            if chance.random() < 0.5:
                one(db, "ff_reset_budget", budget_id="b")
                model.reset()
        elif what == "update":
            name, (hard, soft) = chance.choice(NAMES[:3]), chance.choice([(12, 6), (30, None), (None, 4)])
            row = one(db, "ff_update_budget", budget_id="b", dimension=name, hard_limit=hard, soft_limit=soft)
            assert row["breached"] == model.update(name, hard, soft)
        else:
            step = chance.choice([1000, DAY // 2])
            clock.advance(step)
            model.now += step
        assert used(db) == model.used
        found = status(db)
        assert (found["breached"], found["breach_count"], found["soft_breach_count"]) == (
            model.breached,
            model.count,
            model.soft,
        )
        assert bool(breaches(db)) == (model.breached and action == "cancel_all")
    assert violations(db) == []
