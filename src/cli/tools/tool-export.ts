import { writeFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { openAudit } from '../../audit/recorded-trail.ts';
import { systemClock } from '../../lib/clock.ts';
import { TemperError } from '../../lib/errors.ts';
import { fileRecordStore } from '../../lib/file-record-store.ts';
import { parseUntrustedJson } from '../../lib/json.ts';
import { printableDocument } from '../../lib/printable.ts';
import { exportPackage } from '../../tempering/packages/packages.ts';
import { openRegistry } from '../../tempering/registry/registry.ts';
import type { RegisteredTool } from '../../tempering/types.ts';
import { type CliIo, EXIT } from '../io.ts';
import { toYamlText } from '../objects/data-format.ts';
import { stateFolder } from '../state/state-folder.ts';
import { exportForGitOps, type GitOpsExportOptions } from './gitops/gitops-export.ts';
import { statePromotion } from './gitops/state-promotion.ts';

export interface ToolExportOptions {
  /** Name, object name or digest. */
  tool: string;
  state: string;
  form: 'yaml' | 'json';
  /** Default: standard output. */
  file?: string;
  /** Omit the source. */
  redact?: boolean;
}

/** Prints a forged tool of the state folder as a portable package. Only reads, so it works while another process has locked the folder. */
export async function toolExport(options: ToolExportOptions, io: CliIo): Promise<number> {
  const records = fileRecordStore(await stateFolder(io, options.state));
  const audit = await openAudit({ records, clock: systemClock });
  const registry = await openRegistry({ records, audit, clock: systemClock, builtIn: new Set() });
  const tool = selectTool(registry.all(), options);
  const exportedAt = systemClock.now().toISOString();
  const json = exportPackage(tool, { form: 'json', exportedAt, ...(options.redact === true ? { redact: true } : {}) });
  // Control characters of the tool stay escaped, in a terminal and in an editor.
  const text = options.form === 'json' ? printableDocument(json) : toYamlText(parseUntrustedJson(json));
  if (options.file === undefined) io.out(text);
  else await writeFile(resolve(io.cwd, options.file), text, { mode: 0o600 });
  if (tool.sourceWithheld)
    io.error(`${tool.artifact.name}: the object does not contain its source, so the package is for review only\n`);
  if (!tool.active)
    io.error(`${tool.artifact.name} is not active: ${tool.inactiveReason ?? 'no reason is recorded'}\n`);
  return EXIT.ok;
}

/** Writes the files with which a GitOps controller shares a tool of the state folder on a cluster. */
export async function toolExportForGitOps(
  options: GitOpsExportOptions & Pick<ToolExportOptions, 'tool' | 'state'>,
  io: CliIo,
): Promise<number> {
  const records = fileRecordStore(await stateFolder(io, options.state));
  const audit = await openAudit({ records, clock: systemClock });
  const registry = await openRegistry({ records, audit, clock: systemClock, builtIn: new Set() });
  const selected = selectTool(registry.all(), options);
  const tool = registry.get(selected.digest) ?? selected;
  const promotion = await statePromotion(tool, registry, records, await audit.records());
  return exportForGitOps(promotion, options, options.state, io);
}

/** Selects one tool. Several objects of one digest count as one tool; several digests are an error that lists them. */
function selectTool(
  all: readonly RegisteredTool[],
  { tool: target, state }: Pick<ToolExportOptions, 'tool' | 'state'>,
): RegisteredTool {
  const found = all.filter((tool) => [tool.artifact.name, tool.digest, tool.object.split('/').at(-1)].includes(target));
  const active = found.filter((tool) => tool.active);
  const candidates = active.length > 0 ? active : found;
  const [first] = candidates;
  if (first === undefined) {
    const names = [...new Set(all.map((tool) => tool.artifact.name))].sort().slice(0, 20);
    const known = names.length === 0 ? 'there are none' : `found: ${names.join(', ')}`;
    throw new TemperError('TEMPER_NOT_FOUND', `no tool "${target}" in ${state}; ${known}`);
  }
  if (new Set(candidates.map(({ digest }) => digest)).size === 1) return first;
  const digests = [...new Set(candidates.map(({ digest }) => digest))].join(', ');
  throw new TemperError('TEMPER_USAGE', `"${target}" is the name of several tools; give the digest of one: ${digests}`);
}
