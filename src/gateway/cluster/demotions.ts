import type { ApprovalSpec } from '../../api/v1alpha1/approval.ts';
import type { EmergentTool } from '../../api/v1alpha1/emergenttool.ts';
import type { KubeObject, Store } from '../../kube/informer/store.ts';
import type { Digest } from '../../lib/canonical.ts';
import type { RegisteredTool } from '../../tempering/types.ts';

/** Tools that were taken out of service. */
export interface Demotions {
  /** Why the tool with this digest is out of service; undefined when it is in service. Contains text of users: print it sanitized. */
  reason(namespace: string, digest: Digest): string | undefined;
}

/** The cached members of an EmergentTool. */
export interface ToolServiceStatus extends KubeObject {
  spec: { digest: string };
  status?: EmergentTool['status'];
}

/** The cached members of an Approval. */
export interface ApprovalSummary extends KubeObject {
  metadata: KubeObject['metadata'] & { creationTimestamp?: string };
  spec: Pick<ApprovalSpec, 'decision' | 'nonce' | 'approvedBy' | 'reason' | 'subject'>;
}

const MAX_REASON = 300;

/** Removes the artifact, which may have 128 KiB. */
export function pruneToolStatus({ metadata, spec: { digest }, status }: ToolServiceStatus): ToolServiceStatus {
  return { metadata: pruneMetadata(metadata), spec: { digest }, ...(status === undefined ? {} : { status }) };
}

export function pruneApproval({ metadata, spec }: ApprovalSummary): ApprovalSummary {
  const { decision, nonce, approvedBy, reason, subject } = spec;
  const { creationTimestamp } = metadata;
  return {
    metadata: { ...pruneMetadata(metadata), ...(creationTimestamp === undefined ? {} : { creationTimestamp }) },
    spec: {
      decision,
      nonce,
      approvedBy: { username: approvedBy.username },
      ...(reason === undefined ? {} : { reason: reason.slice(0, MAX_REASON) }),
      subject,
    },
  };
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
const OUT_OF_SERVICE_REASONS: ReadonlySet<string> = new Set(['Demoted', 'Revoked']);

/** Demotions from the informer caches of EmergentTools and Approvals. */
export class WatchedDemotions implements Demotions {
  readonly #tools: Store<ToolServiceStatus>;
  readonly #approvals: Store<ApprovalSummary>;

  /** Adds indexes to the stores. */
  constructor(tools: Store<ToolServiceStatus>, approvals: Store<ApprovalSummary>) {
    this.#tools = tools;
    this.#approvals = approvals;
    tools.addIndex(BY_DIGEST, ({ metadata, spec }) => [keyOf(metadata.namespace, spec.digest)]);
    approvals.addIndex(BY_DIGEST, ({ metadata, spec: { decision, subject } }) =>
      decision === 'Revoke' && subject.promotion !== undefined
        ? [keyOf(metadata.namespace, subject.promotion.digest)]
        : [],
    );
  }

  reason(namespace: string, digest: Digest): string | undefined {
    const key = keyOf(namespace, digest);
    const tools = this.#tools.byIndex(BY_DIGEST, key);
    for (const { metadata, status } of tools) {
      const condition = status?.conditions?.find(
        ({ type, status: holds, reason }) =>
          type === 'Active' && holds === 'False' && OUT_OF_SERVICE_REASONS.has(reason),
      );
      if (condition !== undefined)
        return `taken out of service by EmergentTool "${metadata.name}" (${condition.reason}): ${condition.message}`;
    }
    // An approval after the revocation makes the tool active again; until then the revocation applies.
    if (tools.some(({ status }) => status?.active === true)) return undefined;
    const [revoked] = this.#approvals.byIndex(BY_DIGEST, key);
    return revoked === undefined ? undefined : `revoked by Approval "${revoked.metadata.name}"`;
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
