import type { Digest } from '../../lib/canonical.ts';
import type { JsonObject } from '../../lib/json.ts';
import type { RecordStore } from '../../lib/record-store.ts';
import { hexOf, pathSegment } from '../registry/object-name.ts';
import type { ExaminationReport } from './types.ts';

/**
 * Stores the last report of each tool as document `examinations/<namespace>/<digest>`, and removes the reports of tools that no longer
 * exist. A report says what was found; no decision reads it.
 */
export async function storeReport(
  records: RecordStore,
  namespace: string,
  report: ExaminationReport,
  existing: readonly Digest[],
): Promise<void> {
  const collection = `examinations/${pathSegment(namespace)}`;
  await records.put(collection, hexOf(report.digest), report as unknown as JsonObject);
  const known = new Set([report.digest, ...existing].map(hexOf));
  for (const { name } of await records.list(collection)) {
    if (!known.has(name)) await records.delete(collection, name);
  }
}
