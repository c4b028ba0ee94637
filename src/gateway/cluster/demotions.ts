import type { Approval } from '../../api/v1alpha1/approval.ts';
import type { EmergentTool } from '../../api/v1alpha1/emergenttool.ts';
import { type ApprovalRecord, approvalRecord } from '../../approvals/approval-record.ts';
import { verdictOn } from '../../approvals/verdict.ts';
import type { KubeObject, Store } from '../../kube/informer/store.ts';
import { type Digest, sha256 } from '../../lib/canonical.ts';
import type { RegisteredTool } from '../../tempering/types.ts';

/** Tools that were taken out of service, for all agents or for one. */
export interface Demotions {
  /** Why the agent has no tool with this digest in service; undefined when it may have it. Contains text of users: print it sanitized. */
  reason(agent: ToolHolder, digest: Digest): string | undefined;
}

export interface ToolHolder {
  readonly namespace: string;
  readonly agentUid: string;
}

/** The cached members of an EmergentTool. */
export interface ToolServiceStatus extends KubeObject {
  spec: Pick<EmergentTool['spec'], 'digest' | 'tier' | 'requestNonce' | 'contributors'> & { tool: string };
  status?: EmergentTool['status'];
}

/** The cached members of an Approval. */
export interface ApprovalSummary extends KubeObject {
  record: ApprovalRecord;
}

/** Removes the artifact, which may have 128 KiB. */
export function pruneToolStatus({
  metadata,
  spec,
  status,
}: Pick<EmergentTool, 'metadata' | 'spec' | 'status'>): ToolServiceStatus {
  const { digest, tier, requestNonce, contributors, artifact } = spec;
  return {
    metadata: pruneMetadata(metadata),
    spec: {
      tool: artifact.name,
      digest,
      tier,
      ...(requestNonce === undefined ? {} : { requestNonce }),
      ...(contributors === undefined ? {} : { contributors }),
    },
    ...(status === undefined ? {} : { status }),
  };
}

export function pruneApproval(object: Pick<Approval, 'metadata' | 'spec'>): ApprovalSummary {
  return { metadata: pruneMetadata(object.metadata), record: approvalRecord(object) };
}

function pruneMetadata({ name, namespace, uid, resourceVersion }: KubeObject['metadata']): KubeObject['metadata'] {
  return {
    name,
    ...(namespace === undefined ? {} : { namespace }),
    ...(uid === undefined ? {} : { uid }),
    ...(resourceVersion === undefined ? {} : { resourceVersion }),
  };
}

const BY_DIGEST = 'gateway.digest';
const BY_NAMESPACE = 'gateway.revocations';
const OUT_OF_SERVICE_REASONS: ReadonlySet<string> = new Set(['Demoted', 'Revoked']);

/**
 * Which tools are in service, from the informer caches of EmergentTools and Approvals. The status of an object, which only the operator
 * writes, is not enough: the gateway checks the Approvals itself, so a revocation applies when its watch event arrives.
 */
export class WatchedDemotions implements Demotions {
  readonly #tools: Store<ToolServiceStatus>;
  readonly #approvals: Store<ApprovalSummary>;
  readonly #deactivation: (agentUid: string, digest: Digest) => string | undefined;

  /** Adds indexes to the stores. `deactivation`: why this agent does not have the tool, by its status. */
  constructor(
    tools: Store<ToolServiceStatus>,
    approvals: Store<ApprovalSummary>,
    deactivation: (agentUid: string, digest: Digest) => string | undefined,
  ) {
    this.#tools = tools;
    this.#approvals = approvals;
    this.#deactivation = deactivation;
    tools.addIndex(BY_DIGEST, ({ metadata, spec }) => [keyOf(metadata.namespace, spec.digest)]);
    approvals.addIndex(BY_DIGEST, ({ metadata, record: { subject } }) =>
      subject.promotion === undefined ? [] : [keyOf(metadata.namespace, subject.promotion.digest)],
    );
    approvals.addIndex(BY_NAMESPACE, ({ metadata, record: { decision } }) =>
      decision === 'Revoke' ? [metadata.namespace ?? ''] : [],
    );
  }

