import type { KubeClient } from '../../kube/client/kube-client.ts';
import { isTemperError } from '../../lib/errors.ts';
import type { ReadAuditHead } from '../sharing/create-request.ts';
import { configMapHeadStore } from './head-store.ts';

/** The newest signed head. Heads that cannot be read are reported by the task that signs, and hold no request up. */
export function newestHeadOf(client: KubeClient, namespace: string): ReadAuditHead {
  const store = configMapHeadStore(client, namespace);
  return async (signal) => {
    try {
      return (await store.read(signal))?.heads.at(-1);
    } catch (error) {
      if (isTemperError(error, 'TEMPER_AUDIT_CHAIN_INVALID')) return undefined;
      throw error;
    }
  };
}
