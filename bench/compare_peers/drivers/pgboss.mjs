// pg-boss: batches of a hundred for short jobs and LISTEN switched on where it has it; else its defaults.
import { PgBoss } from "pg-boss";
import { count, main, range, tasks, timed } from "./wire.mjs";

const SETS = range(0, 10).map((k) => `set${k}`);
const SHORTEST_S = 10;
const WORK = { ...tasks, nap_short: tasks.nap };

const open = async (connectionString, options = {}) => {
  const boss = new PgBoss({ connectionString, ...options });
  boss.on("error", () => {});
  await boss.start();
  return boss;
};

const client = async (dsn) => {
  let made;
  const boss = async () => (made ??= await open(dsn, { supervise: false, schedule: false }));
  return {
    setup: async () => {
      const first = await open(dsn);
      for (const name of [...Object.keys(WORK), ...SETS]) {
        await first.createQueue(name, { notify: true, ...(name === "nap_short" ? { heartbeatSeconds: SHORTEST_S } : {}) });
      }
      await first.stop();
    },
    enqueue: async ({ task, first, count: n, batch, sets = 0 }) => {
      const own = await boss();
      const numbers = range(first, n);
      const groups = sets ? SETS.slice(0, sets).map((name, k) => [name, numbers.filter((i) => i % sets === k)])
        : [[task, numbers]];
      return timed(async () => {
        for (const [name, members] of groups) {
          if (batch) {
            for (let start = 0; start < members.length; start += 5000) {
              await own.insert(name, members.slice(start, start + 5000).map((number) => ({ data: { number } })));
            }
          } else {
            for (const number of members) await own.send(name, { number });
          }
        }
      });
    },
    cancel: async ({ count: n }) => {
      const own = await boss();
      const ids = await own.insert("noop", range(0, n).map((number) => ({ data: { number } })), { returnId: true });
      return timed(() => own.cancel("noop", ids));
    },
  };
};

const worker = async (dsn, { sets, concurrency, fast, lease_s }) => {
  const boss = await open(dsn, { useListenNotify: true, ...(lease_s ? { monitorIntervalSeconds: lease_s } : {}) });
  const batchSize = fast ? 1000 : (concurrency ?? 100);
  for (const name of sets ?? Object.keys(WORK)) {
    const task = sets ? async () => count() : WORK[name];
    await boss.work(name, { batchSize, pollingIntervalSeconds: 0.5, burstWhenBatchFull: true }, (jobs) =>
      Promise.all(jobs.map((job) => task(job.data.number))).then(() => {}));
  }
};

await main(client, worker);
