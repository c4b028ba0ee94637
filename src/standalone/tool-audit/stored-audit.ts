import type { Digest } from '../../lib/canonical.ts';
import type { Json, JsonObject } from '../../lib/json.ts';
import { printable } from '../../lib/printable.ts';
import type { RecordStore } from '../../lib/record-store.ts';
import { hexOf } from '../../tempering/registry/object-name.ts';
import type { AuditedTask } from './tool-audit.ts';

/** The last audit of a tool, for users and reviewers. It decides nothing. */
export interface ToolAuditReport {
  /** RFC 3339. */
  readonly time: string;
  readonly agent: string;
  readonly model: string;
  /** A tool that no task called was not tested. */
  readonly evidence: 'Compared' | 'NeverCalled';
  readonly tasks: readonly AuditedTask[];
}

const MAX_TASK_TEXT = 500;

const collectionOf = (namespace: string): string => `toolaudits/${namespace}`;

export function toAuditReport(
  of: Pick<ToolAuditReport, 'time' | 'agent' | 'model'>,
  tasks: readonly AuditedTask[],
): ToolAuditReport {
  const isCalled = tasks.some(({ withTool }) => withTool.uses > 0);
  return {
    ...of,
    evidence: isCalled ? 'Compared' : 'NeverCalled',
    tasks: tasks.map((one) => ({ ...one, task: printable(one.task, MAX_TASK_TEXT) })),
  };
}

export async function storeAudit(
  records: RecordStore,
  namespace: string,
  digest: Digest,
  report: ToolAuditReport,
): Promise<void> {
  await records.put(collectionOf(namespace), hexOf(digest), report as unknown as JsonObject);
}

export function storedAudit(records: RecordStore, namespace: string, digest: Digest): Promise<Json | undefined> {
  return records.get(collectionOf(namespace), hexOf(digest));
}
