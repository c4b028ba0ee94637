import { resourceType } from '../../../kube/client/resource-path.ts';
import { RELEASE_OBJECTS } from '../../../api/cluster.ts';
import {
  headVerifier,
  HEADS_MEMBER,
  parseSignedHeads,
  PUBLIC_KEYS_MEMBER,
  splitPublicKeys,
} from '../../../audit/signed-heads.ts';
import type { HeadVerifier, SignedHead } from '../../../audit/stream-chain.ts';
import type { KubeObject } from '../../../kube/informer/store.ts';
import { TemperError } from '../../../lib/errors.ts';
import { printable } from '../../../lib/printable.ts';
import { readInputFile } from '../../input/input-files.ts';
import type { CliIo } from '../../io.ts';
import { type Cluster, toTemperError } from '../cluster.ts';

const CONFIG_MAPS = resourceType('v1', 'configmaps', 'ConfigMap');

export interface ClusterHeads {
  readonly heads: SignedHead[];
  readonly verifier: HeadVerifier;
}

/** The heads of the ConfigMap, with its public keys or, when a file is given, with those of the file alone. */
export async function readHeads(
  cluster: Cluster,
  { namespace, keys }: { namespace: string; keys: string | undefined },
  io: CliIo,
): Promise<ClusterHeads> {
  const trusted = keys === undefined ? undefined : await verifierIn(keys, io);
  const name = RELEASE_OBJECTS.auditHeads;
  const found = await cluster.kube
    .get<KubeObject & { data?: Record<string, string> }>(CONFIG_MAPS, { namespace, name }, io.signal)
    .catch((error: unknown) => {
      throw toTemperError(error, `reading ConfigMap ${name} of namespace ${printable(namespace, 63)}`, cluster);
    });
  const { [HEADS_MEMBER]: text = '', [PUBLIC_KEYS_MEMBER]: pem = '' } = found?.data ?? {};
  if (found === undefined || splitPublicKeys(pem).length === 0) throw noHeads(`${printable(namespace, 63)}/${name}`);
  const heads = parseSignedHeads(text);
  const verifier = trusted ?? verifierOf(pem);
  if (heads !== undefined && verifier !== undefined) return { heads, verifier };
  throw new TemperError(
    'TEMPER_AUDIT_CHAIN_INVALID',
    `the ConfigMap ${name} holds no signed heads or no public keys of them; restore it from its backup`,
  );
}

/** Throws TEMPER_USAGE for a file without public keys. */
async function verifierIn(file: string, io: CliIo): Promise<HeadVerifier> {
  const verifier = verifierOf(await readInputFile(file, '--keys', io));
  if (verifier !== undefined) return verifier;
  throw new TemperError(
    'TEMPER_USAGE',
    `--keys ${printable(file, 400)} has no Ed25519 public keys in PEM; give a copy of ${PUBLIC_KEYS_MEMBER} of the ConfigMap ${RELEASE_OBJECTS.auditHeads}`,
  );
}

function verifierOf(pem: string): HeadVerifier | undefined {
  const keys = splitPublicKeys(pem);
  try {
    return keys.length === 0 ? undefined : headVerifier(keys);
  } catch {
    return undefined;
  }
}

function noHeads(where: string): TemperError {
  return new TemperError(
    'TEMPER_NOT_FOUND',
    `ConfigMap ${where} has no signed heads yet; the operator signs every minute`,
  );
}
