import type { Agent } from './agent.ts';
import type { Approval } from './approval.ts';
import type { ApprovalRequest } from './approvalrequest.ts';
import type { Capability } from './capability.ts';
import type { EmergentTool } from './emergenttool.ts';
import type { TrustPolicy } from './trustpolicy.ts';

/** Any object of the API group, discriminated by `kind`. */
export type AnyResource = Agent | TrustPolicy | EmergentTool | Capability | ApprovalRequest | Approval;
