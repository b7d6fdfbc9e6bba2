"""Does every role have exactly its grants?"""

from collections.abc import Iterator

from pyff.doctor.context import CheckContext, Finding, first_few, reapply, run_sql
from pyff.migrate.tree import ROLES, shipped

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
select c.relname, c.oid::regclass::text as name,
       array(select r.rolname from pg_roles r
              where r.rolname = any(%s) and has_table_privilege(r.oid, c.oid, 'select')) as readers
  from pg_class c
 where c.relnamespace = quote_ident(current_schema())::regnamespace and c.relkind = 'v' and c.relname like 'ff\_v\_%%'
 order by c.relname"""
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
    for row in context.rows(_VIEWS, [*ROLES]):
        lacking = [r for r in ROLES if r in there and row["relname"] in wanted[r] and r not in row["readers"]]
        if lacking:
            statements.append(f"grant select on {row['name']} to {', '.join(lacking)}")
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
    """The functions and views of each role, as their files grant them."""
    return {role: frozenset(file.name for file in shipped().objects if role in file.roles) for role in ROLES}
