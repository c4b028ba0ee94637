import type { AgentSpec } from '../api/v1alpha1/agent.ts';
import type { TrustPolicySpec } from '../api/v1alpha1/trustpolicy.ts';
import type { PolicyRequest, PolicySnapshot } from './types.ts';

/** A minimal agent with the changes of a test. */
export function anAgentSpec(change: Partial<AgentSpec> = {}): AgentSpec {
  return {
    trustPolicyRef: { name: 'standard' },
    model: { primary: 'openai/gpt-4o-mini' },
    prompt: { system: 'You are careful.' },
    ...change,
  };
}

export interface SnapshotChange {
  agent?: Partial<AgentSpec>;
  policy?: TrustPolicySpec;
  level?: string;
  tainted?: boolean;
  hasPrivateData?: boolean;
  project?: string;
}

/** An agent with a grant for every tool, at level standard, under an empty policy. */
export function aSnapshot({
  agent,
  policy,
  level,
  tainted,
  hasPrivateData,
  project,
}: SnapshotChange = {}): PolicySnapshot {
  return {
    agent: { name: 'analyst', namespace: 'team-a', spec: anAgentSpec({ grants: { tools: ['*'] }, ...agent }) },
    policy: { name: 'standard', spec: policy ?? {} },
    level: level ?? 'standard',
    tainted: tainted ?? false,
    ...(hasPrivateData === undefined ? {} : { hasPrivateData }),
    workspace: '/workspace',
    ...(project === undefined ? {} : { project }),
  };
}

type ToolRequest = Extract<PolicyRequest, { kind: 'Tool' }>;

/** A listing of a file tool that reads. */
export function aTool(change: Partial<ToolRequest> = {}): ToolRequest {
  return { kind: 'Tool', name: 'file_read', category: 'file_system', action: 'code:read', forged: false, ...change };
}
