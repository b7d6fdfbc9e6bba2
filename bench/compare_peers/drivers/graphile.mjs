// Graphile Worker: for throughput the settings of its page on performance (local queue, batched completion).
import { Logger, makeWorkerUtils, run, runMigrations } from "graphile-worker";
import pg from "pg";
import { count, main, range, route, tasks, timed } from "./wire.mjs";

const quiet = new Logger(() => () => {});

const client = async (connectionString) => {
  let made;
  const utils = async () => (made ??= await makeWorkerUtils({ connectionString, logger: quiet }));
  return {
    setup: () => runMigrations({ connectionString, logger: quiet }),
    enqueue: async ({ task, first, count: n, batch, sets = 0 }) => {
      const worker = await utils();
      const jobs = range(first, n).map((number) => ({ identifier: route(number, sets) ?? task, payload: { number } }));
      return timed(async () => {
        if (batch) {
          for (let start = 0; start < n; start += 5000) await worker.addJobs(jobs.slice(start, start + 5000));
        } else {
          for (const { identifier, payload } of jobs) await worker.addJob(identifier, payload);
        }
      });
    },
    cancel: async ({ count: n }) => {
      const worker = await utils();
      const made = await worker.addJobs(range(0, n).map((number) => ({ identifier: "noop", payload: { number } })));
      const ids = made.map((job) => job.id);
      return timed(() => worker.completeJobs(ids));
    },
  };
};

const worker = async (connectionString, { sets, concurrency, fast }) => {
  const named = Object.fromEntries(Object.entries(tasks).map(([name, task]) => [name, ({ number }) => task(number)]));
  const routed = sets && Object.fromEntries(sets.map((set) => [set, async () => count()]));
  const tuned = { worker: { maxPoolSize: 25, localQueue: { size: 500 }, completeJobBatchDelay: 0, failJobBatchDelay: 0 } };
  await run({
    connectionString, logger: quiet, concurrency: concurrency ?? 24, noHandleSignals: false,
    taskList: routed ?? named, preset: fast ? tuned : {},
  });
};

await main(client, worker);
