import { RELEASE_OBJECTS } from '../../api/cluster.ts';
import type { KubeClient } from '../../kube/client/kube-client.ts';
import type { Clock } from '../../lib/clock.ts';
import { TemperError } from '../../lib/errors.ts';
import { ReleaseSecrets } from '../pki/release-secrets.ts';
import { auditKeyData, type AuditKeys, auditKeysIn, hasUsableKey, rotateAuditKeys } from './audit-key.ts';

/**
 * The keys of the Secret of the release; `isFirst`: nothing was signed yet. A rotation is one write on the version that was read, so a
 * process that ends before it changes nothing, and of two leaders one fails. Throws TEMPER_AUDIT_CHAIN_INVALID when the keys are lost:
 * a new key in their place would hide that nothing proves the heads any more.
 */
export type ReadAuditKeys = (isFirst: boolean, signal: AbortSignal) => Promise<AuditKeys>;

export function auditKeyStore(client: KubeClient, namespace: string, clock: Clock): ReadAuditKeys {
  const secrets = new ReleaseSecrets(client, namespace);
  const name = RELEASE_OBJECTS.auditKey;
  return async (isFirst, signal) => {
    const stored = await secrets.readVersion(name, signal);
    const read = auditKeysIn(stored?.data, clock.now());
    const known = read !== undefined && hasUsableKey(read) ? read : undefined;
    if (!isFirst && known === undefined) throw lost();
    const keys = rotateAuditKeys(known, clock.now());
    if (keys !== known) await secrets.replace(name, auditKeyData(keys), stored?.version, signal);
    return keys;
  };
}

function lost(): TemperError {
  return new TemperError(
    'TEMPER_AUDIT_CHAIN_INVALID',
    `the Secret ${RELEASE_OBJECTS.auditKey} has no usable key, but ${RELEASE_OBJECTS.auditHeads} has heads; restore the Secret from its backup, or delete the ConfigMap to begin a new chain`,
  );
}
