import { LABELS } from '../../api/cluster.ts';
import { messageOf } from '../../lib/errors.ts';
import type { KubeClient } from '../../kube/client.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Logger } from '../../telemetry/log.ts';
import type { Cache } from '../cache.ts';
import type { OperatorConfig, SandboxClass } from '../config.ts';
import { reasonOf } from '../conditions.ts';
import type { Guard } from '../guard/guard.ts';
import { type Pod, type StoredAgent, type StoredPolicy, TYPES } from '../kube-types.ts';
import type { Pool } from '../pool/pool.ts';
import type { Bus, Facts } from '../ports.ts';
import { isOurs } from './apply.ts';
import { delayOf, isLate } from './delay.ts';
import type { Examination } from './examination.ts';
import type { Failures } from './failures.ts';
import type { Observed } from './observed.ts';
import { podState } from './pod-state.ts';
import type { PodTemplate, PodTemplates } from './pod-template.ts';

export interface ObserveDeps {
  readonly client: KubeClient;
  readonly clock: Clock;
  readonly config: OperatorConfig;
  readonly templates: PodTemplates;
  readonly agents: Cache<StoredAgent>;
  readonly policies: Cache<StoredPolicy>;
  readonly pods: Cache<Pod>;
  readonly examination: Examination;
  readonly failures: Failures;
  readonly facts: Facts;
  readonly bus: Bus | undefined;
  readonly pool: Pool;
  readonly guard: Guard;
}

/** Indexes the caches need. */
export const INDEX = { policy: 'policy', boundPod: 'boundPod', agent: 'agent', uid: 'uid' } as const;

export function addIndexes(agents: Cache<StoredAgent>, pods: Cache<Pod>): void {
  agents.addIndex(INDEX.policy, ({ metadata, spec }) => [`${metadata.namespace}/${spec.trustPolicyRef.name}`]);
  agents.addIndex(INDEX.boundPod, ({ status }) => (status?.pod === undefined ? [] : [status.pod.uid]));
  agents.addIndex(INDEX.uid, ({ metadata }) => [metadata.uid]);
  pods.addIndex(INDEX.agent, ({ metadata }) => {
    const uid = metadata.labels?.[LABELS.agentUid];
    return uid === undefined ? [] : [uid];
  });
}

/** All reads of a reconcile. Only what the caches cannot know is asked of a server. */
export async function observe(
  deps: ObserveDeps,
  agent: StoredAgent,
  log: Logger,
  signal: AbortSignal,
): Promise<Observed> {
  const { uid, namespace } = agent.metadata;
  const now = deps.clock.now();
  // Numbers of a spec that breaks a rule may not even be readable.
  const specProblem = deps.examination.specProblem(agent) ?? classProblem(deps.config, agent);
  const template = specProblem === undefined ? templateOf(deps, agent) : undefined;
  const rules = rulesOf(deps, agent);
  const { bound, pods } = await podsOf(deps, agent, signal);
  const guard = await deps.guard.state(namespace, signal);
  const { pending, lastActivity } = await workOf(deps, agent, log, signal);
  const end = bound === undefined ? undefined : podState(bound);
  if (end?.kind === 'ended') deps.failures.record(uid, bound?.metadata.uid, end.message, now);
  return {
    agent,
    now,
    ...rules,
    specProblem,
    guard,
    pods,
    bound,
    delay: await whatDelays(deps, bound, now, log, signal),
    boundTwice: isBoundTwice(deps, agent),
    template,
    // Last: nothing after it can fail, so whoever gets the observation lets go of the pod again.
    warm: bound !== undefined || template === undefined ? undefined : deps.pool.reserve(namespace, template),
    failures: deps.failures.of(uid),
    pending,
    lastActivity,
    facts: deps.facts.of(agent, rules.policy),
    busUnavailableSince: deps.bus?.unavailableSince(),
  };
}

type Rules = Pick<Observed, 'policy' | 'policyProblem' | 'grantProblem' | 'modelProblem' | 'rank'>;

function rulesOf(deps: ObserveDeps, agent: StoredAgent): Rules {
  const { policies, examination } = deps;
  const policy = policies.get(agent.metadata.namespace, agent.spec.trustPolicyRef.name);
  const beyond = policy === undefined ? undefined : examination.beyondPolicy(agent, policy);
  return {
    policy,
    policyProblem: policy === undefined ? undefined : examination.specProblem(policy),
    grantProblem: beyond?.grant,
    modelProblem: beyond?.model,
    rank: rankOf(deps, agent),
  };
}

