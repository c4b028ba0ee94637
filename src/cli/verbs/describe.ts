import { resolve } from 'node:path';
import { stringify } from 'yaml';
import { fileRecords } from '../../lib/file-records.ts';
import type { Json } from '../../lib/json.ts';
import type { RecordStore } from '../../lib/records.ts';
import { type CliIo, EXIT, writeJsonLine } from '../io.ts';
import { kindNamed } from '../kinds.ts';
import { isNamed, storedTools, wholeTool } from '../stored-tools.ts';
import { listKind, notFound } from './get.ts';

export interface DescribeOptions {
  kind: string;
  name: string;
  state: string;
  output: 'text' | 'json';
}

/** Shows one object whole. A tool may be named by its object name, its digest or the name models call it by, and comes with its record. */
export async function describe(options: DescribeOptions, io: CliIo): Promise<number> {
  const kind = kindNamed(options.kind);
  const records = fileRecords(resolve(io.cwd, options.state));
  const value =
    kind.collection === 'tools'
      ? await findTool(records, options.name)
      : await find(records, kind.collection, options.name);
  if (options.output === 'json') writeJsonLine(io, value);
  else io.out(stringify(value, { lineWidth: 0 }));
  return EXIT.ok;
}

async function find(records: RecordStore, collection: string, name: string): Promise<Json> {
  const all = await listKind(records, collection);
  const found = all.find((record) => record.name === name);
  if (found === undefined) throw notFound(collection, name, all);
  return found.value;
}

/** The widest one of the name: tier Agent and Shared come before sessions. */
async function findTool(records: RecordStore, name: string): Promise<Json> {
  const all = await storedTools(records);
  const found = all.find((tool) => isNamed(tool, name));
  if (found === undefined) throw notFound('tools', name, all);
  return wholeTool(records, found);
}
