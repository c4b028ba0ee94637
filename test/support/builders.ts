import type { StoredAgent } from '../../src/operator/kube/types.ts';

export function buildTrustPolicy(namespace: string, spec: object = {}, name = 'standard') {
  return { apiVersion: 'temper.dev/v1alpha1', kind: 'TrustPolicy', metadata: { name, namespace }, spec };
}

export function buildAgent(namespace: string, name: string, spec: object = {}) {
  return {
    apiVersion: 'temper.dev/v1alpha1',
    kind: 'Agent',
    metadata: { name, namespace },
    spec: {
      trustPolicyRef: { name: 'standard' },
      model: { primary: 'openai/gpt-4o-mini' },
      prompt: { system: 'Be exact.' },
      ...spec,
    },
  };
}

export function readyReason(agent: StoredAgent): string | undefined {
  return agent.status?.conditions?.find(({ type }) => type === 'Ready')?.reason;
}

export function readyMessage(agent: StoredAgent): string {
  return agent.status?.conditions?.find(({ type }) => type === 'Ready')?.message ?? '';
}
