import type { AuditRecord, AuditTrail } from '../../audit/port.ts';
import { isJsonObject, type Json, type JsonObject } from '../../lib/json.ts';
import type { RecordStore } from '../../lib/record-store.ts';
import { WITHHELD, type WithheldSources } from './withheld-sources.ts';

/** Members with words of judges and reviewers, who may quote the source. */
const QUOTING: ReadonlySet<string> = new Set([
  'reason',
  'reasoning',
  'cause',
  'message',
  'note',
  'question',
  'problems',
]);

/** Records into which documents go without sources. Logs and all other collections pass as they are. */
export function withheldRecords(records: RecordStore, sources: WithheldSources): RecordStore {
  return {
    get: (collection, name) => records.get(collection, name),
    list: (collection) => records.list(collection),
    delete: (collection, name) => records.delete(collection, name),
    deleteCollection: (collection) => records.deleteCollection(collection),
    append: (log, value, durability) => records.append(log, value, durability),
    sync: (log) => records.sync(log),
    read: (log) => records.read(log),
    async put(collection, name, value) {
      const [kind] = collection.split('/');
      // The report of an examination has inputs that come from the source, and decides nothing.
      if (kind === 'examinations') return;
      if (kind === 'promotions') return records.put(collection, name, withoutQuotes(value));
      if (kind === 'memory' || kind === 'approvalrequests') return records.put(collection, name, sources.json(value));
      await records.put(collection, name, value);
    },
  };
}

/** A chain whose records about the tools of agents have no words of judges. What a user gives as a reason stays. */
export function withheldAudit(audit: AuditTrail): AuditTrail {
  return {
    records: () => audit.records(),
    head: () => audit.head(),
    flush: () => audit.flush(),
    append: (record, durability) => audit.append(recordWithoutWords(record), durability),
  };
}

/** The record without words of judges and reviewers. */
export function recordWithoutWords(record: AuditRecord): AuditRecord {
  const isOfUser = record.action === 'tool.demoted';
  return isOfUser ? record : { ...record, facts: withoutQuotes(record.facts) as JsonObject };
}

function withoutQuotes(value: Json): Json {
  if (Array.isArray(value)) return value.map(withoutQuotes);
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, item]) => [name, QUOTING.has(name) ? hidden(item) : withoutQuotes(item)]),
  );
}

function hidden(value: Json): Json {
  if (typeof value === 'string') return value === '' ? '' : WITHHELD;
  return Array.isArray(value) ? value.map(hidden) : withoutQuotes(value);
}
