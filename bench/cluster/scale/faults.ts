import { setTimeout as sleep } from 'node:timers/promises';
import { poll } from '../../../test/support/poll.ts';
import type { ServerProcess } from '../support/server-process.ts';
import type { SlowDisk } from '../../../test/cluster/slow-disk.ts';
import type { ScaleCluster } from './scale-cluster.ts';

/** One kind of failure. `cause` ends when the component works again. */
export interface Fault {
  readonly name: string;
  readonly cause: (cluster: ScaleCluster, round: number) => Promise<void>;
  readonly kills?: true;
}

/** How long a component is paused, or has another time. */
const FAULT_MS = 8_000;
const CLOCK_STEP_MS = 45_000;

/** Gives a running process another time, as a clock step of its machine does; an offset of 0 restores the time. */
const setClock = (offsetMs: number) => `(() => {
  const Real = globalThis.RealDate ??= Date;
  globalThis.Date = ${offsetMs} === 0 ? Real : class Date extends Real {
    constructor(...values) { if (values.length === 0) super(Real.now() + ${offsetMs}); else super(...values); }
    static now() { return Real.now() + ${offsetMs}; }
  };
})()`;

export const FAULTS: readonly Fault[] = [
  {
    name: 'gateway killed',
    kills: true,
    cause: async (cluster, round) => {
      const index = round % cluster.gateways.length;
      await cluster.gateways[index]?.end('SIGKILL');
      await cluster.startGateway(index);
    },
  },
  { name: 'NATS server killed', kills: true, cause: async ({ nats }, round) => nats.servers[round % 3]?.restart() },
  {
    name: 'gateway paused, as by a partition',
    cause: ({ gateways }, round) => pause(gateways[round % gateways.length]?.pid),
  },
  {
    name: 'operator killed',
    kills: true,
    cause: async (cluster) => {
      await cluster.operator.end('SIGKILL');
      const operator = await cluster.startOperator();
      await operator.waitUntilReady();
    },
  },
  { name: 'NATS server paused, as by a partition', cause: ({ nats }, round) => pause(nats.pids[round % 3]) },
  {
    name: 'clock of a gateway stepped forward',
    cause: ({ gateways }, round) => stepClock(gateways[round % gateways.length], CLOCK_STEP_MS),
  },
  { name: 'API server killed', kills: true, cause: ({ kube }) => kube.plane.restartApiServer() },
  {
    name: 'clock of a gateway stepped back',
    cause: ({ gateways }, round) => stepClock(gateways[round % gateways.length], -CLOCK_STEP_MS),
  },
  { name: 'clock of the operator stepped forward', cause: ({ operator }) => stepClock(operator, CLOCK_STEP_MS) },
  { name: 'disk of a NATS server slow', cause: ({ nats }, round) => slowDown(nats.disks[round % 3]) },
  { name: 'API server paused, as by a partition', cause: ({ kube }) => pause(kube.plane.pidOf('kube-apiserver')) },
];

async function pause(pid: number | undefined): Promise<void> {
  if (pid === undefined || pid === 0) return;
  process.kill(pid, 'SIGSTOP');
  try {
    await sleep(FAULT_MS);
  } finally {
    process.kill(pid, 'SIGCONT');
  }
}

async function slowDown(disk: SlowDisk | undefined): Promise<void> {
  disk?.slowDown();
  await sleep(FAULT_MS);
  disk?.restore();
}

async function stepClock(server: ServerProcess | undefined, offsetMs: number): Promise<void> {
  if (server === undefined || server.hasEnded) return;
  try {
    await using inspector = await server.inspector();
    await inspector.evaluate(setClock(offsetMs));
    await sleep(FAULT_MS);
    await inspector.evaluate(setClock(0));
  } catch {
    // A process that ends waits until its inspector disconnects.
    await poll('the end of a process without a context', () => server.hasEnded);
  }
}
