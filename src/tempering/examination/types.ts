import type { ToolArtifact } from '../../api/v1alpha1/emergenttool.ts';
import type { ParsedArtifact } from '../../forge/parse-artifact.ts';
import type { Digest } from '../../lib/canonical.ts';
import type { CallOptions } from '../../lib/call-options.ts';
import type { Json } from '../../lib/json.ts';
import type { IncomparableTool, ToolsInService } from './redundancy/compared-tool.ts';
import type { TesterAnswer } from './testers/ask-tester.ts';

/** The tool to examine. */
export interface ExaminationSubject {
  artifact: ToolArtifact;
  digest: Digest;
  /** The model that wrote the tool. It must not be a tester. */
  authorModel: string;
  /** Inputs of earlier uses. */
  recorded: readonly Json[];
  /** The version of the tool that this one replaces, if any. */
  replaced?: ToolArtifact;
  /** Reads the tools that it must not repeat. Called at most once, after the other checks. */
  inService?: () => Promise<ToolsInService>;
}

export type CheckName =
  | 'generated-inputs'
  | 'determinism'
  | 'key-order'
  | 'additional-members'
  | 'order-independence'
  | 'claimed-result'
  | 'idempotence'
  | 'inverse'
  | 'constant-output'
  | 'memorized-tests'
  | 'input-mutation'
  | 'state'
  | 'clock'
  | 'growth'
  | 'replaced-version'
  | 'redundancy';

/** What disagreements of a check lead to: nothing but a line for reviewers, a question to a user, or a refusal. */
export type Consequence = 'Note' | 'Ask' | 'Refuse';

/** One case in which a tool does not behave as the check expects. All texts are printable and bounded. */
export interface Disagreement {
  /** JSON text. */
  input: string;
  /** JSON text, or what the output must be. */
  expected?: string;
  /** JSON text, or the failure. */
  got: string;
  /** Without any value of an input or an output: it also stands in the audit record and in Events. */
  reason: string;
}

export interface CheckResult {
  check: CheckName;
  consequence: Consequence;
  cases: number;
  disagreements: number;
  /** The first few disagreements. */
  examples: Disagreement[];
  /** Why the check ran no case. */
  skipped?: string;
  /** Versions of the source that did not run, because the static gate refuses them. Absent when there are none. */
  refusedVariants?: number;
}

/** A property that the name or the description of a tool claims, read by fixed rules. */
export interface Claim {
  claim: ClaimName;
  /** The words that made it. */
  because: string;
}

export type ClaimName =
  | 'order-independent'
  | 'idempotent'
  | 'invertible'
  | 'sum'
  | 'mean'
  | 'minimum'
  | 'maximum'
  | 'count'
  | 'sorted'
  | 'reversed'
  | 'distinct'
  | 'upper-case'
  | 'lower-case';

/** `Agrees` and `Disagrees` are evidence; `None` is the absence of evidence. */
export type TesterVerdict = 'Agrees' | 'Disagrees' | 'None';

/** What one independent tester found. */
export interface TesterResult {
  model: string;
  verdict: TesterVerdict;
  /** Cases that match both schemas and were run. */
  cases: number;
  /** Cases of the answer that were not run: malformed, too large, repeated, or not valid for the schemas. */
  dropped: number;
  disagreements: number;
  /** The cases that were run, for the reviewer's page; the disagreements first. */
  examples: Disagreement[];
  promptDigest: string;
  /** Why there is no evidence. */
  problem?: string;
}

export interface ExaminationReport {
  digest: Digest;
  claims: Claim[];
  checks: CheckResult[];
  /** Empty when the policy names no testers. */
  testers: TesterResult[];
  /** Inputs that the tool got, in a fresh sandbox each. */
  inputs: number;
  /** Tools in service that it was not compared with. Absent when there are no tools in service. */
  incomparableTools?: number;
  /** The first of them, each with the reason. */
  incomparable?: IncomparableTool[];
}

/** The independent testers of a policy. */
export interface Testers {
  /** Two models that write cases; empty when the policy names none. */
  readonly names: readonly string[];
  /** One answer per model. Throws TEMPER_LEDGER_UNAVAILABLE. */
  ask(tool: ParsedArtifact, op: CallOptions): Promise<TesterAnswer[]>;
}

/** Examines a tool with inputs that its author did not choose. Throws as `Verifier` does when the tool could not run at all. */
export interface Examiner {
  examine(subject: ExaminationSubject, op: CallOptions): Promise<ExaminationReport>;
}
