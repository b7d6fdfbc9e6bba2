"""A small shop: orders are charged (large ones after an approval) and shipped by child executions.

    PYFF_DSN=... python examples/shop.py                          # submits, runs and approves orders
    PYFF_DSN=... PYTHONPATH=examples pyff worker shop:app         # only runs them

The order and its charge task are committed together. It can be killed at any point and restarted: no order is charged
twice.
"""

import dataclasses
import os
import sys
import time

import psycopg

import pyff
from pyff import App, Backoff, Ctx, Fail, Token

app = App(lane="shop")


@dataclasses.dataclass
class Order:
    id: int
    total: float
    parcels: int = 1


@app.task(retry=Backoff(max=5, base_ms=200), timeout_ms=60_000)
def charge(ctx: Ctx, order: Order) -> str:
    if order.total > 1000:
        answer = ctx.wait("approval", signals={"approve", "reject"}, timeout_ms=86_400_000, on_token=ask)
        if answer.name == "reject":
            raise Fail("rejected", retryable=False)
    ctx.transaction("charge", book, order)
    parcels = [ctx.spawn(ship, order.id, number) for number in range(order.parcels)]
    return ", ".join(ctx.gather(*parcels))


def book(conn: psycopg.Connection[tuple[object, ...]], order: Order) -> None:
    conn.execute("insert into shop_charge values (%s, %s)", [order.id, order.total])


def ask(token: Token) -> None:
    """Stands for a mail with the token in a link."""
    with psycopg.connect(os.environ["PYFF_DSN"]) as conn:
        conn.execute("insert into shop_mail values (%s)", [token.url_param])


@app.task()
def ship(order_id: int, number: int) -> str:
    return f"parcel {order_id}-{number}"


def main(dsn: str) -> None:
    with psycopg.connect(dsn) as conn:
        conn.execute("create table if not exists shop_order (id serial, total float)")
        conn.execute("create table if not exists shop_charge (order_id int, total float)")
        conn.execute("create table if not exists shop_mail (token text)")
        conn.execute("truncate shop_mail")
    with pyff.Engine(dsn) as engine, psycopg.connect(dsn) as conn:
        app.bind(engine)
        handles = []
        for total in (20.0, 5000.0):
            with conn.transaction():
                row = conn.execute(
                    "insert into shop_order (total) values (%s) returning id", [total]
                ).fetchone()
                order = Order(row[0] if row else 0, total, parcels=2)
                handles.append(charge.enqueue(order, key=f"order-{order.id}", conn=conn))
        with pyff.Worker(app, dsn):
            print("small order:", handles[0].result(timeout=30))
            while not (mails := conn.execute("select token from shop_mail").fetchall()):
                conn.rollback()
                time.sleep(0.05)
            pyff.send_signal(str(mails[0][0]), "approve", {"by": "ann"}, conn=engine)
            print("large order:", handles[1].result(timeout=30))
        print("charges:", conn.execute("select count(*) from shop_charge").fetchall()[0][0])


if __name__ == "__main__":
    main(os.environ.get("PYFF_DSN") or sys.exit("set PYFF_DSN"))
