import { digestOf } from '../lib/canonical.ts';
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
  /** Digest of tool, arguments, call id, rule and risk; or of the tool alone for a promotion. */
  subject: string;
  binding: AskBinding;
  risk: Risk;
  reason: string;
  /** The arguments of a call. A store keeps them only as `shownArguments`. */
  arguments?: Json;
  /** The session whose turn the call can park. Absent for a promotion, and for a call by another tool, which cannot be parked. */
  session?: string;
}

export interface ApprovalDecision {
  decision: 'Approve' | 'Deny';
  by: string;
  reason: string;
}

/** The turn ends without a result of the call. The decision resumes it, in this process or in a later one. */
export interface ParkedDecision {
  decision: 'Parked';
}

export interface Approvals {
  /** Creates a request and returns its id. Idempotent by subject. Throws TEMPER_QUOTA_EXCEEDED when five requests of this agent are already pending. */
  request(ask: ApprovalInput): Promise<string>;
  /** The decision, when the request already has one: that of a call whose turn resumes. Throws TEMPER_APPROVAL_TIMEOUT when the timeout of the policy denied the call. */
  decisionNow(id: string): Promise<ApprovalDecision | undefined>;
  /** Waits for the decision. Throws TEMPER_APPROVAL_TIMEOUT when none arrives within the time that the policy sets. */
  waitForDecision(id: string, op: CallOptions): Promise<ApprovalDecision>;
  /** The same for a call whose turn can be parked: it is parked where no approver is waiting, and at the deadline. */
  decisionOrPark(id: string, op: CallOptions): Promise<ApprovalDecision | ParkedDecision>;
  /**
   * Records that the approved call starts, durably, before it does. A repeated call of the same process with the same `op.key` has no
   * further effect. Throws TEMPER_APPROVAL_USED when the approval was used before.
   */
  use(id: string, op: CallOptions): Promise<void>;
}

const MAX_CALL_ID = 128;

/** The id of a call in its request: its idempotency key, or the digest of a longer one, so that two calls never have the same id. */
export function callIdOf(key: string): string {
  return key.length <= MAX_CALL_ID ? key : digestOf(key);
}

/** What a promotion needs: nothing of it is parked, and its approval is bound to the tool. */
export type PromotionApprovals = Pick<Approvals, 'request' | 'waitForDecision'>;
