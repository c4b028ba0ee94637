import { isAbsolute, join, relative } from 'node:path';
import { assertKnownMembers, invalidMember, requiredText } from '../models/config-members.ts';
import { isJsonObject, type Json } from '../lib/json.ts';
import type { AgentProgram } from './process/agent-command.ts';

const NAME = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;
/** Variables that choose what Node loads, and those that Temper sets itself. */
const RESERVED = ['HOME', 'TMPDIR', 'NODE_OPTIONS', 'NODE_PATH'];

/** Parses `{agents: [{name, folder, program, arguments, environment}]}`. Throws TEMPER_MANIFEST_INVALID with the name of the field. */
export function parseAgentPrograms(file: string, value: unknown): AgentProgram[] {
  if (!isJsonObject(value)) throw invalidMember(file, 'the value', 'must be an object with agents');
  assertKnownMembers(file, '', value, ['agents']);
  const { agents } = value;
  if (!Array.isArray(agents)) throw invalidMember(file, 'agents', 'must be a list');
  const programs = agents.map((agent, index) => parseAgentProgram(file, `agents[${index}]`, agent));
  for (const [index, { name }] of programs.entries())
    if (programs.findIndex((other) => other.name === name) !== index)
      throw invalidMember(file, `agents[${index}].name`, `is "${name}" a second time`);
  return programs;
}

/** Parses one program, which is at `field` of the file. */
export function parseAgentProgram(file: string, field: string, value: Json): AgentProgram {
  if (!isJsonObject(value)) throw invalidMember(file, field, 'must be an object');
  assertKnownMembers(file, `${field}.`, value, ['name', 'folder', 'program', 'arguments', 'environment']);
  const name = requiredText(file, `${field}.name`, value['name']);
  if (!NAME.test(name)) throw invalidMember(file, `${field}.name`, 'must be lower-case letters, digits and dashes');
  const folder = requiredText(file, `${field}.folder`, value['folder']);
  if (!isAbsolute(folder) || folder === '/')
    throw invalidMember(file, `${field}.folder`, 'must be an absolute path below /');
  const program = join(folder, requiredText(file, `${field}.program`, value['program']));
  if (relative(folder, program).startsWith('..'))
    throw invalidMember(file, `${field}.program`, 'must be in the folder');
  return {
    name,
    folder,
    program,
    arguments: readArguments(file, `${field}.arguments`, value['arguments'] ?? []),
    environment: readEnvironment(file, `${field}.environment`, value['environment'] ?? {}),
  };
}

function readArguments(file: string, field: string, value: Json): string[] {
  if (!Array.isArray(value)) throw invalidMember(file, field, 'must be a list of texts');
  return value.map((argument, index) => {
    if (typeof argument !== 'string') throw invalidMember(file, `${field}[${index}]`, 'must be a text');
    return argument;
  });
}

function readEnvironment(file: string, field: string, value: Json): Record<string, string> {
  if (!isJsonObject(value)) throw invalidMember(file, field, 'must map names to texts');
  return Object.fromEntries(
    Object.entries(value).map(([name, text]) => {
      if (RESERVED.includes(name)) throw invalidMember(file, `${field}.${name}`, 'is set by Temper');
      if (typeof text !== 'string') throw invalidMember(file, `${field}.${name}`, 'must be a text');
      return [name, text];
    }),
  );
}
