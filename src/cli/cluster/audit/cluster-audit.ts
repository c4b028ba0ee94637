import { systemClock } from '../../../lib/clock.ts';
import { TemperError } from '../../../lib/errors.ts';
import { isJsonObject, parseUntrustedJson, textAt } from '../../../lib/json.ts';
import { printable } from '../../../lib/printable.ts';
import { showToolLife } from '../../audit/audit-show.ts';
import { concerns, type LifeRecord } from '../../audit/tool-life.ts';
import { type CliIo, EXIT } from '../../io.ts';
import { openCluster } from '../cluster.ts';
import { GatewayUserClient } from '../gateway-user-client.ts';
import type { ClusterOptions } from '../options.ts';
import type { PagedRecord } from './audit-pages.ts';
import { assertSigned, readHeadFile } from './head-file.ts';
import { readHeads } from './read-heads.ts';
import { showKnownHead, showVerdict } from './show-verdict.ts';
import { verifyCluster } from './verify-chain.ts';

export interface ClusterAuditOptions extends ClusterOptions {
  /** The name or digest of the tool whose life to print; without it only the verdict is printed. */
  tool?: string;
  /** A file with a signed head that was kept outside of the cluster; it must lie on the chain. */
  head?: string;
  /** A file with the only public keys to trust, instead of those of the cluster. */
  keys?: string;
  output: 'text' | 'json';
}

/** Records of one tool that are printed. */
const MAX_LIFE = 20_000;

/**
 * Verifies the provenance chain of the installation with the records of the namespace, and prints the life of one tool. The records come
 * from the gateway, the heads and keys from the API server. Throws TEMPER_AUDIT_CHAIN_INVALID with the first record that differs. Exit 1
 * when the head of a file is older than all records, so that nothing can be compared with it.
 */
export async function clusterAudit(options: ClusterAuditOptions, io: CliIo): Promise<number> {
  const { tool, output, keys } = options;
  await using cluster = await openCluster(options, io);
  const known = options.head === undefined ? undefined : await readHeadFile(options.head, io);
  const gateway = new GatewayUserClient(cluster, io.signal);
  const signed = await readHeads(cluster, { namespace: await gateway.releaseNamespace(), keys }, io);
  if (known !== undefined) assertSigned(known, signed.verifier, keys);
  const life: LifeRecord[] = [];
  let own = 0;
  const onRecord = (paged: PagedRecord): void => {
    own += 1;
    const record = tool === undefined ? undefined : recordIn(paged);
    if (record !== undefined && concerns(record, tool ?? '') && life.length < MAX_LIFE) life.push(record);
  };
  const read = (after: number) => gateway.call({ method: 'GET', path: `audit?after=${after}` });
  const verdict = await verifyCluster({ ...signed, now: systemClock.now(), known }, read, onRecord);
  if (!verdict.ok) throw broken(verdict.problem);
  if (tool !== undefined) showToolLife(life, tool, output, io);
  showVerdict(verdict, own, { output, isLife: tool !== undefined, location: cluster.location }, io);
  return known === undefined ? EXIT.ok : showKnownHead(known, verdict, output, io);
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
