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
  /** One sentence for reference pages and `kubectl explain`. */
  summary: string;
  spec: TSchema;
  status: TSchema;
}

export const KIND_SCHEMAS: readonly KindSchemas[] = [
  {
    kind: 'Agent',
    summary: 'An agent: its prompt, its models, what it is granted and how much it may use.',
    spec: AgentSpec,
    status: AgentStatus,
  },
  {
    kind: 'TrustPolicy',
    summary: 'What the agents under it may do at most, how trust is earned and lost, and who is asked.',
    spec: TrustPolicySpec,
    status: TrustPolicyStatus,
  },
  {
    kind: 'EmergentTool',
    summary:
      'A tool an agent forged, at the tier it has earned. Its spec never changes; a promotion makes a new object.',
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
    summary: 'A question that waits for a person. Written by the operator; its spec never changes.',
    spec: ApprovalRequestSpec,
    status: ApprovalRequestStatus,
  },
  {
    kind: 'Approval',
    summary: 'The answer of a person to what waits for one. Its spec never changes.',
    spec: ApprovalSpec,
    status: ApprovalStatus,
  },
];
