// A worker in JavaScript with pg: claims, renews, completes, and is notified of new work.
// docs/other-languages.md explains it.
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { hostname } from "node:os";
import { setTimeout as pause } from "node:timers/promises";
import pg from "pg";

const DSN = process.env.PYFF_DSN;
const LANE = process.env.LANE ?? "numbers";
const LEASE_MS = Number(process.env.LEASE_MS ?? 10_000);
const POLL_MS = Number(process.env.POLL_MS ?? 1_000);
const me = { p_worker_id: hostname(), p_worker_instance_id: randomUUID() };
const worker = { p_lane_id: LANE, p_lease_ttl_ms: LEASE_MS, ...me };

const pool = new pg.Pool({ connectionString: DSN });
pool.on("error", () => {}); // an idle connection was lost; the pool opens another one

/** The row that a function returns, or undefined. */
async function call(name, args) {
  const names = Object.keys(args).map((arg, i) => `${arg} => $${i + 1}`);
  const { rows } = await pool.query(`select * from ${name}(${names.join(", ")})`, Object.values(args));
  return rows[0];
}

/** The engine rejects the call, and would reject it again: not a lost connection or a conflict. */
const rejected = (error) => error.code?.startsWith("WF") && !error.code.startsWith("WF2");

/** Repeats a call until the database answers. A repetition with the same handle changes nothing. */
async function report(name, args) {
  for (;;) {
    try {
      return await call(name, args);
    } catch (error) {
      if (rejected(error)) throw error;
      await pause(1_000);
    }
  }
}

/** The work itself. `lost.aborted` becomes true when the lease is lost: stop then, another worker takes over. */
async function run(payload, lost) {
  const { number, takes_ms = 0 } = JSON.parse(payload.toString());
  for (const end = Date.now() + takes_ms; Date.now() < end && !lost.aborted; ) {
    await pause(20);
  }
  if (number < 0) throw new Error("the number is negative");
  return Buffer.from(JSON.stringify(number * 2));
}

/** Runs one claimed execution, and renews its lease meanwhile. */
async function work(claimed) {
  const { handle, execution_id } = claimed;
  const lost = new AbortController();
  let deadline = claimed.sent + LEASE_MS; // by this clock, counted from before the call
  const renewal = setInterval(async () => {
    const sent = Date.now();
    try {
      await call("ff_renew", { p_handle: handle });
      deadline = sent + LEASE_MS;
    } catch (error) {
      if (rejected(error) || Date.now() > deadline) lost.abort(error);
    }
  }, LEASE_MS / 3);
  try {
    const result = await run(claimed.payload, lost.signal);
    if (lost.signal.aborted) throw lost.signal.reason;
    await report("ff_complete", { p_handle: handle, p_result: result, p_result_encoding: "json" });
    console.log("completed", execution_id);
  } catch (error) {
    if (rejected(error)) return console.log("lost", execution_id, error.code); // its result is discarded
    await report("ff_fail", { p_handle: handle, p_reason: String(error) }).catch(() => {});
    console.log("failed", execution_id);
  } finally {
    clearInterval(renewal);
  }
}

let stopping = false;
let notified = false;
let wake = () => {};
const stopped = new Promise((resolve) => {
  for (const signal of ["SIGTERM", "SIGINT"]) process.on(signal, () => resolve((stopping = true)));
});
stopped.then(() => wake());

function notify() {
  notified = true;
  wake();
}

/** Waits for a notification, for POLL_MS at most. */
async function idle() {
  if (notified || stopping) return;
  await new Promise((resolve) => {
    const timer = setTimeout(resolve, POLL_MS);
    wake = () => resolve(clearTimeout(timer));
  });
}

/** LISTENs on a connection of its own, and opens another one when it is lost. */
async function listen() {
  while (!stopping) {
    const client = new pg.Client({ connectionString: DSN });
    client.on("notification", ({ payload }) => payload === LANE && notify());
    client.on("error", () => {}); // "end" follows
    const ended = once(client, "end").catch(() => {});
    try {
      await client.connect();
      await client.query("listen ff_lane");
      notify(); // earlier notifications are not repeated
      await Promise.race([ended, stopped]);
    } catch {
      await Promise.race([pause(1_000), stopped]);
    }
    await client.end().catch(() => {});
  }
}

const listening = listen();
while (!stopping) {
  notified = false; // before the claim, so that a notification during the claim counts
  try {
    const sent = Date.now();
    const claimed = await call("ff_claim", worker);
    if (claimed) await work({ ...claimed, sent });
    else await idle();
  } catch (error) {
    console.error("cannot claim:", error.message);
    await Promise.race([pause(POLL_MS), stopped]);
  }
}
await listening;
await pool.end();
