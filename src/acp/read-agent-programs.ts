import { assertKnownMembers, namedEntries, requiredText } from '../lib/config/config-members.ts';
import type { JsonObject } from '../lib/json.ts';
import { PROGRAM_MEMBERS, readProgram } from '../sandbox/confined/read-program.ts';
import type { AgentProgram } from './process/agent-command.ts';

/** Parses `{agents: [{name, folder, program, arguments, environment}]}`. Throws TEMPER_MANIFEST_INVALID with the name of the field. */
export function parseAgentPrograms(file: string, value: unknown): AgentProgram[] {
  return namedEntries(file, value, 'agents').map(({ field, entry }) => parseAgentProgram(file, field, entry));
}

/** Parses one program, which is at `field` of the file. */
export function parseAgentProgram(file: string, field: string, entry: JsonObject): AgentProgram {
  assertKnownMembers(file, `${field}.`, entry, ['name', ...PROGRAM_MEMBERS]);
  return { name: requiredText(file, `${field}.name`, entry['name']), ...readProgram(file, field, entry) };
}
