import type { ToolArtifact } from '../api/v1alpha1/emergenttool.ts';
import type { SignedHead } from '../audit/stream-chain.ts';
import type { ToolAuditReport } from '../tool-audit/report.ts';

/** What a reviewer of a promotion reads. All texts are untrusted: of the tool, of models, of agents. */
export interface ToolReview {
  /** The namespace that the tool is shared in. */
  readonly namespace: string;
  /** The name of the object of tier Shared. */
  readonly object: string;
  readonly artifact: ToolArtifact;
  readonly digest: string;
  readonly contributors: readonly string[];
  readonly promotion: ReviewedPromotion;
  /** The active version of the same name that the tool replaces. */
  readonly replaces?: ReplacedTool;
  readonly verification?: Verification;
  readonly uses?: UseFigures;
  /** The last audit by fresh agents. */
  readonly audit?: ToolAuditReport;
  readonly verdicts: readonly ReviewVerdict[];
  /** The session of the tool contained untrusted content. */
  readonly tainted?: boolean;
  /** What the examination of the tool leaves to the approver. */
  readonly questions?: readonly OpenQuestion[];
  /** The tool as judges read it: its source or steps without the words and the format of the author. */
  readonly judged?: string;
  readonly authorModel?: string;
  /** The records of the provenance chain about the digest, oldest first. */
  readonly provenance: readonly ProvenanceReference[];
  /** The newest signed head of the audit stream when the review was made. */
  readonly auditHead?: SignedHead;
  /** The newest signed head when the request was made. Absent for a request without one. */
  readonly requestHead?: SignedHead;
}

/** What a check or tester found, with cases in which the tool did something else. */
export interface OpenQuestion {
  readonly topic: string;
  readonly reason: string;
  readonly cases: readonly { readonly input: string; readonly expected?: string; readonly got: string }[];
}

interface ReviewedPromotion {
  /** Default `Shared`. */
  readonly to?: 'Agent' | 'Shared';
  /** The tier before; absent when the tool has none yet in this namespace. */
  readonly from?: string;
  readonly nonce: string;
  /** The account that applies the Approval. */
  readonly approvedBy: string;
  readonly request?: string;
  readonly summary?: string;
  readonly risk?: string;
  readonly revoked?: RevokedPromotion;
}

export interface RevokedPromotion {
  readonly by: string;
  readonly reason?: string;
}

export interface ReplacedTool {
  readonly artifact: ToolArtifact;
  readonly digest: string;
}

/** The result of the last run of the tests and recorded inputs where the author never was. */
export interface Verification {
  readonly tests: { readonly passed: number; readonly failed: number; readonly problems: readonly string[] };
  readonly reruns?: {
    readonly succeeded: number;
    readonly total: number;
    readonly distinctInputs?: number;
    readonly rootMessages: number;
    /** Re-runs with recorded answers: carried and signed by a gateway, and only reported by a pod. */
    readonly observedAnswers?: number;
    readonly reportedAnswers?: number;
  };
  /** Tests that Temper generated. */
  readonly generated?: readonly { readonly name: string; readonly passed: boolean; readonly detail?: string }[];
}

/** Counts of uses. The reported ones are claims of an agent's pod. */
export interface UseFigures {
  readonly total: number;
  readonly succeeded: number;
  readonly reported: number;
  readonly distinctInputs: number;
  readonly rootMessages: number;
  readonly agents: readonly string[];
  /** Per agent. */
  readonly usedBy?: readonly AgentUses[];
}

/** Claimed uses of one agent. The sessions and root messages are those of deliveries. */
export interface AgentUses {
  readonly name: string;
  readonly uses: number;
  readonly succeeded: number;
  readonly sessions: number;
  readonly rootMessages: number;
}

export interface ReviewVerdict {
  /** The question that the reviewer answered, such as safety; absent for the judge of the forge. */
  readonly question?: string;
  readonly model: string;
  readonly approved: boolean;
  /** 0 to 1. */
  readonly confidence: number;
  readonly reasoning: string;
  /** Line numbers of the tool as judges read it, from 1. */
  readonly citedLines?: readonly number[];
  readonly judgeIsAuthor?: boolean;
}

export interface ProvenanceReference {
  readonly time: string;
  readonly action: string;
  readonly actor: string;
  /** The digest of the record, or where the record is. */
  readonly record: string;
}
