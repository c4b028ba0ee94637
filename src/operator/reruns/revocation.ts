import { API_VERSION } from '../../api/names.ts';
import type { Approval } from '../../api/v1alpha1/approval.ts';
import { ApiError, type KubeClient } from '../../kube/client/kube-client.ts';
import type { KubeObject } from '../../kube/informer/store.ts';
import { sha256 } from '../../lib/canonical.ts';
import { printable } from '../../lib/printable.ts';
import { FIELD_MANAGER, TYPES } from '../kube/types.ts';
import type { StoredTool } from '../tool/stored-tool.ts';

const NONCE_CHARACTERS = 26;
const MAX_REASON = 1_000;

/**
 * The demotion of a tool by the operator: an Approval that revokes its digest. It outlives the tool and its status. Pure; the same for one
 * object and reason.
 */
export function revocationOf({ metadata, facts }: StoredTool, operator: string, reason: string): Approval {
  const { namespace, name, uid } = metadata;
  const { tool, digest, tier, requestNonce } = facts;
  const hash = sha256(`${uid} ${requestNonce ?? ''}`).slice('sha256:'.length);
  return {
    apiVersion: API_VERSION,
    kind: 'Approval',
    metadata: { name: `${name.slice(0, 200)}-demoted-${hash.slice(0, 8)}`, namespace },
    spec: {
      decision: 'Revoke',
      nonce: requestNonce ?? hash.slice(0, NONCE_CHARACTERS),
      reason: printable(reason, MAX_REASON),
      approvedBy: { username: operator },
      subject: { promotion: { tool, digest, tier } },
    },
  };
}

/** Creates the revocation. Idempotent. Throws ApiError. */
export async function revoke(
  client: Pick<KubeClient, 'create'>,
  approval: Approval,
  signal: AbortSignal,
): Promise<void> {
  try {
    await client.create<KubeObject>(TYPES.approvals, approval, signal, { manager: FIELD_MANAGER });
  } catch (error) {
    if (!(error instanceof ApiError) || error.reason !== 'AlreadyExists') throw error;
  }
}
