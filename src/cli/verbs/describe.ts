import { resolve } from 'node:path';
import { stringify } from 'yaml';
import { fileRecords } from '../../lib/file-records.ts';
import { member } from '../../lib/json.ts';
import type { StoredRecord } from '../../lib/records.ts';
import { type CliIo, EXIT, writeJsonLine } from '../io.ts';
import { kindNamed } from '../kinds.ts';
import { notFound } from './get.ts';

export interface DescribeOptions {
  kind: string;
  name: string;
  state: string;
  output: 'text' | 'json';
}

/** Shows one object whole. A tool may be named by its object name or by the name the model calls it by. */
export async function describe(options: DescribeOptions, io: CliIo): Promise<number> {
  const kind = kindNamed(options.kind);
  const records = fileRecords(resolve(io.cwd, options.state));
  const all = await records.list(kind.collection);
  const found =
    all.find((record) => record.name === options.name) ?? all.find((record) => toolName(record) === options.name);
  if (found === undefined) throw notFound(kind.collection, options.name, all);
  if (options.output === 'json') writeJsonLine(io, found.value);
  else io.out(stringify(found.value, { lineWidth: 0 }));
  return EXIT.ok;
}

function toolName({ value }: StoredRecord): unknown {
  return member(member(member(value, 'spec'), 'artifact'), 'name');
}
