"""Does every role have exactly its grants?"""

import re
from collections.abc import Iterator

from pyff.doctor.context import CheckContext, Finding, first_few, reapply, run_sql
from pyff.migrate.tree import MigrateError, shipped

ROLES = ("ff_reader", "ff_producer", "ff_worker", "ff_signaler", "ff_operator", "ff_admin")
READERS = tuple(role for role in ROLES if role != "ff_signaler")  # roles that may select from the views

_ROUTINES = r"""
select p.proname, p.oid::regprocedure::text as signature,
       array(select r.rolname from pg_roles r
              where r.rolname = any(%s) and has_function_privilege(r.oid, p.oid, 'execute')) as callers,
       exists (select from aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a
                where a.grantee = 0 and a.privilege_type = 'EXECUTE') as public
  from pg_proc p
 where p.pronamespace = quote_ident(current_schema())::regnamespace and p.proname like 'ff\_%%'
 order by p.proname"""
_VIEWS = r"""
select c.oid::regclass::text as name, string_agg(r.rolname, ', ' order by r.rolname) as roles
  from pg_class c join pg_roles r on r.rolname = any(%s)
 where c.relnamespace = quote_ident(current_schema())::regnamespace and c.relkind = 'v' and c.relname like 'ff\_v\_%%'
   and not has_table_privilege(r.oid, c.oid, 'select')
 group by c.oid order by c.oid::regclass::text"""
_SCHEMA = """
select r.rolname, quote_ident(current_schema()) as schema from pg_roles r
 where r.rolname = any(%s) and not has_schema_privilege(r.oid, quote_ident(current_schema())::regnamespace, 'usage')"""

_OPEN = """
select quote_ident(n.nspname) as schema, a.privilege_type as privilege,
       case a.grantee when 0 then 'public' else quote_ident(a.grantee::regrole::text) end as grantee
  from pg_namespace n, aclexplode(n.nspacl) a
 where (n.nspname = %s and a.privilege_type = 'CREATE' or n.nspname = %s and a.grantee <> n.nspowner)
   and (a.grantee = 0 or a.grantee::regrole::text = any(%s))"""


def check(context: CheckContext) -> Iterator[Finding]:
    if not context.installed():
        return
    there = {
        str(r["rolname"])
        for r in context.rows("select rolname from pg_roles where rolname = any(%s)", [*ROLES])
    }
    missing = [role for role in ROLES if role not in there]
    if missing:
        yield Finding(
            f"roles are missing: {', '.join(missing)}",
            "only the owner of the schema can use the engine; logins with fewer privileges are impossible",
            reapply(context),
        )
    wanted, place = expected(), context.place
    statements, public = [], []
    for row in context.rows(_ROUTINES, [*ROLES]):
        lacking = [r for r in ROLES if r in there and row["proname"] in wanted[r] and r not in row["callers"]]
        if lacking:
            statements.append(f"grant execute on routine {row['signature']} to {', '.join(lacking)}")
        if row["public"]:
            public.append(f"revoke execute on routine {row['signature']} from public")
    statements += [
        f"grant select on {row['name']} to {row['roles']}" for row in context.rows(_VIEWS, [*READERS])
    ]
    statements += [
        f"grant usage on schema {row['schema']} to {row['rolname']}"
        for row in context.rows(_SCHEMA, [*ROLES])
    ]
    if statements:
        yield Finding(
            f"grants are missing: {first_few(statements)}",
            "programs with these roles fail with `permission denied`",
            tuple(run_sql(statement) for statement in statements),
        )
    if public:
        yield Finding(
            f"every login may call {len(public)} functions of the engine",
            "no role is needed to claim, cancel or read work",
            tuple(run_sql(statement) for statement in public),
        )
    opened = [
        f"revoke {str(row['privilege']).lower()} on schema {row['schema']} from {row['grantee']}"
        for row in context.rows(_OPEN, place.schema, place.private, [*ROLES])
    ]
    if opened:
        yield Finding(
            "roles other than the owner may create objects in a schema of the engine, or use the private one",
            "functions of the engine run with the privileges of their owner, and would call such objects",
            tuple(run_sql(statement) for statement in opened),
        )


def expected() -> dict[str, frozenset[str]]:
    """The roles of each function, read from the script of the grants."""
    script = next(file.text for file in shipped().scripts if file.name == "grants")
    lists = {
        name: frozenset(re.findall(r"\w+", text))
        for name, text in re.findall(r"(v_\w+) text\[\] := '\{(.*?)\}'", script, re.S)
    }
    sums = dict(re.findall(r"when '(ff_\w+)' then ((?:v_\w+(?: \|\| )?)+)", script))
    rest = re.search(r"else ((?:v_\w+(?: \|\| )?)+) end", script)
    if rest:
        sums["ff_admin"] = rest[1]
    if set(sums) != set(ROLES) or not all(lists.values()):
        raise MigrateError("cannot parse grants.sql")
    return {
        role: frozenset().union(*(lists[name] for name in text.split(" || "))) for role, text in sums.items()
    }
