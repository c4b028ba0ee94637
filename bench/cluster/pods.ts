import { setTimeout as sleep } from 'node:timers/promises';
import { createKubeClient } from '../../src/kube/kube-client.ts';
import { loadClusterAccess } from '../../src/kube/cluster-access.ts';
import { createTransport } from '../../src/kube/transport.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { type Installation, startInstallation } from '../../test/e2e/installation.ts';
import { namespaceObject } from '../../test/e2e/scene.ts';
import { quantile } from '../beside-bare.ts';
import { type Api, createAgent, readyPods, runningAgents } from './agents.ts';
import { atMost, milliseconds, type Row, seconds } from './row.ts';

const AGENTS = 20;
const COLD = 'cold';
const WARM = 'warm';
const MODEL = { model: { primary: 'default/default' } };
const COLD_LIMIT = 3_000;
const WARM_LIMIT = 250;
/** What a pod that became ready still does. */
const QUIET_MS = 2_000;

/** From the creation of an Agent to Ready on a node that runs its containers; one after the other. */
export async function benchPods(): Promise<Row[]> {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) {
    return [{ kind: 'beside', what: 'agents on real pods', value: 'not measured: takes root on Linux' }];
  }
  await using installation = await startInstallation('--set-json', `sandboxClasses=${JSON.stringify([aClass()])}`);
  const access = await loadClusterAccess({ kind: 'file', path: installation.node.kubeconfig }, systemClock);
  const metrics = { count() {}, gauge() {}, observe() {}, watch() {} };
  await using transport = createTransport({ access, clock: systemClock, metrics });
  const api = { transport, client: createKubeClient(transport) };
  await namespaces(installation);
  const cold = await created(api, COLD, () => sleep(QUIET_MS));
  await using pods = await readyPods(api, WARM);
  // One for each agent before, and the one of the pool.
  const warm = await created(api, WARM, async (before) => {
    await pods.count(before + 1);
    await sleep(QUIET_MS);
  });
  return [
    row('real pods: agent created → Ready, cold, image present, p50', cold, COLD_LIMIT, seconds, 1_000),
    row('real pods: warm claim, p50', warm, WARM_LIMIT, milliseconds),
  ];
}

function aClass() {
  const resources = { cpu: '20m', cpuLimit: '1', memory: '192Mi', ephemeralStorage: '64Mi' };
  return { name: 'standard', resources, workspace: '64Mi', pool: [{ namespace: WARM, size: 1 }] };
}

async function namespaces(installation: Installation): Promise<void> {
  for (const namespace of [COLD, WARM]) {
    const metadata = { name: 'standard', namespace };
    const policy = { apiVersion: 'temper.dev/v1alpha1', kind: 'TrustPolicy', metadata, spec: {} };
    await installation.apply(namespaceObject(namespace), policy);
  }
}

/** Milliseconds of each; the first one pays for what is set up once and is left out. */
async function created(api: Api, namespace: string, rest: (before: number) => Promise<unknown>): Promise<number[]> {
  await using running = await runningAgents(api, namespace);
  const times: number[] = [];
  for (let index = 0; index <= AGENTS; index += 1) {
    await rest(index);
    times.push(await createAgent(api, running, namespace, `agent-${index}`, MODEL));
  }
  return times.slice(1);
}

function row(what: string, times: number[], limit: number, show: (value: number) => string, unit = 1): Row {
  const [p50 = 0, p90 = 0, p99 = 0] = [0.5, 0.9, 0.99].map((share) => quantile(times, share) / unit);
  const note = `p90 ${show(p90)}, p99 ${show(p99)}; ${times.length} agents, one after the other, all of the cluster on this machine`;
  return atMost('goal', what, p50, limit / unit, show, { note });
}
