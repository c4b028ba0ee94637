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
import type { ResourceType } from '../../../kube/client/kube-client.ts';
import { systemClock } from '../../../lib/clock.ts';
import { TemperError } from '../../../lib/errors.ts';
import { isJsonObject, parseUntrustedJson, textAt } from '../../../lib/json.ts';
import { printable } from '../../../lib/printable.ts';
import { showToolLife } from '../../audit/audit-show.ts';
import { concerns, type LifeRecord } from '../../audit/tool-life.ts';
import { type CliIo, EXIT, writeJsonLine } from '../../io.ts';
import { type Cluster, openCluster, toTemperError } from '../cluster.ts';
import { GatewayUserClient } from '../gateway-user-client.ts';
import type { ClusterOptions } from '../options.ts';
import type { PagedRecord } from './audit-pages.ts';
import { type ChainVerdict, verifyCluster } from './verify-chain.ts';

export interface ClusterAuditOptions extends ClusterOptions {
  /** The name or digest of the tool whose life to print; without it only the verdict is printed. */
  tool?: string;
  output: 'text' | 'json';
}

const CONFIG_MAPS: ResourceType = {
  group: '',
  version: 'v1',
  plural: 'configmaps',
  kind: 'ConfigMap',
  namespaced: true,
};
/** Records of one tool that are printed. */
const MAX_LIFE = 20_000;

/**
 * Verifies the provenance chain of the installation with the records of the namespace, and prints the life of one tool. The records come
 * from the gateway, the heads and keys from the API server. Throws TEMPER_AUDIT_CHAIN_INVALID with the first record that differs.
 */
export async function clusterAudit(options: ClusterAuditOptions, io: CliIo): Promise<number> {
  const { tool, output } = options;
  await using cluster = await openCluster(options, io);
  const gateway = new GatewayUserClient(cluster, io.signal);
  const signed = await readHeads(cluster, await gateway.releaseNamespace(), io);
  const life: LifeRecord[] = [];
  let own = 0;
  const onRecord = (paged: PagedRecord): void => {
    own += 1;
    const record = tool === undefined ? undefined : recordIn(paged);
    if (record !== undefined && concerns(record, tool ?? '') && life.length < MAX_LIFE) life.push(record);
  };
  const read = (after: number) => gateway.call({ method: 'GET', path: `audit?after=${after}` });
  const verdict = await verifyCluster({ ...signed, now: systemClock.now() }, read, onRecord);
  if (!verdict.ok) throw broken(verdict.problem);
  if (tool !== undefined) showToolLife(life, tool, output, io);
  showVerdict(verdict, own, { output, isLife: tool !== undefined, location: cluster.location }, io);
  return EXIT.ok;
}

async function readHeads(
  cluster: Cluster,
  namespace: string,
  { signal }: CliIo,
): Promise<{ heads: SignedHead[]; verifier: HeadVerifier }> {
  const name = RELEASE_OBJECTS.auditHeads;
  const found = await cluster.kube
    .get<KubeObject & { data?: Record<string, string> }>(CONFIG_MAPS, { namespace, name }, signal)
    .catch((error: unknown) => {
      throw toTemperError(error, `reading ConfigMap ${name} of namespace ${printable(namespace, 63)}`, cluster);
    });
  const { [HEADS_MEMBER]: text = '', [PUBLIC_KEYS_MEMBER]: keys = '' } = found?.data ?? {};
  const publicKeys = splitPublicKeys(keys);
  if (found === undefined || publicKeys.length === 0) {
    const where = `${printable(namespace, 63)}/${name}`;
    throw new TemperError(
      'TEMPER_NOT_FOUND',
      `ConfigMap ${where} has no signed heads yet; the operator signs every minute`,
    );
  }
  const heads = parseSignedHeads(text);
  if (heads !== undefined) return { heads, verifier: headVerifier(publicKeys) };
  throw new TemperError(
    'TEMPER_AUDIT_CHAIN_INVALID',
    `the ConfigMap ${name} holds no signed heads; restore it from its backup`,
  );
}

/** Undefined for a record of another form; the chain covers its bytes all the same. */
function recordIn({ seq, time, data }: PagedRecord): LifeRecord | undefined {
  try {
    const value = parseUntrustedJson(data);
    const facts = isJsonObject(value) ? value['facts'] : undefined;
    if (!isJsonObject(facts)) return undefined;
    const [action, actor, subject] = ['action', 'actor', 'subject'].map((name) => textAt(value, [name]));
    return { seq, time, action: action ?? '', actor: actor ?? '', subject: subject ?? '', facts };
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

function broken({ sequence, problem }: { sequence: number; problem: string }): TemperError {
  const next = 'compare the NATS store and the ConfigMap with their backups';
  return new TemperError(
    'TEMPER_AUDIT_CHAIN_INVALID',
    `record ${sequence} of the audit stream ${printable(problem, 300)}; ${next}`,
  );
}

function showVerdict(
  { records, from, through, signed }: ChainVerdict & { ok: true },
  own: number,
  { output, isLife, location }: { output: 'text' | 'json'; isLife: boolean; location: string },
  io: CliIo,
): void {
  if (output === 'json') {
    if (!isLife)
      writeJsonLine(io, {
        intact: true,
        records,
        own,
        from,
        through,
        signedUpTo: signed.sequence,
        signedAt: signed.time,
      });
    return;
  }
  const unsigned = through - signed.sequence;
  const tail = unsigned > 0 ? `; ${unsigned} later records have no signed head yet` : '';
  io.out(
    `${records} records, ${own} of them of ${location}, chain intact from ${from} to ${through}, signed up to ${signed.sequence} at ${printable(signed.time, 40)}${tail}\n`,
  );
}
