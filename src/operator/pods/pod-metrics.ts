import type { OperatorMetrics } from '../../telemetry/temper-metrics.ts';
import type { ApplyResult } from '../agent/apply.ts';
import type { ObservedAgent } from '../agent/observed.ts';
import type { PodPlan } from '../agent/plan.ts';
import { reasonOf } from '../conditions.ts';
import { podState } from './pod-state.ts';
import type { PodTemplate } from './pod-template.ts';
import type { StartTimes } from './start-times.ts';

/** Whether a warm pool of the namespace has pods of this template. An agent with its own resources or files has another template. */
export type HasPool = (namespace: string, template: PodTemplate) => boolean;

export interface PodMetricsDeps {
  readonly starts: StartTimes;
  readonly operatorMetrics: OperatorMetrics | undefined;
  readonly hasPool: HasPool;
}

/** What one reconcile of an agent did with its pod. */
export interface PodChange {
  readonly observed: ObservedAgent;
  readonly planned: PodPlan;
  readonly applied: ApplyResult;
  /** The reason of Ready that the reconcile wrote. */
  readonly ready: string | undefined;
}

type ReplacementReason = 'conflict' | 'deleted' | 'ended' | 'template';
/** Reasons of an agent without a pod that gets its next pod later, unlike an agent that is suspended, idle or refused. */
const POD_FOLLOWS: ReadonlySet<string> = new Set(['PodCrashLooping', 'AdmissionPolicyMissing']);

/** Call before the plan is applied. */
export function recordPlan({ starts }: PodMetricsDeps, { agent, bound }: ObservedAgent, { step }: PodPlan): void {
  const { uid } = agent.metadata;
  const before = reasonOf(agent.status?.conditions, 'Ready');
  const needsNoPod = step.kind === 'none' && !POD_FOLLOWS.has(step.ready.reason);
  if (needsNoPod || (step.kind === 'keep' && before === 'Running')) starts.cancel(uid);
  else if (step.kind !== 'keep' && bound === undefined && agent.status?.pod === undefined) {
    starts.begin(uid, before === 'Idle' ? 'wake' : 'cold');
  }
}

/** Call after the status was written, so that a retried reconcile is not counted twice. */
export function recordChange({ starts, operatorMetrics, hasPool }: PodMetricsDeps, change: PodChange): void {
  const { uid } = change.observed.agent.metadata;
  const claim = claimOutcome(change, hasPool);
  if (claim !== undefined) operatorMetrics?.count('temper_pool_claims_total', { outcome: claim });
  if (claim === 'hit') starts.claimed(uid);
  const reason = replacementReason(change);
  if (reason !== undefined) operatorMetrics?.count('temper_pods_replaced_total', { reason });
  if (change.ready === 'Running') starts.ready(uid);
}

/** Undefined for a reconcile that needed no pod, and for an agent that no pool serves. */
function claimOutcome(
  { observed, planned: { step }, applied }: PodChange,
  hasPool: HasPool,
): 'hit' | 'lost' | 'miss' | undefined {
  if (step.kind === 'claim' && applied.kind === 'bound') return 'hit';
  if (step.kind === 'claim' && applied.kind === 'waiting') return 'lost';
  if (step.kind !== 'create' || applied.kind !== 'bound') return undefined;
  const existed = observed.pods.some(({ metadata }) => metadata.name === step.name);
  return !existed && hasPool(observed.agent.metadata.namespace, step.template) ? 'miss' : undefined;
}

/** Why the agent leaves the pod that it is bound to; undefined when it keeps the pod, or needs none. */
function replacementReason({ observed, planned: { step }, applied }: PodChange): ReplacementReason | undefined {
  const { boundUid: previous, bound, hasBindingConflict } = observed;
  if (previous === undefined || (applied.kind === 'bound' && applied.pod.metadata.uid === previous)) return undefined;
  if (step.kind === 'none' && !POD_FOLLOWS.has(step.ready.reason)) return undefined;
  if (hasBindingConflict) return 'conflict';
  const state = bound === undefined ? 'terminating' : podState(bound).kind;
  if (state === 'terminating') return 'deleted';
  return state === 'ended' ? 'ended' : 'template';
}
