import { isDeepStrictEqual } from 'node:util';
import type { AgentStatus } from '../../api/v1alpha1/agent.ts';
import type { Condition } from '../../api/v1alpha1/common.ts';
import {
  type ConditionUpdate,
  PROGRESS_CONDITIONS,
  TRUST_CONDITION,
  progressConditions,
  reasonOf,
  updateConditions,
  sameConditions,
} from '../conditions.ts';
import type { TrustEvaluation } from '../../policy/trust/evaluate.ts';
import type { Pod } from '../kube/types.ts';
import { trustFields } from '../trust/evaluate-agent.ts';
import { trustCondition } from '../trust/trust-condition.ts';
import { notReady } from './admission.ts';
import type { ApplyResult } from './apply.ts';
import { NUMBER_FIELDS, changesQueueState } from './deferral/status-throttle.ts';
import type { ToolPlan } from '../hygiene/plan.ts';
import type { ObservedAgent } from './observed.ts';
import { type PodPlan, natsUnavailable } from './plan.ts';
import { podState } from '../pods/pod-state.ts';
import { hasSchedule, scheduleCondition, scheduleStatus } from '../schedules/schedule-facts.ts';
import { agentFieldsInForceCondition, canForgeCondition } from '../spec-conditions.ts';

/** Computes the status after the plan was applied. Pure. */
export function summarize(
  observed: ObservedAgent,
  planned: PodPlan,
  applied: ApplyResult,
  { evaluation, tools }: { evaluation: TrustEvaluation | undefined; tools: ToolPlan | undefined },
): AgentStatus {
  const { agent, runtimeState, template } = observed;
  const before = agent.status ?? {};
  const bound =
    applied.kind === 'bound'
      ? { pod: podReference(applied.pod), runtime: template?.className }
      : { pod: undefined, runtime: undefined };
  return {
    ...before,
    ...runtimeFields(runtimeState),
    observedGeneration: agent.metadata.generation,
    ...trustFields(observed, evaluation),
    ...toolFields(before, tools),
    schedule: scheduleField(observed),
    triggers: triggerField(observed),
    ownSchedules: ownScheduleCount(observed),
    ...bound,
    conditions: conditionsOf(observed, planned, applied, evaluation),
  } as AgentStatus;
}

/** Each field is absent until it has an entry, and unchanged until the records of the agent are read. */
function toolFields(
  before: AgentStatus,
  tools: ToolPlan | undefined,
): Pick<AgentStatus, 'deactivatedTools' | 'toolsUsedTogether'> {
  if (tools === undefined) return {};
  const { entries, usedTogether = before.toolsUsedTogether ?? [] } = tools;
  return {
    ...(entries.length === 0 && before.deactivatedTools === undefined ? {} : { deactivatedTools: [...entries] }),
    ...(usedTogether.length === 0 && before.toolsUsedTogether === undefined
      ? {}
      : { toolsUsedTogether: [...usedTogether] }),
  };
}

/** Unchanged until the state of the schedule is read. */
function scheduleField({ agent, schedule, agentSchedules }: ObservedAgent): AgentStatus['schedule'] {
  if (!hasSchedule(agent)) return undefined;
  return schedule === undefined ? agent.status?.schedule : scheduleStatus(schedule, agentSchedules?.spec?.pause);
}

/** Unchanged until what triggers did is read. */
function triggerField({ agent, runtimeState }: ObservedAgent): AgentStatus['triggers'] {
  const { mode, triggers = [] } = agent.spec.schedule ?? {};
  if (mode !== 'Proactive' || triggers.length === 0) return undefined;
  return runtimeState.triggers ?? agent.status?.triggers;
}

/** Unchanged until the schedules of agents are read. */
function ownScheduleCount({ agent, agentSchedules }: ObservedAgent): number | undefined {
  if (agentSchedules === undefined) return agent.status?.ownSchedules;
  return agentSchedules.own.length === 0 ? undefined : agentSchedules.own.length;
}

