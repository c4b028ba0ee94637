import { stringify } from 'yaml';
import { openAudit } from '../../audit/recorded-trail.ts';
import { systemClock } from '../../lib/clock.ts';
import { fileRecordStore } from '../../lib/file-record-store.ts';
import type { Json } from '../../lib/json.ts';
import type { RecordStore } from '../../lib/record-store.ts';
import { type ForgeTelemetry, forgeTelemetry } from '../../tempering/registry/forge-telemetry.ts';
import { type CliIo, EXIT, writeJsonLine } from '../io.ts';
import { lookupKind } from '../kinds.ts';
import { matchesTool, listStateTools, toolWithEvidence } from './state-tools.ts';
import { listKind, notFound } from './get.ts';
import { stateFolder } from './state-folder.ts';

export interface DescribeOptions {
  kind: string;
  name: string;
  state: string;
  output: 'text' | 'json';
}

/** Prints one object with all its fields. A tool is found by object name, digest or the name that models use, and is printed with its evidence and uses. */
export async function describe(options: DescribeOptions, io: CliIo): Promise<number> {
  const kind = lookupKind(options.kind);
  const records = fileRecordStore(await stateFolder(io, options.state));
  const value = await valueOf(records, kind.collection, options.name);
  if (options.output === 'json') writeJsonLine(io, value);
  else io.out(stringify(value, { lineWidth: 0 }));
  return EXIT.ok;
}

async function valueOf(records: RecordStore, collection: string, name: string): Promise<Json> {
  if (collection === 'tools') return findTool(records, name);
  const value = await find(records, collection, name);
  return collection === 'agents' ? { object: value, forging: { ...(await forgingOf(records, name)) } } : value;
}

/** Forge statistics of an agent from the audit log: accepted and finally refused tools, with reasons. */
async function forgingOf(records: RecordStore, agent: string): Promise<ForgeTelemetry> {
  const trail = await openAudit({ records, clock: systemClock });
  return forgeTelemetry(await trail.records(), agent);
}

async function find(records: RecordStore, collection: string, name: string): Promise<Json> {
  const all = await listKind(records, collection);
  const found = all.find((record) => record.name === name);
  if (found === undefined) throw notFound(collection, name, all);
  return found.value;
}

/** The first tool with the name. Tools of tier Agent and Shared come before tools of sessions. */
async function findTool(records: RecordStore, name: string): Promise<Json> {
  const all = await listStateTools(records);
  const found = all.find((tool) => matchesTool(tool, name));
  if (found === undefined) throw notFound('tools', name, all);
  return toolWithEvidence(records, found);
}
