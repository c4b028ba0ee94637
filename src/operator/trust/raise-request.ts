import { createHash, randomBytes } from 'node:crypto';
import { API_VERSION } from '../../api/names.ts';
import type { ApprovalRequest } from '../../api/v1alpha1/approvalrequest.ts';
import type { ApprovalSubject } from '../../api/v1alpha1/common.ts';
import { digestOf } from '../../lib/canonical.ts';
import type { Json } from '../../lib/json.ts';
import { approvalRules, requestTimes } from '../../policy/approval-rules.ts';
import type { TrustRequest } from '../../policy/trust/evaluate.ts';
import type { StoredAgent, StoredPolicy } from '../kube/types.ts';
import { ownerReference } from '../pods/pod-ownership.ts';

/** One rise of one agent, for these versions of both specs and since its level was last lowered. */
export interface Rise {
  readonly agent: StoredAgent;
  readonly policy: StoredPolicy;
  readonly request: TrustRequest;
}

const MAX_NAME_PART = 40;

/** The same rise has the same request, so there is never more than one; another version of a spec asks again. */
export function raiseRequestName({ agent, policy, request }: Rise): string {
  const { name, uid, generation } = agent.metadata;
  const { status } = agent;
  const parts = [uid, generation, policy.metadata.uid, policy.metadata.generation, status?.trust?.loweredAt ?? ''];
  const identity = JSON.stringify([...parts, request.category ?? '', request.level]);
  const hash = createHash('sha256').update(identity).digest('hex').slice(0, 26);
  return `trust-${name.slice(0, MAX_NAME_PART).replace(/[^a-z0-9]+$/, '')}-${hash}`;
}

/** `agent` with its whole spec, as the API server stores it: the digest covers all that an approver may read. */
export function raiseSubject({ agent, policy, request }: Rise): ApprovalSubject {
  return {
    trust: {
      agent: agent.metadata.name,
      agentUid: agent.metadata.uid,
      level: request.level,
      ...(request.category === undefined ? {} : { category: request.category }),
      agentSpecDigest: digestOf(agent.spec as unknown as Json),
      policy: policy.metadata.name,
      policyGeneration: policy.metadata.generation,
    },
  };
}

/** Owned by its Agent, and deleted with it. */
export function raiseRequest(rise: Rise, now: Date): ApprovalRequest {
  const { agent, policy, request } = rise;
  const { name, namespace, uid } = agent.metadata;
  const where = request.category === undefined ? '' : ` for tools of category ${request.category}`;
  return {
    apiVersion: API_VERSION,
    kind: 'ApprovalRequest',
    metadata: { name: raiseRequestName(rise), namespace, ownerReferences: [ownerReference(agent)] },
    spec: {
      type: 'RaiseTrust',
      agent: { name, uid },
      nonce: randomBytes(18).toString('base64url'),
      summary: `Agent "${name}" meets the requirements of TrustPolicy "${policy.metadata.name}" for level ${request.level}${where}; see kubectl temper trust explain ${name}`,
      risk: request.level === 'elevated' ? 'critical' : 'high',
      from: request.from,
      to: request.level,
      ...requestTimes(approvalRules(policy.spec.approvals), now),
      subject: raiseSubject(rise),
    },
  };
}
