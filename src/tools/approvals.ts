import type { Risk } from '../policy/types.ts';
import type { Op } from '../lib/operation.ts';

/** What an answer binds to, in the form ApprovalRequest and Approval keep it. */
type AskBinding =
  | { promotion: { tool: string; digest: string; tier: 'Agent' | 'Shared' } }
  | { call: { tool: string; argumentsDigest: string; callId: string } };

/** What waits for a person. Bound to exactly one call: the same tool with other arguments is another ask. */
export interface Ask {
  type: 'ToolCall' | 'PromoteTool';
  agent: string;
  tool: string;
  /** Digest of tool, arguments and call id; or of the tool alone for a promotion. */
  subject: string;
  binding: AskBinding;
  risk: Risk;
  reason: string;
}

export interface ApprovalDecision {
  decision: 'Approve' | 'Deny';
  by: string;
  reason: string;
}

export interface Approvals {
  /** Idempotent by subject. Throws TEMPER_QUOTA_EXCEEDED when five already wait for this agent. */
  request(ask: Ask): Promise<string>;
  /** Waits for the decision; throws TEMPER_APPROVAL_TIMEOUT when the policy says that silence means no. */
  decided(id: string, op: Op): Promise<ApprovalDecision>;
}
