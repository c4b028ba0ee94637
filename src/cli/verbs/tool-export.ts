import { writeFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { openAudit } from '../../audit/recorded.ts';
import { systemClock } from '../../lib/clock.ts';
import { TemperError } from '../../lib/errors.ts';
import { fileRecords } from '../../lib/file-records.ts';
import { exportPackage } from '../../tempering/packages.ts';
import { openRegistry } from '../../tempering/registry.ts';
import type { RegisteredTool } from '../../tempering/types.ts';
import { type CliIo, EXIT } from '../io.ts';

export interface ToolExportOptions {
  /** Name, object name or digest. */
  tool: string;
  state: string;
  form: 'yaml' | 'json';
  /** Write there; standard output when absent. */
  file?: string;
  /** Leave the source out. */
  redact?: boolean;
}

/** Prints a forged tool of the state folder as a portable package. Reads only, also while another process holds the folder. */
export async function toolExport(options: ToolExportOptions, io: CliIo): Promise<number> {
  const records = fileRecords(resolve(io.cwd, options.state));
  const audit = await openAudit({ records, clock: systemClock });
  const registry = await openRegistry({ records, audit, clock: systemClock, builtIn: new Set() });
  const tool = chosen(registry.all(), options);
  const exportedAt = systemClock.now().toISOString();
  const text = exportPackage(tool, {
    form: options.form,
    exportedAt,
    ...(options.redact === true ? { redact: true } : {}),
  });
  if (options.file === undefined) io.out(text);
  else await writeFile(resolve(io.cwd, options.file), text, { mode: 0o600 });
  if (tool.sourceWithheld)
    io.error(`${tool.artifact.name}: its source is not kept in the object, so the package is for review only\n`);
  if (!tool.active)
    io.error(`${tool.artifact.name} is not active: ${tool.inactiveReason ?? 'no reason is on record'}\n`);
  return EXIT.ok;
}

/** One tool: several objects of one digest are one, several digests are a question back. */
function chosen(all: readonly RegisteredTool[], { tool: wanted, state }: ToolExportOptions): RegisteredTool {
  const found = all.filter((tool) => [tool.artifact.name, tool.digest, tool.object.split('/').at(-1)].includes(wanted));
  const inService = found.filter((tool) => tool.active);
  const candidates = inService.length > 0 ? inService : found;
  const [first] = candidates;
  if (first === undefined) {
    const names = [...new Set(all.map((tool) => tool.artifact.name))].sort().slice(0, 20);
    const known = names.length === 0 ? 'there are none' : `there are ${names.join(', ')}`;
    throw new TemperError('TEMPER_NOT_FOUND', `no tool "${wanted}" in ${state}; ${known}`);
  }
  if (new Set(candidates.map(({ digest }) => digest)).size === 1) return first;
  const digests = [...new Set(candidates.map(({ digest }) => digest))].join(', ');
  throw new TemperError('TEMPER_USAGE', `"${wanted}" is the name of several tools; name one by its digest: ${digests}`);
}
