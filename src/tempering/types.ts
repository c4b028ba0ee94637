import type { ToolArtifact } from '../api/v1alpha1/emergenttool.ts';
import type { Tier } from '../api/v1alpha1/common.ts';
import type { Digest } from '../lib/canonical.ts';
import type { Json } from '../lib/json.ts';
import type { Op } from '../lib/operation.ts';
import type { Outcome } from '../sandbox/port.ts';
import type { Verdict } from '../forge/types.ts';

/** A forged tool with its place in the world. */
export interface RegisteredTool {
  artifact: ToolArtifact;
  digest: Digest;
  tier: Tier;
  owner: { agent: string; namespace: string; session: string };
  contributors: string[];
  verdicts: Verdict[];
  /** RFC 3339. */
  acceptedAt: string;
  active: boolean;
  /** Why it is not active. */
  inactiveReason?: string;
}

/** One valid or failed use. Inputs are kept (at most 50 a tool, 32 KiB each), since promotion re-runs them. */
export interface ToolUse {
  digest: Digest;
  /** Claimed by a pod, or observed by the engine. */
  evidence: 'observed' | 'claimed';
  session: string;
  rootMessage: string;
  input: Json;
  inputDigest: Digest;
  succeeded: boolean;
  milliseconds: number;
  /** RFC 3339. */
  time: string;
}

export interface ToolStatistics {
  totalUses: number;
  successes: number;
  failures: number;
  distinctInputs: number;
  rootMessages: number;
  averageMilliseconds: number;
  /** 0 to 1. */
  successRate: number;
  lastUsedAt?: string;
}

/** Runs a tool where its author never was. Expected outputs stay outside. */
export interface Verifier {
  outputs(artifact: ToolArtifact, inputs: Json[], op: Op): Promise<Outcome[]>;
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
