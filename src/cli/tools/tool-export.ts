import { writeFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { systemClock } from '../../lib/clock.ts';
import { parseUntrustedJson } from '../../lib/json.ts';
import { printable, printableDocument } from '../../lib/printable.ts';
import { exportPackage } from '../../tempering/packages/packages.ts';
import type { ClusterOptions } from '../cluster/options.ts';
import { type CliIo, EXIT } from '../io.ts';
import { toYamlText } from '../objects/data-format.ts';
import { exportForGitOps, type GitOpsExportOptions } from './gitops/gitops-export.ts';
import { statePromotion } from './gitops/state-promotion.ts';
import { openPortableTool } from './portable-tool.ts';
import { openStateTool } from './state-tool.ts';

export interface ToolExportOptions {
  /** Name, object name or digest. */
  tool: string;
  state: string;
  form: 'yaml' | 'json';
  /** Default: standard output. */
  file?: string;
  /** Omit the source. */
  redact?: boolean;
  /** Write a signed attestation of the tool to this file. */
  attestation?: string;
}

/** Prints a forged tool of the state folder or of a cluster as a portable package. */
export async function toolExport(options: ToolExportOptions & ClusterOptions, io: CliIo): Promise<number> {
  const portable = await openPortableTool(options, io);
  const { tool, inactiveReason } = portable;
  const exportedAt = systemClock.now().toISOString();
  const json = exportPackage(tool, { form: 'json', exportedAt, ...(options.redact === true ? { redact: true } : {}) });
  // Control characters of the tool stay escaped, in a terminal and in an editor.
  const text = options.form === 'json' ? printableDocument(json) : toYamlText(parseUntrustedJson(json));
  if (options.attestation !== undefined)
    await writeFile(resolve(io.cwd, options.attestation), await portable.attestation(), { mode: 0o600 });
  if (options.file === undefined) io.out(text);
  else await writeFile(resolve(io.cwd, options.file), text, { mode: 0o600 });
  if (tool.sourceWithheld)
    io.error(`${tool.artifact.name}: the object does not contain its source, so the package is for review only\n`);
  if (inactiveReason !== undefined) io.error(`${tool.artifact.name} is not active: ${printable(inactiveReason)}\n`);
  return EXIT.ok;
}

/** Writes the files with which a GitOps controller shares a tool of the state folder on a cluster. */
export async function toolExportForGitOps(
  options: GitOpsExportOptions & Pick<ToolExportOptions, 'tool' | 'state'>,
  io: CliIo,
): Promise<number> {
  const { tool: selected, records, audit, registry } = await openStateTool(options, io);
  const tool = registry.get(selected.digest) ?? selected;
  const promotion = await statePromotion(tool, registry, records, await audit.records());
  return exportForGitOps(promotion, options, options.state, io);
}
