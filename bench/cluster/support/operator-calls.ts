import { RELEASE_OBJECTS } from '../../../src/api/cluster.ts';
import { type AuditEntry, isWrite } from '../../../test/cluster/audit.ts';
import type { BenchCluster } from './bench-cluster.ts';

/** The operator's requests to the API server in a period, from the server's audit log. */
export interface OperatorCalls {
  /** Writes including Events, without those by time and without dry runs. */
  readonly writes: number;
  /** The writes to the status of policies, which aggregates all agents every ten seconds. */
  readonly policyStatusWrites: number;
  /** Counts of writes by verb and resource. */
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
    const ours = since.filter((entry) => entry.user === operatorUser && !isByTime(entry));
    return countCalls(ours);
  };
}

/** Written by time, however many agents there are: the Lease, and once a minute the head of the audit stream when it has new records. */
function isByTime({ resource, name }: AuditEntry): boolean {
  return resource.startsWith('leases') || (resource === 'configmaps' && name === RELEASE_OBJECTS.auditHeads);
}

function countCalls(entries: readonly AuditEntry[]): OperatorCalls {
  const mayWrite = entries.filter(isWrite);
  const writes = mayWrite.filter(({ dryRun }) => !dryRun);
  const policyStatusWrites = writes.filter(({ resource }) => resource.startsWith('trustpolicies')).length;
  const byKind: Record<string, number> = {};
  for (const { verb, resource, subresource } of writes) {
    const kind = `${verb} ${resource.split('.')[0]}${subresource === '' ? '' : `/${subresource}`}`;
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
