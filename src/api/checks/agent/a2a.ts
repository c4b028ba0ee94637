import type { Finding, ValidPart } from '../../findings.ts';
import type { AgentSpec } from '../../v1alpha1/agent.ts';

/** An agent that is available over A2A has callers. */
export function a2aHasCallers({ a2a }: ValidPart<AgentSpec>): Finding[] {
  if (a2a?.enabled !== true || (a2a.callers ?? []).length > 0) return [];
  return [
    {
      path: ['spec', 'a2a'],
      rule: 'a2a-callers',
      message: 'spec.a2a.enabled has no effect without spec.a2a.callers: no caller reaches the agent',
      fix: 'list the ServiceAccounts that may call the agent in spec.a2a.callers',
    },
  ];
}
