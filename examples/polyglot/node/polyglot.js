// An invoice that waits for its payment, in JavaScript with pg. See ../README.md for how to run it.
import pg from "pg";

const LANE = "invoices-node";
const PAID = { kind: "single", waitpoint_key: "payment", matcher: { by_name: "paid" } };

/** The row that a function returns, or undefined: call(client, "ff_claim", { p_lane_id: "x" }). */
async function call(client, name, args = {}) {
  const names = Object.keys(args).map((arg, i) => `${arg} => $${i + 1}`);
  const { rows } = await client.query(`select * from ${name}(${names.join(", ")})`, Object.values(args));
  return rows[0];
}

/** The SQLSTATE that a call fails with. The error also has the json DETAIL in `detail` and the HINT in `hint`. */
const refusal = (promise) => promise.then(() => "none", (error) => error.code);

const client = new pg.Client(process.env.PYFF_DSN);
const outsider = new pg.Client(process.env.PYFF_SENDER_DSN);
await client.connect();
await outsider.connect();

// Submit work. The key makes a repetition harmless. Bytes are Buffers, jsonb is any object.
const invoice = { p_lane_id: LANE, p_payload: Buffer.from("invoice 42"), p_idempotency_key: `${LANE}/42` };
const created = await call(client, "ff_create_execution", invoice);
console.log("create:", created.outcome, created.public_state);
const again = await call(client, "ff_create_execution", invoice);
console.log("create again:", again.outcome, again.execution_id === created.execution_id);

// A worker claims it under a lease, and renews the lease while it works. An instance is one process; use a
// unique name for each. pg returns a bigint as a string.
const worker = { p_lane_id: LANE, p_worker_id: "booker", p_worker_instance_id: `booker-${process.pid}` };
const first = await call(client, "ff_claim", worker);
console.log("claim:", first.handle_kind, first.attempt_index, first.lease_epoch, first.payload.toString());
const renewed = await call(client, "ff_renew", { p_handle: first.handle });
console.log("renew:", renewed.lease_epoch, BigInt(renewed.lease_expires_at_ms) >= BigInt(first.lease_expires_at_ms));

// Suspend: this releases the lease and returns a token for the sender of the signal.
const point = await call(client, "ff_suspend", {
  p_handle: first.handle,
  p_condition: PAID,
  p_reason_code: "waiting_for_callback",
  p_timeout_ms: 86_400_000,
});
console.log("suspend:", point.outcome);
console.log("claim:", (await call(client, "ff_claim", worker)) ?? "nothing");

// The outsider has the token, and a login that may only deliver signals.
console.log("outsider looks:", await refusal(call(outsider, "ff_list_executions")));
const signal = { p_execution_id: created.execution_id, p_waitpoint_id: point.waitpoint_id, p_signal_name: "paid" };
const forged = { ...signal, p_waitpoint_token: "key-1:forged" };
console.log("outsider forges:", await refusal(call(outsider, "ff_deliver_signal", forged)));
const delivered = await call(outsider, "ff_deliver_signal", {
  ...signal,
  p_waitpoint_token: point.waitpoint_token,
  p_payload: Buffer.from("100 euros"),
});
console.log("outsider signals:", delivered.outcome, delivered.public_state);

// Any worker continues the same attempt, under a new lease.
const second = await call(client, "ff_claim", worker);
console.log("claim:", second.handle_kind, second.attempt_index, second.lease_epoch);
const answer = await call(client, "ff_observe_signals", { p_handle: second.handle });
console.log("signal:", answer.signal_name, answer.payload.toString());

// The first handle is no longer valid.
console.log("renew with the old handle:", await refusal(call(client, "ff_renew", { p_handle: first.handle })));

const result = { p_handle: second.handle, p_result: Buffer.from("booked") };
const done = await call(client, "ff_complete", result);
console.log("complete:", done.public_state, done.replayed);
const repeated = await call(client, "ff_complete", result);
console.log("complete again:", repeated.public_state, repeated.replayed);

await outsider.end();
await client.end();