function conditionsOf(
  observed: ObservedAgent,
  { step, suspended }: PodPlan,
  applied: ApplyResult,
  evaluation: TrustEvaluation | undefined,
): Condition[] {
  const { agent, policy, runtimeState, now } = observed;
  const { spec } = agent;
  const before = agent.status?.conditions;
  const model = modelFinding(observed);
  const ready = readyCondition(observed, step, applied);
  const trust = trustCondition(observed, evaluation);
  const findings: (ConditionUpdate | undefined)[] = [
    ready,
    ...progressConditions(ready),
    activeCondition(suspended),
    protectedCondition(observed),
    model,
    runtimeState.budget,
    runtimeState.heartbeat === 'Reported' ? undefined : runtimeState.heartbeat,
    canForgeCondition(spec, spec.trustPolicyRef.name, policy?.spec),
    agentFieldsInForceCondition(spec, observed),
    scheduleCondition(observed.schedule),
    trust === 'remove' ? undefined : trust,
  ];
  // Only this function sets ModelDenied, so it must also clear it.
  const isStale = model === undefined && reasonOf(before, 'ModelAvailable') === 'ModelDenied';
  const removable = [
    ...PROGRESS_CONDITIONS,
    'CanForge',
    'FieldsInForce',
    ...(runtimeState.heartbeat === undefined ? [] : ['Responsive']),
    // A schedule that is not read yet may still be suspended.
    ...(observed.schedule !== undefined || !hasSchedule(agent) ? ['Scheduled'] : []),
    ...(isStale ? ['ModelAvailable'] : []),
    ...(trust === 'remove' ? [TRUST_CONDITION] : []),
  ];
  const present = findings.filter((finding) => finding !== undefined);
  return updateConditions(before, removable, present, agent.metadata.generation, now);
}

function podReference(pod: Pod) {
  const { nodeName } = pod.spec ?? {};
  return { name: pod.metadata.name, uid: pod.metadata.uid, ...(nodeName === undefined ? {} : { node: nodeName }) };
}

function runtimeFields({ summary, queue }: ObservedAgent['runtimeState']): Partial<AgentStatus> {
  return {
    ...(summary === undefined ? {} : { summary }),
    ...(queue === undefined ? {} : { queue }),
  };
}

function readyCondition(
  observed: ObservedAgent,
  step: PodPlan['step'],
  applied: ApplyResult,
): ConditionUpdate<'Ready'> {
  if (applied.kind === 'refused') return notReady(applied.reason, applied.message);
  if (step.kind === 'none') return step.ready;
  if (applied.kind === 'waiting') return notReady('Starting', applied.message);
  if (applied.kind !== 'bound') return notReady('Starting', 'the pod is being created');
  return natsUnavailable(observed) ?? podCondition(applied.pod, observed.agent.metadata.namespace, observed.delay);
}

function podCondition(pod: Pod, namespace: string, delay: string | undefined): ConditionUpdate<'Ready'> {
  const state = podState(pod);
  const { name } = pod.metadata;
  switch (state.kind) {
    case 'ready':
      return { type: 'Ready', status: 'True', reason: 'Running', message: `pod "${name}" is running` };
    case 'unschedulable':
      return notReady(
        'Unschedulable',
        `pod "${name}" fits no node: ${state.message}; add capacity or lower spec.sandbox.resources`,
      );
    case 'imagePullFailed':
      return notReady(
        'ImagePullFailed',
        `pod "${name}", ${state.message}; correct the image in the Helm values, or the access to the registry`,
      );
    case 'crashLooping':
      return notReady(
        'PodCrashLooping',
        `pod "${name}", ${state.message}; see kubectl logs ${name} --namespace ${namespace} --all-containers --previous`,
      );
    case 'nodeNotReady':
      return notReady(
        'NodeNotReady',
        `node "${state.node}" of pod "${name}" does not respond; a new pod is created when the cluster evicts this one; see kubectl describe node ${state.node}`,
      );
    case 'ended':
      return notReady('PodCrashLooping', `pod "${name}" ended: ${state.message}`);
    case 'terminating':
      return notReady('Starting', `pod "${name}" is terminating; the next pod is created afterwards`);
    case 'starting':
      // The same message until the pod runs, because each intermediate message would cost a status write.
      if (delay === undefined) return notReady('Starting', `pod "${name}" is starting`);
      return notReady('Starting', `pod "${name}" does not start: ${delay}; fix the cause`);
  }
}

function activeCondition(suspended: string | undefined): ConditionUpdate<'Active'> {
  if (suspended !== undefined) return { type: 'Active', status: 'False', reason: 'Suspended', message: suspended };
  return { type: 'Active', status: 'True', reason: 'Active', message: 'not suspended' };
}

