import { DEFAULT_LEVELS } from '../../api/v1alpha1/actions.ts';
import type { AgentStatus } from '../../api/v1alpha1/agent.ts';
import type { Condition } from '../../api/v1alpha1/common.ts';
import { type Finding, reasonOf, sameConditions, withFindings, without } from '../conditions.ts';
import type { Pod } from '../kube-types.ts';
import type { Applied } from './apply.ts';
import { LIVE, startsOrStopsWaiting } from './news.ts';
import type { Observed } from './observed.ts';
import { type Plan, busAway } from './plan.ts';
import { podState } from './pod-state.ts';

/** The status after the plan was carried out. Pure. */
export function summarize(observed: Observed, planned: Plan, applied: Applied): AgentStatus {
  const { agent, policy, facts, template } = observed;
  const before = agent.status ?? {};
  const bound =
    applied.kind === 'bound'
      ? { pod: podReference(applied.pod), runtime: template?.className }
      : { pod: undefined, runtime: undefined };
  return {
    ...before,
    ...liveFacts(facts),
    observedGeneration: agent.metadata.generation,
    ...(policy === undefined ? {} : { level: before.level ?? policy.spec.level?.initial ?? DEFAULT_LEVELS.initial }),
    ...bound,
    conditions: conditionsOf(observed, planned, applied),
  } as AgentStatus;
}

function conditionsOf(observed: Observed, { step, suspended }: Plan, applied: Applied): Condition[] {
  const { agent, facts, now } = observed;
  const before = agent.status?.conditions;
  const findings: Finding[] = [readiness(observed, step, applied), activity(suspended), fence(observed)];
  const model = modelFinding(observed);
  if (model !== undefined) findings.push(model);
  if (facts.budget !== undefined) findings.push(facts.budget);
  // Nobody but this rule says ModelDenied, so nobody else would take it back.
  const isOver = model === undefined && reasonOf(before, 'ModelAvailable') === 'ModelDenied';
  const kept = isOver ? without(before, 'ModelAvailable') : before;
  return withFindings(kept, findings, agent.metadata.generation, now);
}

function podReference(pod: Pod) {
  const { nodeName } = pod.spec ?? {};
  return { name: pod.metadata.name, uid: pod.metadata.uid, ...(nodeName === undefined ? {} : { node: nodeName }) };
}

function liveFacts({ summary, queue, tools }: Observed['facts']): Partial<AgentStatus> {
  return {
    ...(summary === undefined ? {} : { summary }),
    ...(queue === undefined ? {} : { queue }),
    ...(tools === undefined ? {} : { tools }),
  };
}

function readiness(observed: Observed, step: Plan['step'], applied: Applied): Finding<'Ready'> {
  if (applied.kind === 'refused') return no(applied.reason, applied.message);
  if (step.kind === 'none') return step.ready;
  if (applied.kind === 'waiting') return no('Starting', applied.message);
  if (applied.kind !== 'bound') return no('Starting', 'its pod is being made');
  return busAway(observed) ?? ofPod(applied.pod, observed.agent.metadata.namespace, observed.delay);
}

function ofPod(pod: Pod, namespace: string, delay: string | undefined): Finding<'Ready'> {
  const state = podState(pod);
  const { name } = pod.metadata;
  switch (state.kind) {
    case 'ready':
      return { type: 'Ready', status: 'True', reason: 'Running', message: `pod "${name}" runs` };
    case 'unschedulable':
      return no(
        'Unschedulable',
        `pod "${name}" fits no node: ${state.message}; add room or lower spec.sandbox.resources`,
      );
    case 'imagePullFailed':
      return no(
        'ImagePullFailed',
        `pod "${name}", ${state.message}; correct the image in the release's values, or the registry's access`,
      );
    case 'crashLooping':
      return no(
        'PodCrashLooping',
        `pod "${name}", ${state.message}; see kubectl logs ${name} --namespace ${namespace} --all-containers --previous`,
      );
    case 'nodeNotReady':
      return no(
        'NodeNotReady',
        `node "${state.node}" of pod "${name}" does not answer; the next pod is made when the cluster gives this one up; see kubectl describe node ${state.node}`,
      );
    case 'ended':
      return no('PodCrashLooping', `pod "${name}" ended: ${state.message}`);
    case 'terminating':
      return no('Starting', `pod "${name}" is being removed; the next one is made after it`);
    case 'starting':
      // The same words until it runs: every other step would cost a write.
      if (delay === undefined) return no('Starting', `pod "${name}" starts`);
      return no('Starting', `pod "${name}" does not start: ${delay}; correct what it names`);
  }
}

function no(reason: string, message: string): Finding<'Ready'> {
  return { type: 'Ready', status: 'False', reason, message };
}

function activity(suspended: string | undefined): Finding<'Active'> {
  if (suspended !== undefined) return { type: 'Active', status: 'False', reason: 'Suspended', message: suspended };
  return { type: 'Active', status: 'True', reason: 'Active', message: 'nothing stops it' };
}

function fence({ guard, agent }: Observed): Finding<'Fenced'> {
  if (guard.kind === 'missing') {
    return { type: 'Fenced', status: 'False', reason: 'GuardMissing', message: guard.message };
  }
  const { namespace } = agent.metadata;
  if (guard.kind === 'fenced') {
    return { type: 'Fenced', status: 'True', reason: 'NamespaceFenced', message: `namespace "${namespace}" is fenced` };
  }
  const message = `whoever may edit namespace "${namespace}" can act as every agent in it; label the namespace temper.dev/agents=true`;
  return { type: 'Fenced', status: 'False', reason: 'NamespaceNotFenced', message };
}

function modelFinding({ facts, modelProblem }: Observed): Finding<'ModelAvailable'> | undefined {
  if (modelProblem === undefined) return facts.model;
  return { type: 'ModelAvailable', status: 'False', reason: 'ModelDenied', message: modelProblem };
}

/** Is there anything to write? `liveToo` asks about the numbers as well. */
export function statusDiffers(before: AgentStatus | undefined, after: AgentStatus, liveToo: boolean): boolean {
  const was = before ?? {};
  // The node is written with the next thing that is: being placed is no news of its own.
  if (was.pod?.uid !== after.pod?.uid || was.runtime !== after.runtime || was.level !== after.level) return true;
  if (was.observedGeneration !== after.observedGeneration) return true;
  if (!sameConditions(was.conditions, after.conditions ?? [])) return true;
  if (after.pod === undefined && startsOrStopsWaiting(was, after)) return true;
  return liveToo && LIVE.some((field) => was[field] !== after[field]);
}

/** As a merge patch: what is gone is said to be. */
export function statusPatch(before: AgentStatus | undefined, after: AgentStatus): Record<string, unknown> {
  const gone = Object.keys(before ?? {}).filter((field) => Reflect.get(after, field) === undefined);
  const there = Object.entries(after).filter(([, value]) => value !== undefined);
  const patch: Record<string, unknown> = {
    ...Object.fromEntries(gone.map((field) => [field, null])),
    ...Object.fromEntries(there),
  };
  // A merge patch merges maps: what the old one had and the new one lacks would stay.
  if (after.pod !== undefined && before?.pod?.node !== undefined) patch['pod'] = { node: null, ...after.pod };
  return patch;
}
