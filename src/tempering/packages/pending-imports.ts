import type { ForgeResult } from '../../forge/types.ts';
import { type Digest, isDigest, sha256 } from '../../lib/canonical.ts';
import { isJsonObject, type Json, type JsonObject } from '../../lib/json.ts';
import type { RecordStore } from '../../lib/record-store.ts';
import { hexOf } from '../registry/object-name.ts';
import type { ToolOwner } from '../registry/visibility.ts';

/**
 * A tool from a package that is pending until the next session of its agent. It is an ordinary forge request: it passes every gate
 * in that session, including the judge and the policy, and starts at tier Session like a tool that the agent forged itself.
 */
export interface PendingImport extends ToolOwner {
  name: string;
  /** Digest of the artifact that the deterministic gates built from the request. */
  digest: Digest;
  request: JsonObject;
  /** RFC 3339. */
  importedAt: string;
}

const COLLECTION = 'imports';

/** Stores a pending import. Idempotent per agent and digest. */
export async function storePendingImport(records: RecordStore, waiting: PendingImport): Promise<void> {
  await records.put(COLLECTION, nameOf(waiting), waiting as unknown as JsonObject);
}

/**
 * Submits the pending imports of an agent through `submit`, the complete forge of its new session. Accepted and rejected imports
 * leave the list; an import without a decision (judge or sandbox unavailable) stays pending.
 */
export async function submitPendingImports(
  records: RecordStore,
  owner: ToolOwner,
  submit: (request: JsonObject) => Promise<ForgeResult>,
): Promise<ForgeResult[]> {
  const results: ForgeResult[] = [];
  for (const { name, value } of await records.list(COLLECTION)) {
    const waiting = parseImport(value);
    if (waiting?.agent !== owner.agent || waiting.namespace !== owner.namespace) continue;
    const result = await submit(waiting.request);
    results.push(result);
    if (result.accepted || !RETRYABLE.has(result.code)) await records.delete(COLLECTION, name);
  }
  return results;
}

/** Codes that are no decision about the tool. */
const RETRYABLE: ReadonlySet<string> = new Set([
  'TEMPER_JUDGE_UNAVAILABLE',
  'TEMPER_JUDGE_SUSPENDED',
  'TEMPER_SANDBOX_UNAVAILABLE',
  'TEMPER_CANCELLED',
  'TEMPER_TIMEOUT',
]);

function nameOf({ digest, agent, namespace }: PendingImport): string {
  return `${hexOf(digest)}.${sha256(`${namespace}/${agent}`).slice('sha256:'.length, 'sha256:'.length + 16)}`;
}

function parseImport(value: Json): PendingImport | undefined {
  if (!isJsonObject(value) || !isJsonObject(value.request) || !isDigest(value.digest)) return undefined;
  return value as unknown as PendingImport;
}
