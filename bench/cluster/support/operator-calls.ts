import { RELEASE_OBJECTS } from '../../../src/api/cluster.ts';
import { type AuditEntry, isWrite } from '../../../test/cluster/audit.ts';
import { type BenchCluster, RELEASE } from './bench-cluster.ts';

/** The operator's requests to the API server in a period, from the server's audit log. */
export interface OperatorCalls {
  /** Writes including Events, without those by time and without dry runs. */
  readonly writes: number;
  /** The writes to the status of policies, which aggregates all agents every ten seconds. */
  readonly policyStatusWrites: number;
  /** Counts of writes by verb and resource; those that the API server refused have the status beside, e.g. `create pods (429)`. */
  readonly byKind: Readonly<Record<string, number>>;
  readonly conflicts: number;
  readonly lists: number;
  /** The listed resources. */
  readonly listed: readonly string[];
  readonly gets: number;
  readonly dryRuns: number;
}

/** Starts a period; call the result to count the requests since then. */
export async function observeCalls({ plane, operatorUser }: BenchCluster): Promise<() => Promise<OperatorCalls>> {
  const before = (await plane.audit()).length;
  return async () => {
    const since = (await plane.audit()).slice(before);
    const ours = since.filter((entry) => entry.user === operatorUser && !isOfRelease(entry));
    return countCalls(ours);
  };
}

/**
 * However many agents there are: the Lease, once a minute the head of the audit stream when it has new records, and the warm pod for
 * verifications.
 */
function isOfRelease({ resource, namespace, name }: AuditEntry): boolean {
  if (resource.startsWith('leases')) return true;
  if (resource === 'configmaps') return name === RELEASE_OBJECTS.auditHeads;
  return resource === 'pods' && namespace === RELEASE;
}

function countCalls(entries: readonly AuditEntry[]): OperatorCalls {
  const mayWrite = entries.filter(isWrite);
  const writes = mayWrite.filter(({ dryRun }) => !dryRun);
  const policyStatusWrites = writes.filter(({ resource }) => resource.startsWith('trustpolicies')).length;
  const byKind: Record<string, number> = {};
  for (const { verb, resource, subresource, code } of writes) {
    const refused = code >= 400 ? ` (${code})` : '';
    const kind = `${verb} ${resource.split('.')[0]}${subresource === '' ? '' : `/${subresource}`}${refused}`;
    byKind[kind] = (byKind[kind] ?? 0) + 1;
  }
  const of = (verb: string) => entries.filter((entry) => entry.verb === verb).length;
  return {
    writes: writes.length,
    policyStatusWrites,
    byKind,
    conflicts: writes.filter(({ code }) => code === 409).length,
    lists: of('list'),
    listed: [...new Set(entries.filter(({ verb }) => verb === 'list').map(({ resource }) => resource))],
    gets: of('get'),
    dryRuns: mayWrite.length - writes.length,
  };
}

export function listKinds({ byKind }: OperatorCalls): string {
  const kinds = Object.entries(byKind).toSorted(([, one], [, other]) => other - one);
  return kinds.map(([kind, count]) => `${count} × ${kind}`).join(', ');
}
