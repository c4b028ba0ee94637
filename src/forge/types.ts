import type { ToolArtifact } from '../api/v1alpha1/emergenttool.ts';
import type { Digest } from '../lib/canonical.ts';
import type { ErrorCode } from '../lib/error-codes.ts';
import type { Json, JsonObject } from '../lib/json.ts';
import type { Op } from '../lib/operation.ts';
import type { Gate, GateResult } from '../tools/events.ts';

/** Rejection classes, checked in this order; the first that fits is kept with the attempt. */
export type RejectionClass =
  | 'schema_extra_field'
  | 'shape_check'
  | 'syntax_error'
  | 'parse_error'
  | 'judge_correctness'
  | 'other';

/** What one run of one test showed. `got` is absent when the tool failed. */
export interface TestResult {
  case: number;
  run: 1 | 2;
  passed: boolean;
  got?: Json;
  failure?: { code: ErrorCode; message: string };
  milliseconds: number;
  heapBytes: number;
}

/** Figures and facts gathered by the deterministic gates; what a judge is shown beside the artifact. */
export interface ForgeEvidence {
  tests: TestResult[];
  /** Slowest run. */
  milliseconds: number;
  /** Largest run. */
  heapBytes: number;
  warnings: string[];
}

/** A tool that passed every gate but the judge. */
export interface Candidate {
  artifact: ToolArtifact;
  digest: Digest;
  evidence: ForgeEvidence;
  /** The gates it passed on the author's side, for the record; nothing rests on them. */
  gates?: readonly GateResult[];
}

/** A judge's opinion. It can only take away. */
export interface Verdict {
  approved: boolean;
  /** 0 to 1. */
  confidence: number;
  /** `TEMPER_JUDGE_UNAVAILABLE` when there was no usable opinion. */
  code?: Extract<ErrorCode, 'TEMPER_JUDGE_UNAVAILABLE' | 'TEMPER_JUDGE_REFUSED'>;
  reasoning: string;
  /** The model's own identity, pinned in the record. */
  model: string;
  promptDigest: string;
}

export interface Judge {
  /** An error, a malformed or cut answer is a refusal; throws TEMPER_LEDGER_UNAVAILABLE alone. `authorModel` may not judge itself. */
  review(candidate: Candidate, authorModel: string, op: Op): Promise<Verdict>;
}

/** Who forges, and in which conversation. */
export interface ForgeCaller {
  agent: string;
  namespace: string;
  session: string;
  rootMessage: string;
  authorModel: string;
}

export interface Accepted {
  accepted: true;
  artifact: ToolArtifact;
  digest: Digest;
  evidence: ForgeEvidence;
  verdict?: Verdict;
  gates: GateResult[];
}

export interface Refused {
  accepted: false;
  name: string;
  /** Known once the artifact could be built. */
  digest?: Digest;
  gate: Gate;
  code: ErrorCode;
  class: RejectionClass;
  /** For the model and for people: every violation, with hints. */
  message: string;
  details: JsonObject;
  evidence?: ForgeEvidence;
  gates: GateResult[];
}

export type ForgeResult = Accepted | Refused;

/**
 * The second half of a forge, where the author has no hand: recomputes digest, static check and schemas from the artifact
 * alone, applies the ceilings, asks the judge and registers the tool at tier Session. In a cluster it is the gateway's.
 */
export interface ForgeReview {
  submit(candidate: Candidate, caller: ForgeCaller, op: Op): Promise<ForgeResult>;
}

/** Where accepted tools go. Registers whole or throws TEMPER_FORGE_NAME_TAKEN or TEMPER_FORGE_LIMIT_REACHED and leaves nothing behind. */
export interface SessionTools {
  register(accepted: Accepted, caller: ForgeCaller): Promise<void>;
  /** Keeps a refused attempt as evidence. */
  keepRejected(refused: Refused, caller: ForgeCaller): Promise<void>;
}
