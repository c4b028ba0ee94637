import { ANNOTATIONS, LABELS } from '../../api/cluster.ts';
import type { Pod, StoredAgent, StoredPolicy } from '../kube/types.ts';
import { podName } from '../pods/pod-name.ts';
import type { PodTemplate } from '../pods/pod-template.ts';
import type { ApplyResult } from './apply.ts';
import type { ObservedAgent } from './observed.ts';
import { plan } from './plan.ts';
import { evaluateAgent } from '../trust/evaluate-agent.ts';
import { summarize } from './summarize.ts';

export const NOW = new Date('2026-05-04T12:00:00Z');
const TEMPLATE: PodTemplate = { className: 'standard', digest: 'sha256:aa', spec: {} };

export function anAgent(spec: object = {}, status?: object): StoredAgent {
  return {
    apiVersion: 'temper.dev/v1alpha1',
    kind: 'Agent',
    metadata: {
      name: 'analyst',
      namespace: 'team-a',
      uid: 'u-agent',
      resourceVersion: '1',
      generation: 2,
      creationTimestamp: '2026-05-04T08:00:00Z',
    },
    spec: { trustPolicyRef: { name: 'standard' }, model: { primary: 'a/b' }, prompt: { system: 'x' }, ...spec },
    ...(status === undefined ? {} : { status }),
  } as StoredAgent;
}

export function aPolicy(spec: object = {}): StoredPolicy {
  const metadata = { ...anAgent().metadata, name: 'standard', uid: 'u-policy' };
  return { apiVersion: 'temper.dev/v1alpha1', kind: 'TrustPolicy', metadata, spec } as StoredPolicy;
}

export function aPod(
  uid: string,
  change: { name?: string; status?: object; digest?: string; terminating?: boolean } = {},
): Pod {
  const { name = podName({ name: 'analyst', uid: 'u-agent' }, undefined), digest = TEMPLATE.digest } = change;
  return {
    metadata: {
      name,
      uid,
      namespace: 'team-a',
      labels: { [LABELS.agentUid]: 'u-agent' },
      annotations: { [ANNOTATIONS.template]: digest },
      creationTimestamp: '2026-05-04T09:00:00Z',
      ...(change.terminating === true ? { deletionTimestamp: '2026-05-04T11:59:00Z' } : {}),
    },
    status: change.status ?? READY,
  } as Pod;
}

export const READY = { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] };
export function anObservation(change: Partial<ObservedAgent> = {}): ObservedAgent {
  return {
    agent: anAgent(),
    now: NOW,
    boundUid: (change.agent ?? anAgent()).status?.pod?.uid,
    specError: undefined,
    policy: aPolicy(),
    policyError: undefined,
    grantError: undefined,
    modelError: undefined,
    rank: { older: 0, all: 1 },
    protection: { kind: 'protected' },
    hasEgress: true,
    pods: [],
    bound: undefined,
    delay: undefined,
    hasBindingConflict: false,
    template: TEMPLATE,
    warmPod: undefined,
    failures: { count: 0, retryAt: undefined, message: '' },
    pending: undefined,
    lastActivity: undefined,
    runtimeState: {},
    taskEvidence: undefined,
    schedule: undefined,
    agentSchedules: undefined,
    tools: undefined,
    natsUnavailableSince: undefined,
    ...change,
  };
}

/** The status after the plan was applied without an error. */
export function statusOf(observed: ObservedAgent, applied?: ApplyResult) {
  const planned = plan(observed);
  const { step } = planned;
  const pod = step.kind === 'none' || step.kind === 'create' ? undefined : step.pod;
  const done: ApplyResult = applied ?? (pod === undefined ? { kind: 'unbound' } : { kind: 'bound', pod });
  return summarize(observed, planned, done, { evaluation: evaluateAgent(observed, () => undefined), tools: undefined });
}
