import type { LeaderTask } from '../kube/manager.ts';
import { PRIORITY } from '../kube/ready-keys.ts';
import type { WorkQueue } from '../kube/work-queue.ts';
import type { Clock } from '../lib/clock.ts';
import { messageOf } from '../lib/errors.ts';
import type { Logger } from '../telemetry/log.ts';
import { isLate } from './agent/delay.ts';
import type { OperatorMetrics } from '../telemetry/temper-metrics.ts';
import { INDEX } from './agent/observe.ts';
import { News } from './agent/news.ts';
import { BUS_PATIENCE } from './agent/plan.ts';
import type { Authority } from './authority/authority.ts';
import type { ServerReload } from './authority/server-reload.ts';
import type { StoreLosses } from './bus/store-losses.ts';
import type { Cache } from './cache.ts';
import { countedWakes } from './counts.ts';
import type { Guard } from './guard/guard.ts';
import type { Pod, StoredAgent, StoredPolicy } from './kube-types.ts';
import type { Bus, Facts } from './ports.ts';
import { Sweep } from './sweep.ts';

export interface TaskDeps {
  readonly clock: Clock;
  readonly log: Logger;
  readonly counts?: OperatorMetrics;
  readonly authority: Authority;
  /** Undefined where the bus is somebody else's. */
  readonly serverReload: ServerReload | undefined;
  readonly guard: Guard;
  readonly bus: Bus | undefined;
  readonly facts: Facts;
  readonly storeLosses: StoreLosses;
  readonly agents: Cache<StoredAgent>;
  readonly policies: Cache<StoredPolicy>;
  readonly pods: Cache<Pod>;
  readonly agentQueue: WorkQueue;
  /** Namespaces with agents or with a pool. */
  namespaces(): string[];
  /** All work of a namespace again. */
  again(namespace: string): void;
}

const SECOND = 1_000;
const MINUTE = 60_000;
/** Services get addresses and Secrets are removed without anybody telling us. */
const AUTHORITY_EVERY = MINUTE;
const GUARD_EVERY = MINUTE;
const GUARD_SOON = 2 * SECOND;
const SWEEP_EVERY = 10 * MINUTE;
const LOOK_AGAIN = 10 * SECOND;
const LATE_EVERY = 15 * SECOND;

/** What the leader does beside reconciling. Each goes on whatever fails; the next round tries again. */
export function tasks(deps: TaskDeps): LeaderTask[] {
  const { authority, serverReload, bus } = deps;
  const news = new News(deps.clock);
  const looked = { at: Number.NEGATIVE_INFINITY };
  const rounds: LeaderTask[] = [
    round(deps, 'authority', async (signal) => {
      if (await authority.reconcile(signal)) for (const namespace of deps.namespaces()) deps.again(namespace);
      return authority.doors === undefined ? SECOND : AUTHORITY_EVERY;
    }),
    round(deps, 'guard', (signal) => lookAtGuards(deps, looked, signal)),
    round(deps, 'facts', (signal) => lookAtNews(deps, news, signal)),
    round(deps, 'late', async () => {
      for (const agent of waitingFor(deps)) deps.agentQueue.add(agent, PRIORITY.resync);
      return LATE_EVERY;
    }),
  ];
  if (serverReload !== undefined) {
    rounds.push(round(deps, 'server', (signal) => serverReload.round(authority.server, signal)));
  }
  if (bus === undefined) return rounds;
  const sweep = new Sweep(bus, deps.agents);
  rounds.push(stream(deps, 'wakes', (signal) => countedWakes(bus.wakes(signal), deps.counts)));
  rounds.push(
    round(deps, 'outages', async (signal) => {
      // What every status says of the bus changed, and who slept through it may have messages.
      for await (const _ of bus.outages(BUS_PATIENCE, signal)) {
        for (const namespace of deps.namespaces()) deps.again(namespace);
      }
      return signal.aborted ? 0 : MINUTE;
    }),
  );
  rounds.push(
    round(deps, 'sweep', async (signal) => {
      if (bus.unavailableSince() !== undefined) return LOOK_AGAIN;
      const swept = await sweep.round(signal);
      if (swept > 0) deps.log.info({ agents: swept }, 'removed what the bus kept of agents that are gone');
      return SWEEP_EVERY;
    }),
  );
  return rounds;
}

/** All namespaces each minute; those without guards every other second, since an agent waits there for the moment they are in force. */
async function lookAtGuards(deps: TaskDeps, looked: { at: number }, signal: AbortSignal): Promise<number> {
  const now = deps.clock.monotonic();
  const isTime = now - looked.at >= GUARD_EVERY;
  for (const namespace of deps.namespaces()) {
    if (!isTime && !deps.guard.isMissing(namespace)) continue;
    if (await deps.guard.refresh(namespace, signal)) deps.again(namespace);
  }
  if (isTime) looked.at = now;
  return GUARD_SOON;
}

/** Whose status says something else than what was learned is looked at. */
async function lookAtNews(
  { facts, storeLosses, agents, policies, agentQueue }: TaskDeps,
  news: News,
  signal: AbortSignal,
): Promise<number> {
  for await (const _ of facts.learned(signal)) {
    const store = facts.store();
    // Statuses still say what waited there.
    if (store !== undefined) await storeLosses.look(store, signal);
    for (const agent of agents.list()) {
      const { namespace, name } = agent.metadata;
      const policy = policies.get(namespace, agent.spec.trustPolicyRef.name);
      if (news.isNews(agent, facts.of(agent, policy))) agentQueue.add(`${namespace}/${name}`, PRIORITY.resync);
    }
  }
  return signal.aborted ? 0 : MINUTE;
}

/** Agents whose pods should run by now. That time passes is no change anybody tells us. */
function waitingFor({ pods, clock }: TaskDeps): string[] {
  const late = pods.list().filter((pod) => isLate(pod, clock.now()));
  return late.flatMap(({ metadata }) => {
    const owner = metadata.ownerReferences?.find(({ kind, controller }) => kind === 'Agent' && controller === true);
    return owner === undefined ? [] : [`${metadata.namespace}/${owner.name}`];
  });
}

/** Calls again after as many milliseconds as the last call said; ten seconds after one that failed. */
function round({ clock, log }: TaskDeps, name: string, once: (signal: AbortSignal) => Promise<number>): LeaderTask {
  const run = async (signal: AbortSignal): Promise<void> => {
    while (!signal.aborted) {
      let pause = LOOK_AGAIN;
      try {
        pause = await once(signal);
      } catch (error) {
        if (signal.aborted) return;
        log.warn({ task: name, error: messageOf(error) }, 'a task failed; it is tried again');
      }
      await clock.sleep(pause, signal).catch(() => {});
    }
  };
  return { name, run };
}

/** Each uid that comes is an agent to look at. */
function stream(deps: TaskDeps, name: string, open: (signal: AbortSignal) => AsyncIterable<string>): LeaderTask {
  return round(deps, name, async (signal) => {
    for await (const uid of open(signal)) {
      const agent = deps.agents.byIndex(INDEX.uid, uid)[0];
      if (agent !== undefined) deps.agentQueue.add(`${agent.metadata.namespace}/${agent.metadata.name}`);
    }
    return signal.aborted ? 0 : MINUTE;
  });
}
