import type { TSchema } from 'typebox';
import { AgentSpec, AgentStatus } from './agent.ts';
import { ApprovalSpec, ApprovalStatus } from './approval.ts';
import { ApprovalRequestSpec, ApprovalRequestStatus } from './approvalrequest.ts';
import { CapabilitySpec, CapabilityStatus } from './capability.ts';
import { EmergentToolSpec, EmergentToolStatus } from './emergenttool.ts';
import type { AnyResource } from './resources.ts';
import { TrustPolicySpec, TrustPolicyStatus } from './trustpolicy.ts';

export type KindName = AnyResource['kind'];

export interface KindSchemas {
  kind: KindName;
  /** One or two sentences for the reference page and `kubectl explain`. */
  summary: string;
  spec: TSchema;
  status: TSchema;
}

export const KIND_SCHEMAS: readonly KindSchemas[] = [
  {
    kind: 'Agent',
    summary: 'An AI agent: its prompt, its models, its grants and its quotas.',
    spec: AgentSpec,
    status: AgentStatus,
  },
  {
    kind: 'TrustPolicy',
    summary: 'The limits for a group of agents: access levels, rules, quotas, tool promotion and approvals.',
    spec: TrustPolicySpec,
    status: TrustPolicyStatus,
  },
  {
    kind: 'EmergentTool',
    summary:
      'A tool that an agent forged, with its current tier. The spec is immutable; a promotion creates a new object.',
    spec: EmergentToolSpec,
    status: EmergentToolStatus,
  },
  {
    kind: 'Capability',
    summary: 'A tool, skill, extension, channel or voice that agents can discover.',
    spec: CapabilitySpec,
    status: CapabilityStatus,
  },
  {
    kind: 'ApprovalRequest',
    summary: 'A request for the decision of an approver. Created by the operator; the spec is immutable.',
    spec: ApprovalRequestSpec,
    status: ApprovalRequestStatus,
  },
  {
    kind: 'Approval',
    summary: 'The decision of an approver. The spec is immutable.',
    spec: ApprovalSpec,
    status: ApprovalStatus,
  },
];
