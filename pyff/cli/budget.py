"""`pyff budget`: limits on spending."""

import argparse
from typing import TYPE_CHECKING, Any

from pyff.cli.arguments import Commands, command, duration, execution_id, group, number, text, uuid
from pyff.cli.database import connection, engine
from pyff.cli.exits import Missing
from pyff.cli.output import fields, print_fields, print_json, print_one, print_rows
from pyff.failure import Failure

if TYPE_CHECKING:
    from pyff._generated.results import GetBudgetStatusRow
    from pyff.engine import Engine

DIMENSIONS = {
    "dimension": "dimension",
    "used": "current_usage",
    "soft limit": "soft_limit",
    "hard limit": "hard_limit",
    "used up": "used_up",
}
COLUMNS = {"budget": "budget_id", **DIMENSIONS, "breached": "breached", "next reset": "next_reset_at_ms"}
OF_A_DIMENSION = ("dimension", "current_usage", "hard_limit", "soft_limit")


def register(commands: Commands) -> None:
    verbs = group(commands, "budget", "list, define, change and reset budgets", "pyff budget show team-red")
    parser = command(
        verbs,
        "list",
        "list the budgets with their usage",
        "Lists the budgets, a line per dimension. The role ff_reader is enough.",
        "pyff budget list --json",
    )
    parser.set_defaults(run=_list)

    parser = _verb(
        verbs, "show", "show a budget", "Shows a budget: rules, usage, breaches.", "pyff budget show team-red"
    )
    parser.set_defaults(run=_show)

    parser = _verb(
        verbs,
        "create",
        "define a budget",
        "Defines a budget. The same definition may be repeated.",
        "pyff budget create team-red --limit tokens=100000:80000 --limit cents=500 --on-hard block --reset-every 1d",
    )
    parser.add_argument(
        "--limit",
        type=_limit,
        action="append",
        required=True,
        metavar="NAME=HARD[:SOFT]",
        help="a dimension and its limits, 0 for none; may be repeated",
    )
    parser.add_argument(
        "--mode",
        choices=("strict", "warn"),
        default="strict",
        help="warn: only report breaches (default strict)",
    )
    parser.add_argument(
        "--on-hard",
        choices=("fail", "block", "cancel_pending", "cancel_all"),
        default="fail",
        help="effect of a rejected report on attached work (default fail: nothing more)",
    )
    parser.add_argument("--on-soft", choices=("warn", "none"), default="warn")
    parser.add_argument(
        "--reset-every", type=duration, default=0, metavar="TIME", help="interval after which usage is reset"
    )
    parser.add_argument(
        "--release-on-terminal", action="store_true", help="give spend back when its execution ends"
    )
    parser.set_defaults(run=_create)

    parser = _verb(
        verbs,
        "set",
        "change the limits of a dimension, or add one",
        "Changes the limits of one dimension; omitted limits stay. 0: none.",
        "pyff budget set team-red tokens --hard 200000 --soft 150000",
    )
    parser.add_argument("dimension", type=text)
    parser.add_argument("--hard", type=number, metavar="N")
    parser.add_argument("--soft", type=number, metavar="N")
    parser.set_defaults(run=_set)

    parser = _verb(
        verbs,
        "reset",
        "reset its usage",
        "Sets the usage to zero and releases blocked work.",
        "pyff budget reset team-red",
    )
    parser.set_defaults(run=_reset)

    for verb, what in (("attach", "put work under a budget"), ("detach", "take work out of a budget")):
        parser = _verb(
            verbs,
            verb,
            what,
            f"{what.capitalize()}: an execution, or a flow with its members.",
            f"pyff budget {verb} team-red --execution 018f3a2e-7b6c-7d1e-9f00-aabbccddee07",
        )
        target = parser.add_mutually_exclusive_group(required=True)
        target.add_argument("--execution", type=execution_id, metavar="ID")
        target.add_argument("--flow", type=uuid, metavar="ID")
        parser.set_defaults(run=_attach if verb == "attach" else _detach)


def _verb(verbs: Commands, name: str, help_: str, description: str, example: str) -> argparse.ArgumentParser:
    parser = command(verbs, name, help_, description, example)
    parser.add_argument("budget_id", type=text, help="the name of the budget")
    return parser


def _list(args: argparse.Namespace) -> int:
    from pyff.engine import Engine

    with connection(args) as conn, Engine(conn, prepare_threshold=None) as db:
        db.ping()
        names = conn.execute("select distinct b.budget_id from ff_v_budget b order by b.budget_id").fetchall()
        rows = [_with_use(row) for (name,) in names for row in db.get_budget_status(name)]
    print_rows(args, rows, COLUMNS, "no budget: pyff budget create defines one")
    return 0


