import type { AgentSpec } from '../api/v1alpha1/agent.ts';
import type { ToolCategoryName } from '../api/v1alpha1/actions.ts';
import type { ForgeMode, ToolApi } from '../api/v1alpha1/common.ts';
import type { TrustPolicySpec } from '../api/v1alpha1/trustpolicy.ts';
import type { Json } from '../lib/json.ts';

export type ToolCategory = ToolCategoryName;

/** `category:action`, one of the registered ones. */
export type ActionType = string;

export type Risk = 'low' | 'medium' | 'high' | 'critical';

/** How much runs without a person; loosest first. */
export type AutonomyPreset = 'Full' | 'Semi' | 'Supervised' | 'Locked';

/** What may be decided upon: a tool being listed or called, a forge, or one use of a host function. */
export type PolicyRequest =
  /** `arguments` absent: may it be listed? Listed-denied implies called-denied. */
  | { kind: 'Tool'; name: string; category: ToolCategory; action: ActionType; forged: boolean; arguments?: Json }
  | { kind: 'Forge'; mode: ForgeMode; apis: readonly ToolApi[]; domains: readonly string[]; paths: readonly string[] }
  | { kind: 'Network'; host: string; port: number }
  | { kind: 'File'; path: string; access: 'read' | 'write' }
  | { kind: 'Memory'; key: string; access: 'read' | 'write' }
  | { kind: 'Message'; agent: string }
  /** The resolved `provider/model`, never `default/default`. */
  | { kind: 'Model'; model: string }
  /** May the promotion of a tool go on? Shared always waits for a person. */
  | { kind: 'Promote'; tool: string; tier: 'Agent' | 'Shared' };

/** Everything a decision depends on, frozen at one moment. */
export interface PolicySnapshot {
  agent: { name: string; namespace: string; spec: AgentSpec };
  policy: { name: string; spec: TrustPolicySpec };
  /** The level earned; what counts is the lower of this and the policy's ceiling. */
  level: string;
  /** Untrusted content is in the context of the session. */
  tainted: boolean;
  /** Absolute POSIX path. Relative file paths of the agent are read as below it. */
  workspace: string;
  /** Absolute POSIX path of the project the workspace is part of, what file scope `Project` opens. Absent: the workspace. */
  project?: string;
}

export type Effect = 'Allow' | 'Deny' | 'Escalate';

export interface Decision {
  effect: Effect;
  /** Stable name of the rule that decided, e.g. `grant.tools`, `level.category`, `rules.deny`. */
  rule: string;
  /** One sentence for people and models: what was decided about what, and what would be allowed. */
  reason: string;
  /** Of the action for a tool; `low` for a request that only reads, `medium` or `high` for the others. */
  risk: Risk;
}

/** One rule passed on the way to a decision. */
export interface RuleTrace {
  rule: string;
  verdict: 'passed' | 'allowed' | 'denied' | 'escalated' | 'not-applicable';
  detail: string;
}

export interface ExplainedDecision extends Decision {
  trail: RuleTrace[];
}

/** A snapshot made ready for many decisions; pure. */
export interface Decider {
  decide(request: PolicyRequest): Decision;
  explain(request: PolicyRequest): ExplainedDecision;
  readonly ceilings: ForgeCeilings;
  /** The effective level: the lower of the earned one and the policy's ceiling. */
  readonly level: string;
}

/** What the policy and the level let any forged tool of this agent have. */
export interface ForgeCeilings {
  allowed: boolean;
  modes: readonly ForgeMode[];
  apis: readonly ToolApi[];
  domains: readonly string[];
  durationMilliseconds: number;
  memoryBytes: number;
  sessionTools: number;
  agentTools: number;
  minTestCases: number;
}
