import { type AuditEntry, isWrite } from '../../test/cluster/audit.ts';
import type { Installation } from './installation.ts';

/** What the operator asked of the API server in a window, as the server's audit log has it. */
export interface OperatorCalls {
  /** Events among them; without the Lease and without dry runs, which store nothing. */
  readonly writes: number;
  /** Of the writes those to the status of policies: what all agents of one do is folded into it every ten seconds. */
  readonly folds: number;
  /** By verb and resource. */
  readonly byKind: Readonly<Record<string, number>>;
  readonly conflicts: number;
  readonly lists: number;
  readonly gets: number;
  readonly dryRuns: number;
}

/** Begins a window; the answer counts what came in since. */
export async function observeCalls({ plane, operatorUser }: Installation): Promise<() => Promise<OperatorCalls>> {
  const before = (await plane.audit()).length;
  return async () => {
    const since = (await plane.audit()).slice(before);
    const ours = since.filter(({ user, resource }) => user === operatorUser && !resource.startsWith('leases'));
    return countCalls(ours);
  };
}

function countCalls(entries: readonly AuditEntry[]): OperatorCalls {
  const mayWrite = entries.filter(isWrite);
  const writes = mayWrite.filter(({ dryRun }) => !dryRun);
  const folds = writes.filter(({ resource }) => resource.startsWith('trustpolicies')).length;
  const byKind: Record<string, number> = {};
  for (const { verb, resource, subresource } of writes) {
    const kind = `${verb} ${resource.split('.')[0]}${subresource === '' ? '' : `/${subresource}`}`;
    byKind[kind] = (byKind[kind] ?? 0) + 1;
  }
  const of = (verb: string) => entries.filter((entry) => entry.verb === verb).length;
  return {
    writes: writes.length,
    folds,
    byKind,
    conflicts: writes.filter(({ code }) => code === 409).length,
    lists: of('list'),
    gets: of('get'),
    dryRuns: mayWrite.length - writes.length,
  };
}

export function listKinds({ byKind }: OperatorCalls): string {
  const kinds = Object.entries(byKind).toSorted(([, one], [, other]) => other - one);
  return kinds.map(([kind, count]) => `${count} × ${kind}`).join(', ');
}