def _show(args: argparse.Namespace) -> int:
    with engine(args) as db:
        rows = [_with_use(row) for row in db.get_budget_status(args.budget_id)]
    rules = {name: value for name, value in rows[0].items() if name not in (*OF_A_DIMENSION, "used_up")}
    used = [row for row in rows if row["dimension"] is not None]
    if args.json:
        print_json(
            {**rules, "dimensions": [{n: row[n] for n in (*OF_A_DIMENSION, "used_up")} for row in used]}
        )
        return 0
    print(f"{args.budget_id} is {'breached' if rules['breached'] else 'open'}")
    print_fields(rules, ("budget_id",))
    print_rows(args, used, DIMENSIONS, "no dimension")
    return 0


def _create(args: argparse.Namespace) -> int:
    limits: dict[str, tuple[int, int]] = {}
    for name, hard, soft in args.limit:
        if name in limits:
            raise Failure(f"the dimension {name!r} is given twice", hint="give it once")
        limits[name] = hard, soft
    with engine(args) as db:
        done = db.create_budget(
            args.budget_id,
            list(limits),
            [hard for hard, _ in limits.values()],
            [soft for _, soft in limits.values()],
            enforcement_mode=args.mode,
            on_hard_limit=args.on_hard,
            on_soft_limit=args.on_soft,
            reset_interval_ms=args.reset_every,
            release_on_terminal=args.release_on_terminal,
        )
    said = "created" if done.outcome == "created" else "already exists"
    print_one(args, done, f"budget {done.budget_id} {said}")
    return 0


def _set(args: argparse.Namespace) -> int:
    if args.hard is None and args.soft is None:
        raise Failure("nothing to change", hint="give --hard or --soft")
    with engine(args) as db:
        before = _dimension(db, args.budget_id, args.dimension)
        hard = args.hard if args.hard is not None else before and before.hard_limit
        soft = args.soft if args.soft is not None else before and before.soft_limit
        done = db.update_budget(
            args.budget_id, args.dimension, hard_limit=hard or None, soft_limit=soft or None
        )
    state = ", it is still breached" if done.breached else ""
    print_one(
        args,
        {
            "budget_id": args.budget_id,
            "dimension": args.dimension,
            "outcome": done.outcome,
            "breached": done.breached,
        },
        f"{args.dimension} of {args.budget_id}: {done.outcome}, hard {hard or 'none'}, soft {soft or 'none'}{state}",
    )
    return 0


def _dimension(db: "Engine", budget: str, dimension: str) -> "GetBudgetStatusRow | None":
    return next((row for row in db.get_budget_status(budget) if row.dimension == dimension), None)


def _reset(args: argparse.Namespace) -> int:
    with engine(args) as db:
        done = db.reset_budget(args.budget_id)
    print_one(args, {"budget_id": args.budget_id, **fields(done)}, f"budget {args.budget_id} was reset")
    return 0


def _attach(args: argparse.Namespace) -> int:
    with engine(args) as db:
        done = db.attach_budget(args.budget_id, execution_id=args.execution, flow_id=args.flow)
    return _attached(args, done.outcome)


def _detach(args: argparse.Namespace) -> int:
    with engine(args) as db:
        done = db.detach_budget(args.budget_id, execution_id=args.execution, flow_id=args.flow)
    if done.outcome == "not_attached":
        raise Missing(f"{args.execution or args.flow} is not under budget {args.budget_id}")
    return _attached(args, done.outcome)


def _attached(args: argparse.Namespace, outcome: str) -> int:
    target = args.execution or str(args.flow)
    print_one(
        args,
        {"budget_id": args.budget_id, "target": target, "outcome": outcome},
        f"{target}: {outcome.replace('_', ' ')}",
    )
    return 0


def _with_use(row: object) -> dict[str, Any]:
    found = fields(row)
    hard = found["hard_limit"]
    return {**found, "used_up": f"{found['current_usage'] / hard:.0%}" if hard else None}


def _limit(given: str) -> tuple[str, int, int]:
    name, sign, limits = text(given).partition("=")
    hard, _, soft = limits.partition(":")
    if not sign or not name:
        raise argparse.ArgumentTypeError(f"{given[:64]!r} is not NAME=HARD[:SOFT]")
    return name, number(hard), number(soft or "0")
