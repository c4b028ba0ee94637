import { once } from 'node:events';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { Worker } from 'node:worker_threads';
import { MAX_RESIDENT_MIB, NoisyNeighbours } from '../../../test/support/gateway/neighbours/noisy-neighbours.ts';
import { quantile } from '../../baseline/baseline.ts';
import { atMost, milliseconds, plain, type Row, times } from '../row.ts';
import { cpuSeconds } from '../support/processes.ts';
import type { AttackOrder } from './attack-thread.ts';
import { ATTACKS } from './attacks.ts';

/** Messages of the victim per part. Parts without an attack alternate with those under one. */
const ROUNDS = 60;
const MAX_RATIO = 3;
interface Part {
  readonly name: string;
  readonly times: readonly number[];
  /** The step with the longest request, and its milliseconds. */
  readonly slowest: string;
  /** Share of one core that the gateway used. */
  readonly gatewayCores: number;
  /** The longest delay of the event loop that measures, in milliseconds. */
  readonly ownDelayMs: number;
}

/** The messages of one agent while another one with a valid token takes what it can get, beside the same messages without it. */
export async function benchNeighbours(): Promise<Row[]> {
  await using neighbours = await NoisyNeighbours.start(startModels);
  await partOf(neighbours, 'warm-up', async () => undefined);
  const quiet: Part[] = [];
  const parts: Part[] = [];
  for (const attack of Object.keys(ATTACKS)) {
    quiet.push(await partOf(neighbours, 'no attack', async () => undefined));
    using attacker = await neighbours.attacker();
    const { deliveryToken } = await attacker.deliver('s-attack');
    parts.push(
      await partOf(neighbours, attack, (isOver) =>
        inThread({ attack, attacker: attacker.identity, deliveryToken }, isOver),
      ),
    );
  }
  neighbours.victim.assertOnlyBusy();
  const busy = neighbours.victim.tenant.unserved.length;
  return rowsOf(quiet, parts, { busy, peakMiB: await neighbours.peakResidentMiB() });
}

async function startModels() {
  const worker = new Worker(new URL('models-thread.ts', import.meta.url));
  const [url] = (await once(worker, 'message')) as [string];
  return {
    url,
    async [Symbol.asyncDispose]() {
      worker.postMessage('end');
      await once(worker, 'exit');
    },
  };
}

async function inThread(order: AttackOrder, isOver: Promise<void>): Promise<void> {
  const worker = new Worker(new URL('attack-thread.ts', import.meta.url), { workerData: order });
  const exited = once(worker, 'exit');
  await isOver;
  worker.postMessage('end');
  await exited;
}

async function partOf(
  neighbours: NoisyNeighbours,
  name: string,
  attack: (isOver: Promise<void>) => Promise<void>,
): Promise<Part> {
  const { victim } = neighbours;
  const from = victim.times.length;
  victim.steps.clear();
  const [started, used] = [performance.now(), cpuSeconds(neighbours.gatewayPid)];
  const delay = monitorEventLoopDelay({ resolution: 1 });
  delay.enable();
  const work = victim.work(ROUNDS, () => true);
  await Promise.all([work, attack(work)]);
  delay.disable();
  const seconds = (performance.now() - started) / 1_000;
  const gatewayCores = (cpuSeconds(neighbours.gatewayPid) - used) / seconds;
  await victim.assertRecords();
  const slowest = slowestStep(victim.steps);
  return { name, times: victim.times.slice(from), slowest, gatewayCores, ownDelayMs: delay.max / 1e6 };
}

function slowestStep(steps: ReadonlyMap<string, readonly number[]>): string {
  const [first] = [...steps]
    .map(([step, all]) => ({ step, most: Math.max(...all) }))
    .toSorted((one, other) => other.most - one.most);
  return first === undefined ? '' : `${first.step} ${milliseconds(first.most)}`;
}

function rowsOf(quiet: readonly Part[], parts: readonly Part[], found: { busy: number; peakMiB: number }): Row[] {
  const p99 = (all: readonly number[]) => quantile(all, 0.99);
  const [undisturbed, attacked] = [quiet, parts].map((all) => all.flatMap((part) => part.times)) as [
    number[],
    number[],
  ];
  const note = [{ name: 'no attack', times: undisturbed }, ...parts].map(noteOf).join('; ');
  const what = 'a message beside a hostile agent, p99 relative to the one without it';
  return [
    atMost('goal', what, p99(attacked) / p99(undisturbed), MAX_RATIO, times, { note }),
    atMost('goal', 'requests of the victim that met a late event loop', found.busy, 0, plain),
    atMost('requirement', 'resident memory of the gateway, MiB', found.peakMiB, MAX_RESIDENT_MIB, plain),
  ];
}

function noteOf(part: Pick<Part, 'name' | 'times'> & Partial<Part>): string {
  const quantiles = [0.5, 0.9, 0.99].map((share) => milliseconds(quantile(part.times, share))).join('/');
  if (part.slowest === undefined) return `p50/p90/p99 ${part.name} ${quantiles}`;
  const { slowest, gatewayCores = 0, ownDelayMs = 0 } = part;
  return `${part.name} ${quantiles}, slowest ${slowest}, gateway ${gatewayCores.toFixed(2)} cores, own delay ${milliseconds(ownDelayMs)}`;
}
