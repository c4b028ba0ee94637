import type { AgentSpec } from '../api/v1alpha1/agent.ts';
import type { RiskName, ToolCategoryName } from '../api/v1alpha1/actions.ts';
import type { ForgeMode, ToolApi } from '../api/v1alpha1/common.ts';
import type { TrustPolicySpec } from '../api/v1alpha1/trustpolicy.ts';
import type { Json } from '../lib/json.ts';

export type ToolCategory = ToolCategoryName;

/** The levels of tool categories that have their own. */
export type CategoryLevels = Readonly<Partial<Record<ToolCategory, string>>>;

/** `category:action`: a built-in one, or a custom one that the policy registers. */
export type ActionType = string;

export type Risk = RiskName;

/** How much runs without approval; loosest first. */
export type AutonomyPreset = 'Full' | 'Semi' | 'Supervised' | 'Locked';

/** A request for a decision: listing or calling a tool, forging one, or one use of a host function. */
export type PolicyRequest =
  /** Without `arguments`: may the tool be listed? A tool that may not be listed may not be called. */
  | {
      kind: 'Tool';
      name: string;
      category: ToolCategory;
      action: ActionType;
      forged: boolean;
      arguments?: Json;
      /** Patterns for the hosts that the tool may send to. */
      hosts?: readonly string[];
    }
  | { kind: 'Forge'; mode: ForgeMode; apis: readonly ToolApi[]; domains: readonly string[]; paths: readonly string[] }
  | { kind: 'Network'; host: string; port: number }
  | { kind: 'File'; path: string; access: 'read' | 'write' }
  | { kind: 'Memory'; key: string; access: 'read' | 'write' }
  /** `child`: the agent started the receiver. */
  | { kind: 'Message'; agent: string; child?: boolean }
  /** Starting a child agent: a copy of the template, or without one a child whose manifest the agent writes. */
  | { kind: 'Spawn'; template?: string }
  /** Ending a child agent. `child`: the agent itself started it. */
  | { kind: 'Kill'; agent: string; child?: boolean }
  /**
   * One more schedule that the agent makes for itself. `others`: how many it has; `runsPerHour`: the runs of all of them in one hour;
   * `depth`: of the message that the agent works on.
   */
  | { kind: 'Schedule'; others?: number; runsPerHour?: number; depth?: number }
  /** Publishing an event under a subject. */
  | { kind: 'Publish'; subject: string }
  /** Getting the events whose subjects match the pattern, or that of one event. */
  | { kind: 'Subscribe'; pattern: string }
  /** The resolved `provider/model`, never `default/default`. */
  | { kind: 'Model'; model: string }
  /** May the promotion of a tool proceed? Tier Shared always needs an approver. */
  | { kind: 'Promote'; tool: string; tier: 'Agent' | 'Shared' };

/** Everything a decision depends on, at one point in time. */
export interface PolicySnapshot {
  agent: { name: string; namespace: string; spec: AgentSpec };
  policy: { name: string; spec: TrustPolicySpec };
  /** The earned level; the effective level is the lower of this and the policy's ceiling. */
  level: string;
  /** The levels of tool categories that have their own, with strategy type `PerCategory`. */
  categoryLevels?: CategoryLevels;
  /** 0 for an agent without a parent, 1 for its children. */
  generation?: number;
  /** The session contains untrusted content. */
  tainted: boolean;
  /** The session contains private data. It matters in a tainted session only. */
  hasPrivateData?: boolean;
  /** Absolute POSIX path. Relative file paths of the agent are resolved against it. */
  workspace: string;
  /** Absolute POSIX path of the project that contains the workspace; file scope `Project` allows it. Absent: the workspace. */
  project?: string;
}

export type Effect = 'Allow' | 'Deny' | 'Escalate';

export interface Decision {
  effect: Effect;
  /** Stable name of the rule that decided, e.g. `grant.tools`, `level.category`, `rules.deny`. */
  rule: string;
  /** One sentence for users and models: the subject, the reason, and what would be allowed. */
  reason: string;
  /** For a tool, the risk of its action; otherwise `low` for a request that only reads, `medium` or `high` for the others. */
  risk: Risk;
}

/** One evaluated rule of a decision. */
export interface RuleTrace {
  rule: string;
  verdict: 'passed' | 'allowed' | 'denied' | 'escalated' | 'not-applicable';
  detail: string;
}

export interface ExplainedDecision extends Decision {
  trace: RuleTrace[];
}

/** A compiled snapshot. Decisions are pure. */
export interface Decider {
  decide(request: PolicyRequest): Decision;
  explain(request: PolicyRequest): ExplainedDecision;
  readonly forgeLimits: ForgeLimits;
  /** The effective level: the lower of the earned one and the policy's ceiling. */
  readonly level: string;
  /** The programs that terminal tools, and what they start, may start. */
  readonly programs: readonly string[] | 'any';
}

/** Upper bounds for every forged tool of the agent, from policy and level. */
export interface ForgeLimits {
  allowed: boolean;
  modes: readonly ForgeMode[];
  apis: readonly ToolApi[];
  domains: readonly string[];
  durationMilliseconds: number;
  memoryBytes: number;
  sessionTools: number;
  agentTools: number;
  minTestCases: number;
  /** Digest of the policy's spec, for the record. */
  policyRevision?: string;
}