/** Undefined keeps the condition: an upgrade of the chart is not reported by two writes for each agent. */
function protectedCondition({ protection, agent }: ObservedAgent): ConditionUpdate<'Protected'> | undefined {
  if (protection.kind === 'notEnforced') {
    const isReported = reasonOf(agent.status?.conditions, 'Protected') !== undefined;
    if (isReported && !protection.isLasting) return undefined;
    return { type: 'Protected', status: 'False', reason: 'AdmissionPolicyMissing', message: protection.message };
  }
  const { namespace } = agent.metadata;
  if (protection.kind === 'protected') {
    return {
      type: 'Protected',
      status: 'True',
      reason: 'NamespaceProtected',
      message: `namespace "${namespace}" is protected`,
    };
  }
  const message = `every user who may edit namespace "${namespace}" can act as any agent in it; label the namespace temper.dev/agents=true`;
  return { type: 'Protected', status: 'False', reason: 'NamespaceNotProtected', message };
}

function modelFinding({ runtimeState, modelError }: ObservedAgent): ConditionUpdate<'ModelAvailable'> | undefined {
  if (modelError === undefined) return runtimeState.model;
  return { type: 'ModelAvailable', status: 'False', reason: 'ModelDenied', message: modelError };
}

/** What gateways decide by. */
const DECIDING_FIELDS = ['trust', 'deactivatedTools', 'toolsUsedTogether'] as const;

/** Does the status have to be written? With `includeNumbers` also when only numbers changed. */
export function statusDiffers(before: AgentStatus | undefined, after: AgentStatus, includeNumbers: boolean): boolean {
  const previous = before ?? {};
  // A changed node alone is not written; it is written with the next change.
  if (previous.pod?.uid !== after.pod?.uid || previous.runtime !== after.runtime || previous.level !== after.level)
    return true;
  if (previous.observedGeneration !== after.observedGeneration) return true;
  if (DECIDING_FIELDS.some((field) => !isDeepStrictEqual(previous[field], after[field]))) return true;
  if (!sameConditions(previous.conditions, after.conditions ?? [])) return true;
  if (changesWork(previous, after)) return true;
  return includeNumbers && numbersDiffer(previous, after);
}

/** Does a schedule appear or end, does a trigger match for the first time, or does an agent without a pod get its first message, or lose its last one? */
function changesWork(before: AgentStatus, after: AgentStatus): boolean {
  if ((before.schedule === undefined) !== (after.schedule === undefined)) return true;
  if (!isDeepStrictEqual(before.schedule?.paused, after.schedule?.paused)) return true;
  if (before.ownSchedules !== after.ownSchedules) return true;
  if ((before.triggers === undefined) !== (after.triggers === undefined)) return true;
  return after.pod === undefined && changesQueueState(before, after);
}

function numbersDiffer(before: AgentStatus, after: AgentStatus): boolean {
  return [...NUMBER_FIELDS, 'schedule' as const].some((field) => !isDeepStrictEqual(before[field], after[field]));
}

/** The JSON merge patch between two statuses. Removed fields become null. */
export function statusPatch(before: AgentStatus | undefined, after: AgentStatus): Record<string, unknown> {
  const removed = Object.keys(before ?? {}).filter((field) => Reflect.get(after, field) === undefined);
  const present = Object.entries(after).filter(([, value]) => value !== undefined);
  const patch: Record<string, unknown> = {
    ...Object.fromEntries(removed.map((field) => [field, null])),
    ...Object.fromEntries(present),
  };
  // A merge patch merges maps, so the old node would remain without an explicit null.
  if (after.pod !== undefined && before?.pod?.node !== undefined) patch['pod'] = { node: null, ...after.pod };
  if (after.schedule !== undefined)
    patch['schedule'] = { ...nullsFor(before?.schedule ?? {}, after.schedule), ...after.schedule };
  if (after.trust !== undefined) patch['trust'] = { ...nullsFor(before?.trust ?? {}, after.trust), ...after.trust };
  return patch;
}

/** A merge patch merges maps, so each member that is gone needs an explicit null. */
function nullsFor(before: object, after: object): Record<string, null> {
  const gone = Object.keys(before).filter((member) => Reflect.get(after, member) === undefined);
  return Object.fromEntries(gone.map((member) => [member, null]));
}
