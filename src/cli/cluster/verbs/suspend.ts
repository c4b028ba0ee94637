import type { ResourceType } from '../../../kube/client/kube-client.ts';
import type { KubeObject } from '../../../kube/informer/store.ts';
import { systemClock } from '../../../lib/clock.ts';
import { TemperError } from '../../../lib/errors.ts';
import { type Json, member, textAt } from '../../../lib/json.ts';
import { type Cluster, toTemperError, openCluster } from '../cluster.ts';
import { AGENTS, TRUST_POLICIES } from '../cluster-kinds.ts';
import type { ClusterOptions } from '../options.ts';
import { type CliIo, EXIT, writeJsonLine } from '../../io.ts';

export interface SuspendOptions extends ClusterOptions {
  suspend: boolean;
  agent?: string | undefined;
  policy?: string;
  /** Milliseconds to wait until the operator reports the change. */
  wait?: number;
  output: 'text' | 'json';
}

type FoundObject = KubeObject & { [key: string]: Json | undefined };

const POLL_MS = 500;

/** Suspends or resumes an agent, or all agents under a policy. Messages stay queued meanwhile. */
export async function suspend(options: SuspendOptions, io: CliIo): Promise<number> {
  const { agent, policy } = options;
  if ((agent === undefined) === (policy === undefined)) {
    throw new TemperError('TEMPER_USAGE', 'name an agent, or use --policy NAME for all agents under it');
  }
  if (policy !== undefined && options.wait !== undefined) {
    const message =
      '--wait works for one agent only; nothing was changed. Leave it out, and read the state with get agents';
    throw new TemperError('TEMPER_USAGE', message);
  }
  await using cluster = await openCluster(options, io);
  const [type, name] = policy === undefined ? [AGENTS, agent ?? ''] : [TRUST_POLICIES, policy];
  // Before the change: a user who may not read the agent cannot wait for it.
  if (options.wait !== undefined) await readAgent(cluster, name, io);
  const patched = await patch(cluster, type, name, options.suspend, io);
  const object = `${type.kind.toLowerCase()}/${name}`;
  const done = options.suspend ? 'suspended' : 'resumed';
  if (options.output === 'json') writeJsonLine(io, { [done]: object, location: cluster.location });
  else io.out(`${object} ${done} in ${cluster.location}\n`);
  if (options.wait === undefined) return EXIT.ok;
  await waitForState(cluster, name, patched.metadata.generation ?? 0, options.suspend, options.wait, io);
  return EXIT.ok;
}

async function patch(
  cluster: Cluster,
  type: ResourceType,
  name: string,
  suspended: boolean,
  io: CliIo,
): Promise<FoundObject> {
  const { kube, namespace } = cluster;
  const verb = suspended ? 'suspending' : 'resuming';
  return kube
    .patch<FoundObject>(type, { namespace, name }, { spec: { suspend: suspended } }, io.signal)
    .catch((error: unknown) => {
      throw toTemperError(error, `${verb} ${type.plural} ${name}`, cluster);
    });
}

async function readAgent(cluster: Cluster, name: string, { signal }: CliIo): Promise<FoundObject> {
  const { kube, namespace, location } = cluster;
  const found = await kube.get<FoundObject>(AGENTS, { namespace, name }, signal).catch((error: unknown) => {
    throw toTemperError(error, `reading agents ${name}`, cluster);
  });
  if (found !== undefined) return found;
  throw new TemperError('TEMPER_NOT_FOUND', `agent "${name}" does not exist in ${location}; see get agents`);
}

/** Waits until the condition Active reports the change for this generation or a later one. */
async function waitForState(
  cluster: Cluster,
  name: string,
  generation: number,
  suspended: boolean,
  milliseconds: number,
  io: CliIo,
): Promise<void> {
  const { location } = cluster;
  const deadline = systemClock.monotonic() + milliseconds;
  let lastMessage = 'the operator has not reconciled it yet';
  for (;;) {
    const found = await readAgent(cluster, name, io);
    const state = activeCondition(found, generation);
    if (state !== undefined) {
      if ((state.status === 'False') === suspended) return;
      lastMessage = state.message;
    }
    if (systemClock.monotonic() >= deadline) {
      const message = `agent "${name}" in ${location} is not ${suspended ? 'suspended' : 'active'} yet: ${lastMessage}`;
      throw new TemperError('TEMPER_TIMEOUT', message);
    }
    await systemClock.sleep(POLL_MS, io.signal);
  }
}

/** The condition Active, when it is about this generation of the spec or a later one. */
function activeCondition(
  found: FoundObject | undefined,
  generation: number,
): { status: string; message: string } | undefined {
  const conditions = member(found?.['status'], 'conditions');
  if (!Array.isArray(conditions)) return undefined;
  const active = conditions.find((condition) => textAt(condition, ['type']) === 'Active');
  const observed = member(active, 'observedGeneration');
  if (active === undefined || typeof observed !== 'number' || observed < generation) return undefined;
  return { status: textAt(active, ['status']), message: textAt(active, ['message']) };
}
