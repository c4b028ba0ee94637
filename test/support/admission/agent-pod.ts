/** The image of the chart's default release. */
export const RELEASE_IMAGE = 'temper:0.1.0';

const restricted = { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } };

/** A container that the admission policy of agent pods accepts. */
export function agentContainer(change: object = {}) {
  return { name: 'c', image: RELEASE_IMAGE, securityContext: restricted, ...change };
}

/** A pod that the admission policy of agent pods accepts from the operator; `spec` replaces its members. */
export function agentPod(name: string, spec: object = {}, labels: object = { 'temper.dev/agent-pod': 'true' }) {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, labels },
    spec: {
      serviceAccountName: 'temper-agent',
      automountServiceAccountToken: false,
      securityContext: { runAsNonRoot: true, runAsUser: 10_001, seccompProfile: { type: 'RuntimeDefault' } },
      containers: [agentContainer()],
      ...spec,
    },
  };
}
