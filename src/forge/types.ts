import type { ToolArtifact } from '../api/v1alpha1/emergenttool.ts';
import type { Digest } from '../lib/canonical.ts';
import type { ErrorCode } from '../lib/error-codes.ts';
import type { Json, JsonObject } from '../lib/json.ts';
import type { CallOptions } from '../lib/call-options.ts';
import type { Gate, GateResult } from '../tools/events.ts';

/** Rejection classes, checked in this order; the first that fits is recorded with the attempt. */
export type RejectionClass =
  | 'schema_extra_field'
  | 'shape_check'
  | 'syntax_error'
  | 'parse_error'
  | 'judge_correctness'
  | 'other';

/** The result of one run of one test case. `got` is absent when the tool failed. */
export interface TestResult {
  case: number;
  run: 1 | 2;
  passed: boolean;
  got?: Json;
  failure?: { code: ErrorCode; message: string };
  milliseconds: number;
  heapBytes: number;
}

/** Measurements and warnings of the deterministic gates; the judge sees them beside the artifact. */
export interface ForgeEvidence {
  tests: TestResult[];
  /** Duration of the slowest run. */
  milliseconds: number;
  /** Heap of the largest run. */
  heapBytes: number;
  warnings: string[];
}

/** A tool that passed every gate of the author's side; the judge has not seen it yet. */
export interface ToolCandidate {
  artifact: ToolArtifact;
  digest: Digest;
  evidence: ForgeEvidence;
  /** The gates that it passed on the author's side, for the record only; no decision uses them. */
  gates?: readonly GateResult[];
}

/** A judge's opinion. It can refuse a tool, but never allow more than the other gates do. */
export interface JudgeVerdict {
  approved: boolean;
  /** 0 to 1. */
  confidence: number;
  /** `TEMPER_JUDGE_UNAVAILABLE` when the judge gave no usable opinion, `TEMPER_JUDGE_SUSPENDED` when its opinions count for nothing. */
  code?: Extract<ErrorCode, 'TEMPER_JUDGE_UNAVAILABLE' | 'TEMPER_JUDGE_REFUSED' | 'TEMPER_JUDGE_SUSPENDED'>;
  reasoning: string;
  /** The model's own identity, pinned in the record. */
  model: string;
  promptDigest: string;
  /** Digest of the prompt without the tool, which only a release of Temper changes. */
  templateDigest?: string;
  /** The numbers of the lines that the verdict rests on, in the form of the tool that reviewers read. They hold none of its source. */
  citedLines?: number[];
  /** The judge is the model that wrote the tool; the policy permits it (`models.judgeMayBeAuthor`). */
  judgeIsAuthor?: true;
}

/** What a judge reads about an artifact, or why the artifact has no such form. It can be cloned between threads. */
export type JudgeMaterial = { ok: true; text: string } | { ok: false; problem: string };

export interface Judge {
  /**
   * Judges a candidate. A failed call and a malformed or truncated response give a refusal with TEMPER_JUDGE_UNAVAILABLE.
   * Throws only TEMPER_LEDGER_UNAVAILABLE and TEMPER_BUS_UNAVAILABLE. `authorModel` may not judge its own tool, unless the policy permits it.
   * Not idempotent: each call asks the model.
   * `prepared` is the material of this artifact when another thread has built it; absent, the judge builds it in this thread.
   */
  review(
    candidate: ToolCandidate,
    authorModel: string,
    op: CallOptions,
    prepared?: JudgeMaterial,
  ): Promise<JudgeVerdict>;
}

/** The agent that forges, and the session and message in which it does. */
export interface ForgeCaller {
  agent: string;
  namespace: string;
  session: string;
  rootMessage: string;
  authorModel: string;
}

export interface AcceptedTool {
  accepted: true;
  artifact: ToolArtifact;
  digest: Digest;
  evidence: ForgeEvidence;
  verdict?: JudgeVerdict;
  gates: GateResult[];
}

export interface RefusedTool {
  accepted: false;
  name: string;
  /** Present once the artifact was built. */
  digest?: Digest;
  gate: Gate;
  code: ErrorCode;
  class: RejectionClass;
  /** For the model and the user: every violation, with hints. */
  message: string;
  details: JsonObject;
  evidence?: ForgeEvidence;
  /** The verdict of the judge that refused it. */
  verdict?: JudgeVerdict;
  gates: GateResult[];
}

export type ForgeResult = AcceptedTool | RefusedTool;

/**
 * The second half of a forge, which the author cannot influence. It recomputes the digest, the static check and the schemas
 * from the artifact alone, applies the policy limits, asks the judge and registers the tool at tier Session. In a cluster
 * the gateway runs it.
 */
export interface ForgeReview {
  /**
   * Returns a refusal as a result. Throws TEMPER_LEDGER_UNAVAILABLE, TEMPER_BUS_UNAVAILABLE, and any error of the tool store that may be
   * retried: the caller then submits the same candidate again. Not idempotent: a registered tool that is submitted again is refused
   * with TEMPER_FORGE_NAME_TAKEN.
   */
  submit(candidate: ToolCandidate, caller: ForgeCaller, op: CallOptions): Promise<ForgeResult>;
}

/** Records refused attempts. */
export interface RejectionRecorder {
  /** Records a refused attempt as evidence. */
  recordRejected(refused: RefusedTool, caller: ForgeCaller): Promise<void>;
}

/** The store of accepted tools of sessions. */
export interface SessionToolRegistry extends RejectionRecorder {
  /** Registers the whole tool, or throws TEMPER_FORGE_NAME_TAKEN or TEMPER_FORGE_LIMIT_REACHED and stores nothing. */
  register(accepted: AcceptedTool, caller: ForgeCaller): Promise<void>;
}
