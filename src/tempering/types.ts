import type { Tier } from '../api/v1alpha1/common.ts';
import type { ToolArtifact } from '../api/v1alpha1/emergenttool.ts';
import type { JudgeVerdict } from '../forge/types.ts';
import type { Digest } from '../lib/canonical.ts';
import type { ErrorCode } from '../lib/error-codes.ts';
import type { Json } from '../lib/json.ts';
import type { CallOptions } from '../lib/call-options.ts';

/** A forged tool with its storage path, owner and lifecycle state. */
export interface RegisteredTool {
  /** Storage path `<collection>/<object name>`; unique per tier, owner and digest. */
  object: string;
  artifact: ToolArtifact;
  digest: Digest;
  tier: Tier;
  /** The agent and session that forged it. For a Shared tool this is only the origin; it has no owner. */
  owner: { agent: string; namespace: string; session: string };
  /** Agents and users that contributed to it, as `agent/<name>` or `user/<name>`. They must not approve it. */
  contributors: string[];
  verdicts: JudgeVerdict[];
  /** The model that wrote it. This model must not review it. */
  authorModel: string;
  /** The source is not part of the stored object, so the tool can be neither Shared nor exported. */
  sourceWithheld: boolean;
  /** RFC 3339. */
  acceptedAt: string;
  active: boolean;
  /** Why it is not active. */
  inactiveReason?: string;
}

/** An agent in one of its sessions; decides which tools are visible. */
export interface ToolScope {
  agent: string;
  namespace: string;
  session: string;
}

/** One successful or failed use. Inputs are stored (at most 50 per tool, 32 KiB each), because promotion re-runs them. */
export interface ToolUse extends ToolScope {
  digest: Digest;
  /** `claimed`: reported by a pod. `observed`: seen by the engine itself. */
  evidence: 'observed' | 'reported';
  rootMessage: string;
  input: Json;
  succeeded: boolean;
  milliseconds: number;
  /** RFC 3339. */
  time: string;
}

export interface ToolStatistics {
  totalUses: number;
  successes: number;
  failures: number;
  /** Number of uses that were only reported by a pod. */
  reportedUses: number;
  /** Counted up to 200. */
  distinctInputs: number;
  /** Counted up to 200. */
  rootMessages: number;
  /** Number of agents that used it; counted up to 200. */
  agents: number;
  averageMilliseconds: number;
  /** 0 to 1; 0 before the first use. */
  successRate: number;
  /** The last 20 uses: their number and the number of failures. */
  recent: { uses: number; failures: number };
  lastUsedAt?: string;
}

/** A stored input for re-runs. */
export interface RecordedInput {
  digest: Digest;
  /** Digest of its root message; all inputs of one message count as one piece of evidence. */
  root: string;
  input: Json;
}

/** Result of one re-run. Failures that say nothing about the tool are thrown instead. */
export type RerunOutcome = { ok: true; output: Json } | { ok: false; code: ErrorCode; message: string };

export interface TestReport {
  /** Cases, not runs. */
  passed: number;
  failed: number;
  /** Messages of the first few failures. */
  problems: string[];
}

/**
 * Re-runs a tool in a fresh sandbox that its author never used. Expected outputs stay outside the sandbox. Throws
 * TEMPER_SANDBOX_UNAVAILABLE or TEMPER_CANCELLED when the tool could not run at all; that is no verdict about the tool.
 */
export interface Verifier {
  /** Runs each input twice; returns one outcome per input, in order. */
  outputs(artifact: ToolArtifact, inputs: readonly Json[], op: CallOptions): Promise<RerunOutcome[]>;
  /** Runs the tests of the artifact, twice each. Their fixtures replace tools with side effects. */
  tests(artifact: ToolArtifact, op: CallOptions): Promise<TestReport>;
}

/** State of a promotion. */
export type PromotionState =
  | { state: 'Candidate'; missing: string[] }
  | { state: 'Verifying' }
  | { state: 'PanelReview' }
  | { state: 'AwaitingApproval'; request: string }
  | { state: 'Promoted'; to: Tier }
  /** `coolDownUntil`: RFC 3339; the panel does not review the tool again before this time. */
  | { state: 'Rejected'; reason: string; coolDownUntil: string };
