import type { ForgeResult } from '../forge/types.ts';
import { type Digest, isDigest, sha256 } from '../lib/canonical.ts';
import { isJsonObject, type Json, type JsonObject } from '../lib/json.ts';
import type { RecordStore } from '../lib/records.ts';
import { hexOf } from './object-name.ts';
import type { ToolOwner } from './scopes.ts';

/**
 * A tool from a package, waiting for the next session of its agent. It is nothing but a forge request: it passes every gate there,
 * the judge's and the policy's too, and begins at tier Session like a tool the agent made itself.
 */
export interface WaitingImport extends ToolOwner {
  name: string;
  /** What the gates that need no judge made of the request. */
  digest: Digest;
  request: JsonObject;
  /** RFC 3339. */
  importedAt: string;
}

const COLLECTION = 'imports';

/** Kept once for each agent and digest. */
export async function keepImport(records: RecordStore, waiting: WaitingImport): Promise<void> {
  await records.put(COLLECTION, nameOf(waiting), waiting as unknown as JsonObject);
}

/**
 * Puts what waits for an agent through `submit`, the whole forge of its new session. What was accepted or refused is taken off the
 * list; what could not be judged, for want of a judge or a sandbox, waits on.
 */
export async function admitImports(
  records: RecordStore,
  owner: ToolOwner,
  submit: (request: JsonObject) => Promise<ForgeResult>,
): Promise<ForgeResult[]> {
  const results: ForgeResult[] = [];
  for (const { name, value } of await records.list(COLLECTION)) {
    const waiting = asImport(value);
    if (waiting?.agent !== owner.agent || waiting.namespace !== owner.namespace) continue;
    const result = await submit(waiting.request);
    results.push(result);
    if (result.accepted || !NOT_DECIDED.has(result.code)) await records.delete(COLLECTION, name);
  }
  return results;
}

const NOT_DECIDED: ReadonlySet<string> = new Set([
  'TEMPER_JUDGE_UNAVAILABLE',
  'TEMPER_SANDBOX_UNAVAILABLE',
  'TEMPER_CANCELLED',
  'TEMPER_TIMEOUT',
]);

function nameOf({ digest, agent, namespace }: WaitingImport): string {
  return `${hexOf(digest)}.${sha256(`${namespace}/${agent}`).slice('sha256:'.length, 'sha256:'.length + 16)}`;
}

function asImport(value: Json): WaitingImport | undefined {
  if (!isJsonObject(value) || !isJsonObject(value.request) || !isDigest(value.digest)) return undefined;
  return value as unknown as WaitingImport;
}
