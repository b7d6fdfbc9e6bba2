// What the drivers in JavaScript share; wire.py tells the protocol.
import readline from "node:readline";

export const NAP_MS = 20;
const COUNTED_EVERY_MS = 10;
let done = 0;

export const now = () => (performance.timeOrigin + performance.now()) / 1000;
export const say = (message) => process.stdout.write(JSON.stringify(message) + "\n");
export const count = () => { if (++done === 1) say({ done }); };
export const mark = (number) => say({ mark: number, t: now() });
export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
export const range = (first, n) => Array.from({ length: n }, (_, i) => first + i);
export const route = (number, sets) => (sets ? `set${number % sets}` : null);

export async function timed(block) {
  const t0 = now();
  await block();
  const t1 = now();
  return { seconds: t1 - t0, t0, t1 };
}

function ready() {
  let told = 0;
  say({ ready: true });
  setInterval(() => { if (done !== told) { told = done; say({ done }); } }, COUNTED_EVERY_MS);
}

export const tasks = {
  noop: async () => count(),
  mark: async (number) => mark(number),
  nap: async (number) => { await sleep(NAP_MS); say({ ran: number }); },
};

export async function main(client, worker) {
  const [role, dsn, options] = process.argv.slice(2);
  if (role === "worker") {
    await worker(dsn, JSON.parse(options));
    return ready();
  }
  const asked = await client(dsn);
  say({ ready: true });
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const { op, ...given } = JSON.parse(line);
    try {
      say((await asked[op](given)) ?? {});
    } catch (error) {
      say({ error: String(error) });
    }
  }
  process.exit(0);
}
