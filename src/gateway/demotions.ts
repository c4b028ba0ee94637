import type { ApprovalSpec } from '../api/v1alpha1/approval.ts';
import type { EmergentTool } from '../api/v1alpha1/emergenttool.ts';
import type { KubeObject, Store } from '../kube/store.ts';
import type { Digest } from '../lib/canonical.ts';
import type { RegisteredTool } from '../tempering/types.ts';

/** What was taken out of service in a namespace. */
export interface Demotions {
  /** Why the tool of this digest was; nothing when it was not. A text of people and operator: not printable by itself. */
  reason(namespace: string, digest: Digest): string | undefined;
}

/** What is kept of an EmergentTool. */
export interface ToolStanding extends KubeObject {
  spec: { digest: string };
  status?: EmergentTool['status'];
}

/** What is kept of an Approval. */
export interface ApprovalWord extends KubeObject {
  spec: Pick<ApprovalSpec, 'decision' | 'subject'>;
}

/** Without the artifact, which may have 128 KiB. */
export function toolStanding({ metadata, spec: { digest }, status }: ToolStanding): ToolStanding {
  return { metadata: slimMeta(metadata), spec: { digest }, ...(status === undefined ? {} : { status }) };
}

export function slimApproval({ metadata, spec: { decision, subject } }: ApprovalWord): ApprovalWord {
  return { metadata: slimMeta(metadata), spec: { decision, subject } };
}

function slimMeta({ name, namespace, uid, resourceVersion }: KubeObject['metadata']): KubeObject['metadata'] {
  return {
    name,
    ...(namespace === undefined ? {} : { namespace }),
    ...(uid === undefined ? {} : { uid }),
    ...(resourceVersion === undefined ? {} : { resourceVersion }),
  };
}

const BY_DIGEST = 'gateway.digest';
const TAKEN_OUT: ReadonlySet<string> = new Set(['Demoted', 'Revoked']);

/** Demotions as the API server last told them. */
export class WatchedDemotions implements Demotions {
  readonly #tools: Store<ToolStanding>;
  readonly #approvals: Store<ApprovalWord>;

  /** Adds indexes to the stores. */
  constructor(tools: Store<ToolStanding>, approvals: Store<ApprovalWord>) {
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
      const out = status?.conditions?.find(
        ({ type, status: holds, reason }) => type === 'Active' && holds === 'False' && TAKEN_OUT.has(reason),
      );
      if (out !== undefined)
        return `taken out of service by EmergentTool "${metadata.name}" (${out.reason}): ${out.message}`;
    }
    // A yes that came after it was revoked shows in a tool that is active again; until then the word holds.
    if (tools.some(({ status }) => status?.active === true)) return undefined;
    const [revoked] = this.#approvals.byIndex(BY_DIGEST, key);
    return revoked === undefined ? undefined : `revoked by Approval "${revoked.metadata.name}"`;
  }
}

/** The tools without those that were taken out, and without those that have such a one as a step. */
export function inService(tools: readonly RegisteredTool[], isOut: (digest: Digest) => boolean): RegisteredTool[] {
  let left = tools.filter(({ digest }) => !isOut(digest));
  for (;;) {
    const digests = new Set(left.map(({ digest }) => digest));
    const ofSession = new Set(tools.map(({ digest }) => digest));
    const standing = left.filter(({ artifact }) =>
      (artifact.implementation.steps ?? []).every(({ tool }) => {
        const pinned = tool.split('@')[1] as Digest | undefined;
        return pinned === undefined || (!isOut(pinned) && (digests.has(pinned) || !ofSession.has(pinned)));
      }),
    );
    if (standing.length === left.length) return standing;
    left = standing;
  }
}

function keyOf(namespace: string | undefined, digest: string): string {
  return `${namespace ?? ''}/${digest}`;
}
