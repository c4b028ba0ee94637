import type { Digest } from '../../lib/canonical.ts';
import { TemperError } from '../../lib/errors.ts';
import { isJsonObject, type Json } from '../../lib/json.ts';
import type { ToolStatistics, ToolUse } from '../../tempering/types.ts';
import { countUse, emptyUseRecord, statisticsOf, type UseRecord } from '../../tempering/use/use-record.ts';
import { toCountedUse } from '../../tempering/use/use-store.ts';
import type { JetStreamConnection } from '../connection/connection.ts';
import { createDocumentStore } from '../jetstream/document-store.ts';
import { BUCKETS, sessionToken, token } from '../jetstream/names.ts';

/** Use statistics of tools at tier Session, deleted with the session. Inputs are stored as digests only. */
export interface SessionToolUses {
  /** Adds uses of one tool in one session. Idempotent for the last 32 keys. Throws TEMPER_STATE_CORRUPT after 16 write conflicts. */
  count(agentUid: string, tool: SessionTool, key: string, uses: readonly ToolUse[]): Promise<void>;
  statistics(agentUid: string, tool: SessionTool): Promise<ToolStatistics>;
}

interface SessionTool {
  session: string;
  digest: Digest;
  namespace: string;
}

interface CountedUses {
  record: UseRecord;
  /** The last counted keys, oldest first. */
  keys: string[];
}

/** A few suffice: a pod repeats a request without a response before it sends the next one. */
const MAX_KEYS = 32;
const MAX_ATTEMPTS = 16;

export function createSessionToolUses(connection: JetStreamConnection): SessionToolUses {
  const documents = createDocumentStore(connection, BUCKETS.sessionTools);
  const read = async (agentUid: string, tool: SessionTool) => {
    const found = await documents.get(keyOf(agentUid, tool));
    return { counted: parseCounted(found?.value, tool), revision: found?.revision ?? 0 };
  };
  return {
    async count(agentUid, tool, key, uses) {
      for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
        const { counted, revision } = await read(agentUid, tool);
        if (counted.keys.includes(key)) return;
        let { record } = counted;
        // Inputs are not stored here, so the record must not claim that one is.
        for (const use of uses) ({ record } = countUse(record, { ...toCountedUse(use), isStorable: false }));
        const next = { record, keys: [...counted.keys, key].slice(-MAX_KEYS) };
        if ((await documents.write(keyOf(agentUid, tool), next as unknown as Json, revision)) !== undefined) return;
      }
      throw new TemperError(
        'TEMPER_STATE_CORRUPT',
        `the uses of ${tool.digest} were changed ${MAX_ATTEMPTS} times by other gateways; try again`,
        {
          retry: 'backoff',
        },
      );
    },
    async statistics(agentUid, tool) {
      return statisticsOf((await read(agentUid, tool)).counted.record);
    },
  };
}

/** One token longer than the key of a tool, so that the filter that lists tools does not match it. */
function keyOf(agentUid: string, { session, digest }: SessionTool): string {
  return `${token(agentUid)}.${sessionToken(session)}.${token(digest.slice('sha256:'.length))}.uses`;
}

function parseCounted(value: Json | undefined, { digest, namespace }: SessionTool): CountedUses {
  const record = isJsonObject(value) ? value['record'] : undefined;
  const keys = isJsonObject(value) ? value['keys'] : undefined;
  if (!isJsonObject(record) || !Array.isArray(keys)) return { record: emptyUseRecord(digest, namespace), keys: [] };
  return { record: record as unknown as UseRecord, keys: keys as string[] };
}