function classProblem(config: OperatorConfig, { spec }: StoredAgent): string | undefined {
  const { sandboxClasses } = config;
  if (classOf(config, spec) !== undefined) return undefined;
  const offered = sandboxClasses.map(({ name }) => `"${name}"`).join(', ');
  return `spec.sandbox.class: there is no sandbox class "${spec.sandbox?.class}"; use one of ${offered}`;
}

function isBoundTwice({ agents }: ObserveDeps, { status }: StoredAgent): boolean {
  return status?.pod !== undefined && agents.byIndex(INDEX.boundPod, status.pod.uid).length > 1;
}

function classOf({ sandboxClasses }: OperatorConfig, { sandbox }: StoredAgent['spec']): SandboxClass | undefined {
  const wanted = sandbox?.class;
  return sandboxClasses.find(({ name }) => wanted === undefined || name === wanted);
}

function templateOf({ config, templates }: ObserveDeps, { spec }: StoredAgent): PodTemplate | undefined {
  const found = classOf(config, spec);
  return found === undefined ? undefined : templates.of(found, spec.sandbox);
}

/** The cache may be behind the pod that was just bound: before such a pod counts as gone, the API server is asked. */
async function podsOf(deps: ObserveDeps, agent: StoredAgent, signal: AbortSignal) {
  const { namespace, uid } = agent.metadata;
  const labelled = deps.pods.byIndex(INDEX.agent, uid);
  const known = labelled.filter((pod) => pod.metadata.namespace === namespace && isOurs(pod, agent));
  const wanted = agent.status?.pod;
  if (wanted === undefined) return { bound: undefined, pods: known };
  const cached = deps.pods.get(namespace, wanted.name);
  if (cached?.metadata.uid === wanted.uid) return { bound: cached, pods: withPod(known, cached) };
  const asked = await deps.client.get<Pod>(TYPES.pods, { namespace, name: wanted.name }, signal);
  if (asked?.metadata.uid !== wanted.uid) return { bound: undefined, pods: known };
  return { bound: asked, pods: withPod(known, asked) };
}

/** Nothing depends on it but the words of a condition. */
async function whatDelays(
  { client }: ObserveDeps,
  bound: Pod | undefined,
  now: Date,
  log: Logger,
  signal: AbortSignal,
): Promise<string | undefined> {
  if (bound === undefined || !isLate(bound, now)) return undefined;
  try {
    return await delayOf(client, bound, signal);
  } catch (error) {
    log.warn({ pod: bound.metadata.name, error: messageOf(error) }, 'what holds a pod up could not be read');
    return undefined;
  }
}

function withPod(pods: readonly Pod[], pod: Pod): Pod[] {
  return [...pods.filter(({ metadata }) => metadata.uid !== pod.metadata.uid), pod];
}

/** By age, so that who was there first stays. Only counted where the policy has a limit. */
function rankOf({ agents, policies }: ObserveDeps, agent: StoredAgent): { older: number; all: number } {
  const { namespace, uid, creationTimestamp } = agent.metadata;
  const key = `${namespace}/${agent.spec.trustPolicyRef.name}`;
  if (policies.get(namespace, agent.spec.trustPolicyRef.name)?.spec.quotas?.agents === undefined)
    return { older: 0, all: 0 };
  const all = agents.byIndex(INDEX.policy, key).filter(({ metadata }) => metadata.deletionTimestamp === undefined);
  const age = `${creationTimestamp} ${uid}`;
  const older = all.filter(({ metadata }) => `${metadata.creationTimestamp} ${metadata.uid}` < age);
  return { older: older.length, all: all.length };
}

/** Asked only where the answer matters: an agent that sleeps, or may go to sleep. A bus that does not answer puts nobody to sleep. */
async function workOf(
  { bus }: ObserveDeps,
  { spec, status, metadata }: StoredAgent,
  log: Logger,
  signal: AbortSignal,
): Promise<Pick<Observed, 'pending' | 'lastActivity'>> {
  const unknown = { pending: undefined, lastActivity: undefined };
  if (bus === undefined || spec.idle?.scaleToZeroAfter === undefined) return unknown;
  const isStable = status?.pod !== undefined || reasonOf(status?.conditions, 'Ready') === 'Idle';
  if (!isStable) return unknown;
  try {
    // Activity first: what arrives between the two questions is then waiting at the second.
    const lastActivity = status?.pod === undefined ? undefined : await bus.lastActivity(metadata.uid, signal);
    return { lastActivity, pending: await bus.pending(metadata.uid, signal) };
  } catch (error) {
    // That it is away is told once, by the connection.
    if (bus.unavailableSince() === undefined) {
      log.warn({ error: messageOf(error) }, 'the bus did not say how many messages wait');
    }
    return unknown;
  }
}
