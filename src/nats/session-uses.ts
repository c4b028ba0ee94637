import type { Digest } from '../lib/canonical.ts';
import { TemperError } from '../lib/errors.ts';
import { isJsonObject, type Json } from '../lib/json.ts';
import type { ToolStatistics, ToolUse } from '../tempering/types.ts';
import { countUse, emptyUseRecord, statisticsOf, type UseRecord } from '../tempering/use-record.ts';
import { measuredUse } from '../tempering/use-store.ts';
import type { BusConnection } from './connection.ts';
import { documentsIn } from './ledger-store.ts';
import { BUCKETS, sessionToken, token } from './names.ts';

/** What is remembered of the uses of tools at tier Session; goes with the session. Inputs are known by their digest alone. */
export interface SessionUses {
  /** Uses of one tool in one session. Those under a key that was counted already are not counted again. */
  count(agentUid: string, tool: SessionTool, key: string, uses: readonly ToolUse[]): Promise<void>;
  statistics(agentUid: string, tool: SessionTool): Promise<ToolStatistics>;
}

interface SessionTool {
  session: string;
  digest: Digest;
  namespace: string;
}

interface Counted {
  record: UseRecord;
  /** Keys counted last, oldest first. */
  keys: string[];
}

/** A pod repeats what it got no answer to before it says anything else. */
const REMEMBERED_KEYS = 32;
const MOST_ATTEMPTS = 16;

export function createSessionUses(connection: BusConnection): SessionUses {
  const documents = documentsIn(connection, BUCKETS.sessionTools);
  const read = async (agentUid: string, tool: SessionTool) => {
    const found = await documents.get(keyOf(agentUid, tool));
    return { counted: countedFrom(found?.value, tool), revision: found?.revision ?? 0 };
  };
  return {
    async count(agentUid, tool, key, uses) {
      for (let attempt = 0; attempt < MOST_ATTEMPTS; attempt += 1) {
        const { counted, revision } = await read(agentUid, tool);
        if (counted.keys.includes(key)) return;
        let { record } = counted;
        // No input is kept, so none may be said to be.
        for (const use of uses) ({ record } = countUse(record, { ...measuredUse(use), keepable: false }));
        const next = { record, keys: [...counted.keys, key].slice(-REMEMBERED_KEYS) };
        if ((await documents.write(keyOf(agentUid, tool), next as unknown as Json, revision)) !== undefined) return;
      }
      throw new TemperError('TEMPER_STATE_CORRUPT', `the uses of ${tool.digest} were counted by others meanwhile`, {
        retry: 'backoff',
      });
    },
    async statistics(agentUid, tool) {
      return statisticsOf((await read(agentUid, tool)).counted.record);
    },
  };
}

/** One token more than a tool has, so that who lists tools does not read it. */
function keyOf(agentUid: string, { session, digest }: SessionTool): string {
  return `${token(agentUid)}.${sessionToken(session)}.${token(digest.slice('sha256:'.length))}.uses`;
}

function countedFrom(value: Json | undefined, { digest, namespace }: SessionTool): Counted {
  const record = isJsonObject(value) ? value['record'] : undefined;
  const keys = isJsonObject(value) ? value['keys'] : undefined;
  if (!isJsonObject(record) || !Array.isArray(keys)) return { record: emptyUseRecord(digest, namespace), keys: [] };
  return { record: record as unknown as UseRecord, keys: keys as string[] };
}
