import type { StoredAgent } from '../../src/operator/kube/types.ts';

/** A TrustPolicy object; without restrictions by default. */
export function buildTrustPolicy(namespace: string, spec: object = {}, name = 'standard') {
  return { apiVersion: 'temper.dev/v1alpha1', kind: 'TrustPolicy', metadata: { name, namespace }, spec };
}

/** An Agent object under the policy `standard`. `spec` overrides the defaults. */
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

/** The reason of the agent's Ready condition. */
export function readyReason(agent: StoredAgent): string | undefined {
  return agent.status?.conditions?.find(({ type }) => type === 'Ready')?.reason;
}

/** The message of the agent's Ready condition; empty without the condition. */
export function readyMessage(agent: StoredAgent): string {
  return agent.status?.conditions?.find(({ type }) => type === 'Ready')?.message ?? '';
}
