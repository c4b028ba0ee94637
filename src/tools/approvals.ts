import type { Risk } from '../policy/types.ts';
import type { Json } from '../lib/json.ts';
import type { CallOptions } from '../lib/call-options.ts';

/** The subject that a decision is bound to, in the form of ApprovalRequest and Approval. */
type AskBinding =
  | { promotion: { tool: string; digest: string; tier: 'Agent' | 'Shared' } }
  | { call: { tool: string; argumentsDigest: string; callId: string } };

/** A request for a decision by an approver. It is bound to exactly one call: the same tool with other arguments needs another request. */
export interface ApprovalInput {
  type: 'ToolCall' | 'PromoteTool';
  agent: string;
  tool: string;
  /** Digest of tool, arguments and call id; or of the tool alone for a promotion. */
  subject: string;
  binding: AskBinding;
  risk: Risk;
  reason: string;
  /** The arguments of a call. A store keeps them only as `shownArguments`. */
  arguments?: Json;
}

export interface ApprovalDecision {
  decision: 'Approve' | 'Deny';
  by: string;
  reason: string;
}

export interface Approvals {
  /** Creates a request and returns its id. Idempotent by subject. Throws TEMPER_QUOTA_EXCEEDED when five requests of this agent are already pending. */
  request(ask: ApprovalInput): Promise<string>;
  /** Waits for the decision. Throws TEMPER_APPROVAL_TIMEOUT when none arrives within the time that the policy sets. */
  waitForDecision(id: string, op: CallOptions): Promise<ApprovalDecision>;
}
