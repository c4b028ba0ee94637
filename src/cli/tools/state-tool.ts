import type { AuditTrail } from '../../audit/port.ts';
import { openAudit } from '../../audit/recorded-trail.ts';
import { systemClock } from '../../lib/clock.ts';
import { TemperError } from '../../lib/errors.ts';
import { fileRecordStore } from '../../lib/file-record-store.ts';
import type { RecordStore } from '../../lib/record-store.ts';
import { openRegistry, type Registry } from '../../tempering/registry/registry.ts';
import type { RegisteredTool } from '../../tempering/types.ts';
import type { CliIo } from '../io.ts';
import { stateFolder } from '../state/state-folder.ts';

export interface StateToolOptions {
  /** Name, object name or digest. */
  tool: string;
  state: string;
}

export interface OpenStateTool {
  tool: RegisteredTool;
  records: RecordStore;
  audit: AuditTrail;
  registry: Registry;
}

/** One tool of a state folder. Only reads, so it works while another process has locked the folder. */
export async function openStateTool(options: StateToolOptions, io: CliIo): Promise<OpenStateTool> {
  const records = fileRecordStore(await stateFolder(io, options.state));
  const audit = await openAudit({ records, clock: systemClock });
  const registry = await openRegistry({ records, audit, clock: systemClock, builtIn: new Set() });
  return { tool: selectTool(registry.all(), options), records, audit, registry };
}

/** Selects one tool. Several objects of one digest count as one tool; several digests are an error that lists them. */
function selectTool(all: readonly RegisteredTool[], { tool: target, state }: StateToolOptions): RegisteredTool {
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