  reason({ namespace, agentUid }: ToolHolder, digest: Digest): string | undefined {
    const deactivation = this.#deactivation(agentUid, digest);
    if (deactivation !== undefined) return `deactivated for this agent: ${deactivation}`;
    const key = keyOf(namespace, digest);
    const tools = this.#tools.byIndex(BY_DIGEST, key);
    // A new request with a new nonce makes a revoked tool active again; the object of the agent stays revoked.
    if (tools.some((tool) => tool.spec.tier === 'Shared' && this.isServed(tool))) return undefined;
    for (const { metadata, status } of tools) {
      const condition = status?.conditions?.find(
        ({ type, status: holds, reason }) =>
          type === 'Active' && holds === 'False' && OUT_OF_SERVICE_REASONS.has(reason),
      );
      if (condition !== undefined)
        return `taken out of service by EmergentTool "${metadata.name}" (${condition.reason}): ${condition.message}`;
    }
    const revoked = this.#recordsOf(namespace, digest).find(({ decision }) => decision === 'Revoke');
    return revoked === undefined ? undefined : `revoked by Approval "${revoked.name}"`;
  }

  /** Does the object give agents its tool? Tier Agent: no decision revoked it. Tier Shared: an Approval exists too. */
  isServed({ metadata, spec, status }: ToolServiceStatus): boolean {
    if (status?.active !== true) return false;
    const { namespace = '' } = metadata;
    const { tool, digest, tier, requestNonce } = spec;
    const all = this.#tools.byIndex(BY_DIGEST, keyOf(namespace, digest));
    const question = {
      subject: { promotion: { tool, digest, tier } },
      nonce: requestNonce,
      contributors: all.flatMap((other) => other.spec.contributors ?? []),
    };
    const { decision } = verdictOn(question, this.#recordsOf(namespace, digest));
    return tier === 'Shared' ? decision === 'Approve' : decision !== 'Revoke';
  }

  /** The tools that a change of an Approval can affect. */
  affectedBy({ metadata, record }: ApprovalSummary): ToolServiceStatus[] {
    const { promotion } = record.subject;
    return promotion === undefined ? [] : this.#tools.byIndex(BY_DIGEST, keyOf(metadata.namespace, promotion.digest));
  }

  /** The same at every replica; changes with each revocation of the namespace. */
  revocations(namespace: string): string {
    const names = this.#approvals.byIndex(BY_NAMESPACE, namespace).map(({ metadata }) => metadata.uid ?? metadata.name);
    return names.length === 0 ? '' : sha256(names.sort().join(' '));
  }

  #recordsOf(namespace: string, digest: string): ApprovalRecord[] {
    return this.#approvals.byIndex(BY_DIGEST, keyOf(namespace, digest)).map(({ record }) => record);
  }
}

/** The tools in service: without demoted tools, and without compositions that have a demoted tool as a step. */
export function inService(tools: readonly RegisteredTool[], isOut: (digest: Digest) => boolean): RegisteredTool[] {
  let remaining = tools.filter(({ digest }) => !isOut(digest));
  for (;;) {
    const digests = new Set(remaining.map(({ digest }) => digest));
    const all = new Set(tools.map(({ digest }) => digest));
    const usable = remaining.filter(({ artifact }) =>
      (artifact.implementation.steps ?? []).every(({ tool }) => {
        const pinned = tool.split('@')[1] as Digest | undefined;
        return pinned === undefined || (!isOut(pinned) && (digests.has(pinned) || !all.has(pinned)));
      }),
    );
    if (usable.length === remaining.length) return usable;
    remaining = usable;
  }
}

function keyOf(namespace: string | undefined, digest: string): string {
  return `${namespace ?? ''}/${digest}`;
}
