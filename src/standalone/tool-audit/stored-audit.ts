import type { Digest } from '../../lib/canonical.ts';
import { type JsonObject, member, textAt } from '../../lib/json.ts';
import type { RecordStore } from '../../lib/record-store.ts';
import { hexOf } from '../../tempering/registry/object-name.ts';
import type { ToolAuditReport } from '../../tool-audit/report.ts';

const collectionOf = (namespace: string): string => `toolaudits/${namespace}`;

export async function storeAudit(
  records: RecordStore,
  namespace: string,
  digest: Digest,
  report: ToolAuditReport,
): Promise<void> {
  await records.put(collectionOf(namespace), hexOf(digest), report as unknown as JsonObject);
}

/** Undefined without one, and for a file of another form. */
export async function storedAudit(
  records: RecordStore,
  namespace: string,
  digest: Digest,
): Promise<ToolAuditReport | undefined> {
  const found = await records.get(collectionOf(namespace), hexOf(digest));
  const isReport = Array.isArray(member(found, 'tasks')) && textAt(found, ['evidence']) !== '';
  return isReport ? (found as unknown as ToolAuditReport) : undefined;
}
