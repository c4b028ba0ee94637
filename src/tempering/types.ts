import type { Tier } from '../api/v1alpha1/common.ts';
import type { ToolArtifact } from '../api/v1alpha1/emergenttool.ts';
import type { JudgeVerdict } from '../forge/types.ts';
import type { Digest } from '../lib/canonical.ts';
import type { ErrorCode } from '../lib/error-codes.ts';
import type { Json } from '../lib/json.ts';
import type { CallOptions } from '../lib/call-options.ts';
import type { CallRecording, RecordedCall, UnrecordedReason, UseRecording } from '../tools/recording/call-recording.ts';

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

/** `observed`: this engine or the gateway saw it. `reported`: only a pod, which may be hostile, did. */
export type Evidence = 'observed' | 'reported';

export interface EvidencedCall extends RecordedCall {
  evidence: Evidence;
}

/** One successful or failed use. Its input and recording are stored within limits, because promotion repeats the use. */
export interface ToolUse extends ToolScope {
  digest: Digest;
  evidence: Evidence;
  rootMessage: string;
  input: Json;
  /** Digest of the output. Absent for a failed use, and for an output without a canonical form. */
  output?: Digest;
  /** What the tool got from outside, or why it is not recorded. Absent for a tool whose output depends on its input alone. */
  recording?: UseRecording<EvidencedCall>;
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
  /** Number of sessions in which it was used, since this is counted; counted up to 200. */
  sessions: number;
  /** Stored inputs by the evidence of the answers that a re-run replays. `none`: the tool needs none. */
  recordedInputs: Record<AnswerEvidence, number>;
  /** Uses without a stored input, by reason. */
  unrecorded: Partial<Record<UnstoredReason, number>>;
  averageMilliseconds: number;
  /** 0 to 1; 0 before the first use. */
  successRate: number;
  /** The last 20 uses: their number and the number of failures. */
  recent: { uses: number; failures: number };
  lastUsedAt?: string;
}

/** The weakest evidence of the recorded answers of a use; `none` when it needs none. */
export type AnswerEvidence = 'none' | Evidence;

/** Why the input of a use is not stored. */
export type UnstoredReason = UnrecordedReason | 'InputTooLarge' | 'StorageFull';

/** A stored input for re-runs. */
export interface RecordedInput {
  digest: Digest;
  /** Digest of its root message; all inputs of one message count as one piece of evidence. */
  root: string;
  input: Json;
  /** Digest of the output of the use. A re-run must give the same one. */
  output?: Digest;
  /** What a re-run gets from outside. Absent for a tool whose output depends on its input alone. */
  recording?: CallRecording<EvidencedCall>;
  answers: AnswerEvidence;
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
  /** Repeats each use twice with its recorded answers; returns one outcome per use, in order. A use that the re-run does not repeat exactly fails. */
  replay(artifact: ToolArtifact, uses: readonly RecordedInput[], op: CallOptions): Promise<RerunOutcome[]>;
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
