import type { Tier } from '../api/v1alpha1/common.ts';
import type { ToolArtifact } from '../api/v1alpha1/emergenttool.ts';
import type { Verdict } from '../forge/types.ts';
import type { Digest } from '../lib/canonical.ts';
import type { ErrorCode } from '../lib/error-codes.ts';
import type { Json } from '../lib/json.ts';
import type { Op } from '../lib/operation.ts';

/** A forged tool with its place in the world. */
export interface RegisteredTool {
  /** Where it is stored: `<collection>/<object name>`. One for each tier, owner and digest. */
  object: string;
  artifact: ToolArtifact;
  digest: Digest;
  tier: Tier;
  /** Who forged it, in which session; a Shared tool belongs to nobody and keeps this as its origin. */
  owner: { agent: string; namespace: string; session: string };
  /** Those who had a hand in it, as `agent/<name>` or `person/<name>`. They may not approve it. */
  contributors: string[];
  verdicts: Verdict[];
  /** The model that wrote it. It may not review it. */
  authorModel: string;
  /** The source is not part of the stored object, so the tool can be neither Shared nor exported. */
  sourceWithheld: boolean;
  /** RFC 3339. */
  acceptedAt: string;
  active: boolean;
  /** Why it is not active. */
  inactiveReason?: string;
}

/** An agent in one of its sessions: what decides which tools are seen. */
export interface ToolScope {
  agent: string;
  namespace: string;
  session: string;
}

/** One valid or failed use. Inputs are kept (at most 50 a tool, 32 KiB each), since promotion re-runs them. */
export interface ToolUse extends ToolScope {
  digest: Digest;
  /** Claimed by a pod, or observed by the engine. */
  evidence: 'observed' | 'claimed';
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
  /** How many of the uses were only claimed. */
  claimedUses: number;
  /** Counted up to 200. */
  distinctInputs: number;
  /** Counted up to 200. */
  rootMessages: number;
  /** Agents that used it; counted up to 200. */
  agents: number;
  averageMilliseconds: number;
  /** 0 to 1; 0 before the first use. */
  successRate: number;
  /** Of the last 20 uses: how many there were and how many failed. */
  recent: { uses: number; failures: number };
  lastUsedAt?: string;
}

/** An input kept for re-runs. */
export interface RecordedInput {
  digest: Digest;
  /** Digest of the root message it came with; inputs of one message are one witness. */
  root: string;
  input: Json;
}

/** What one re-run gave. Failures that are nobody's fault are thrown instead. */
export type RerunOutcome = { ok: true; output: Json } | { ok: false; code: ErrorCode; message: string };

interface TestReport {
  /** Cases, not runs. */
  passed: number;
  failed: number;
  /** What failed, in words; the first few. */
  problems: string[];
}

/**
 * Runs a tool where its author never was. Expected outputs stay outside. Throws TEMPER_SANDBOX_UNAVAILABLE or TEMPER_CANCELLED
 * when it could not run at all, which says nothing about the tool.
 */
export interface Verifier {
  /** One outcome for each input, in order. */
  outputs(artifact: ToolArtifact, inputs: readonly Json[], op: Op): Promise<RerunOutcome[]>;
  /** The artifact's own tests, twice each, with their fixtures in the place of tools with effects. */
  tests(artifact: ToolArtifact, op: Op): Promise<TestReport>;
}

/** Where a tool stands on its way up. */
export type PromotionState =
  | { state: 'Candidate'; missing: string[] }
  | { state: 'Verifying' }
  | { state: 'PanelReview' }
  | { state: 'AwaitingApproval'; request: string }
  | { state: 'Promoted'; to: Tier }
  /** RFC 3339; the panel is not asked again before. */
  | { state: 'Rejected'; reason: string; coolDownUntil: string };
