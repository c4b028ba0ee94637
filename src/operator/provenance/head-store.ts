import { RELEASE_OBJECTS } from '../../api/cluster.ts';
import { HEADS_MEMBER, parseSignedHeads, PUBLIC_KEYS_MEMBER } from '../../audit/signed-heads.ts';
import type { SignedHead } from '../../audit/stream-chain.ts';
import type { KubeClient } from '../../kube/client/kube-client.ts';
import { TemperError } from '../../lib/errors.ts';
import { FIELD_MANAGER, MANAGED_LABEL, type PlainObject, TYPES } from '../kube/types.ts';

export interface StoredHeads {
  /** In order; the last one is the current head. */
  heads: SignedHead[];
  resourceVersion: string;
}

/** What to store: heads, and the public keys that verify them. */
interface SignedHeads {
  readonly heads: readonly SignedHead[];
  readonly publicKeys: readonly string[];
}

/** The signed heads, outside of NATS: a ConfigMap in the namespace of the release. */
export interface HeadStore {
  /** Undefined when there is none. Throws TEMPER_AUDIT_CHAIN_INVALID when its content is not readable. */
  read(signal: AbortSignal): Promise<StoredHeads | undefined>;
  /** Fails when another writer changed the heads since `known` was read. */
  write(signed: SignedHeads, known: StoredHeads | undefined, signal: AbortSignal): Promise<void>;
}

export function configMapHeadStore(client: KubeClient, namespace: string): HeadStore {
  const name = RELEASE_OBJECTS.auditHeads;
  return {
    async read(signal) {
      const found = await client.get<PlainObject>(TYPES.configMaps, { namespace, name }, signal);
      if (found === undefined) return undefined;
      const data = found['data'] as Record<string, string> | undefined;
      return { heads: parseHeads(data?.[HEADS_MEMBER] ?? ''), resourceVersion: found.metadata.resourceVersion ?? '' };
    },
    async write({ heads, publicKeys }, known, signal) {
      const version = known === undefined ? {} : { resourceVersion: known.resourceVersion };
      const metadata = { name, namespace, labels: { ...MANAGED_LABEL }, ...version };
      const data = {
        [HEADS_MEMBER]: `${JSON.stringify(heads, null, 1)}\n`,
        [PUBLIC_KEYS_MEMBER]: publicKeys.join(''),
      };
      const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata, data };
      await client.apply(TYPES.configMaps, object, { manager: FIELD_MANAGER, force: true }, signal);
    },
  };
}

function parseHeads(text: string): SignedHead[] {
  const heads = parseSignedHeads(text);
  if (heads !== undefined) return heads;
  throw new TemperError(
    'TEMPER_AUDIT_CHAIN_INVALID',
    `the ConfigMap ${RELEASE_OBJECTS.auditHeads} holds no signed heads; restore it from its backup`,
  );
}
