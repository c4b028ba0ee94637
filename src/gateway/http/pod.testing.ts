/** The identity of a pod, for tests. */
export const POD = {
  kind: 'pod',
  namespace: 'team-a',
  podName: 'p',
  podUid: 'pod-1',
  agent: 'scout',
  agentUid: 'a-1',
} as const;
