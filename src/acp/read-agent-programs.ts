import { assertKnownMembers, namedEntries, requiredText } from '../lib/config/config-members.ts';
import { PROGRAM_MEMBERS, readProgram } from '../sandbox/confined/read-program.ts';
import type { AgentProgram } from './process/agent-command.ts';

/** Parses `{agents: [{name, folder, program, arguments, environment}]}`. Throws TEMPER_MANIFEST_INVALID with the name of the field. */
export function parseAgentPrograms(file: string, value: unknown): AgentProgram[] {
  return namedEntries(file, value, 'agents').map(({ field, entry }) => {
    assertKnownMembers(file, `${field}.`, entry, ['name', ...PROGRAM_MEMBERS]);
    return { name: requiredText(file, `${field}.name`, entry['name']), ...readProgram(file, field, entry) };
  });
}
