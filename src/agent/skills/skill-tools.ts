import { isTemperError, TemperError } from '../../lib/errors.ts';
import { type Json, type JsonObject, member, textAt } from '../../lib/json.ts';
import { printable } from '../../lib/printable.ts';
import { jsonSize } from '../../models/charge/request-size.ts';
import type { Skills, SkillText } from '../../skills/port.ts';
import type { CallContext, CallerContext, Tool, ToolDescriptor } from '../../tools/contract.ts';
import { LOAD_TOOL_NAME } from '../code/list-tools.ts';
import { LOAD_RESOURCE_NAME } from '../disclosure/names.ts';
import { scriptsOf } from './scripts.ts';

export interface SkillToolDeps {
  skills: Skills;
  /** Tokens of the instructions that the model may have at a time. */
  bodyTokens: number;
  /** Characters of one result. */
  outputCharacters: number;
  /** The tools that the policy lists to the caller. */
  visible: (caller: CallerContext) => readonly ToolDescriptor[];
  /** An imported text entered the session of the caller. */
  onUntrusted: (caller: CallerContext) => void;
}

const PREFIX = 'skill:';
const BASE = { category: 'other', action: 'code:read', sideEffects: false, locality: 'Brokered' } as const;
const NAME = { type: 'string', minLength: 1, maxLength: 160 };

export const LOAD_SKILL: ToolDescriptor = {
  ...BASE,
  name: LOAD_TOOL_NAME,
  description: 'Returns the instructions of a skill; discover_capabilities finds skills.',
  inputSchema: { type: 'object', properties: { name: NAME }, required: ['name'], additionalProperties: false },
};

const LOAD_SKILL_RESOURCE: ToolDescriptor = {
  ...BASE,
  name: LOAD_RESOURCE_NAME,
  description: 'Returns a resource that load_tool names.',
  inputSchema: {
    type: 'object',
    properties: {
      name: NAME,
      resource: { type: 'string', minLength: 1, maxLength: 200 },
      offset: { type: 'integer', minimum: 0 },
    },
    required: ['name', 'resource'],
    additionalProperties: false,
  },
};

/** The tools of the agent, of which those that load tools also load skills. A tool has precedence over a skill of its name. */
export function withSkillTools(tools: readonly Tool[], deps: SkillToolDeps): Tool[] {
  const named = (name: string): Tool | undefined => tools.find(({ descriptor }) => descriptor.name === name);
  const others = tools.filter(({ descriptor: { name } }) => name !== LOAD_TOOL_NAME && name !== LOAD_RESOURCE_NAME);
  const [loadTool, loadResource] = [named(LOAD_TOOL_NAME), named(LOAD_RESOURCE_NAME)];
  return [
    ...others,
    orSkill(loadTool, alsoSkills(LOAD_SKILL, loadTool), (input, caller) => load(deps, input, caller)),
    orSkill(loadResource, alsoSkills(LOAD_SKILL_RESOURCE, loadResource), (input, caller) => read(deps, input, caller)),
  ];
}

function alsoSkills(own: ToolDescriptor, tool: Tool | undefined): ToolDescriptor {
  if (tool === undefined) return own;
  const description = `${tool.descriptor.description} For a skill: ${own.description.toLowerCase()}`;
  return { ...own, description };
}

/** Calls the tool, and what knows skills when the tool does not know the name. */
function orSkill(
  tool: Tool | undefined,
  descriptor: ToolDescriptor,
  ofSkill: (input: Json, caller: CallContext) => Promise<Json | undefined>,
): Tool {
  return {
    descriptor,
    async call(input, caller) {
      const name = textAt(input, ['name']);
      const asTool = tool === undefined || name.startsWith(PREFIX) ? unknown(name) : await called(tool, input, caller);
      if (!(asTool instanceof TemperError)) return asTool;
      const found = await ofSkill(input, caller);
      if (found === undefined) throw asTool;
      return found;
    },
  };
}

/** The output of the tool, or its error when it does not know the name. */
async function called(tool: Tool, input: Json, caller: CallContext): Promise<Json | TemperError> {
  try {
    return await tool.call(input, caller);
  } catch (error) {
    if (isTemperError(error, 'TEMPER_TOOL_NOT_FOUND')) return error;
    throw error;
  }
}

function unknown(name: string): TemperError {
  const message = `no skill is named "${printable(name, 80)}"; discover_capabilities finds skills`;
  return new TemperError('TEMPER_TOOL_NOT_FOUND', message);
}

async function load(deps: SkillToolDeps, input: Json, caller: CallContext): Promise<Json | undefined> {
  const skill = await deps.skills.load(skillName(input), caller.op);
  if (skill === undefined) return undefined;
  const visible = new Set(deps.visible(caller).map(({ name }) => name));
  const loaded = loadedSkill(skill, (name) => visible.has(name));
  assertWithin(deps, skill.name, loaded);
  if (skill.source !== undefined) deps.onUntrusted(caller);
  return loaded;
}

/** `skill` is the first member, by which a loaded skill is recognized in the session. */
function loadedSkill(
  { name, instructions, examples, resources, source }: SkillText,
  hasTool: (name: string) => boolean,
): JsonObject {
  const scripts = scriptsOf(resources, hasTool);
  return {
    skill: name,
    instructions,
    ...(examples.length === 0 ? {} : { examples: [...examples] }),
    ...(resources.length === 0 ? {} : { resources: [...resources] }),
    ...(scripts.length === 0 ? {} : { scripts: scripts.map((script) => ({ ...script })) }),
    ...(source === undefined ? {} : { importedFrom: source }),
  };
}

/** A skill is loaded as a whole: half of its instructions could say the contrary. */
function assertWithin({ bodyTokens, outputCharacters }: SkillToolDeps, name: string, loaded: JsonObject): void {
  const { tokens } = jsonSize(loaded);
  const characters = JSON.stringify(loaded).length;
  if (tokens <= bodyTokens && characters <= outputCharacters) return;
  const [size, field] =
    tokens > bodyTokens
      ? [`${tokens} tokens, above spec.disclosure.bodyTokens ${bodyTokens}`, 'spec.disclosure.bodyTokens']
      : [`${characters} characters, above spec.limits.outputCharacters ${outputCharacters}`, 'the limit'];
  const message = `the instructions of skill "${name}" have ${size}; raise ${field}, or move parts of the skill into resources`;
  throw new TemperError('TEMPER_TOOL_INPUT_INVALID', message);
}

async function read(deps: SkillToolDeps, input: Json, caller: CallContext): Promise<Json | undefined> {
  const name = skillName(input);
  const resource = textAt(input, ['resource']);
  const given = member(input, 'offset');
  const offset = typeof given === 'number' ? given : 0;
  const part = await deps.skills.resource(name, resource, offset, caller.op);
  if (part === undefined) return undefined;
  if (part.source !== undefined) deps.onUntrusted(caller);
  const { text, next } = part;
  return { name, resource, content: text, ...(next === undefined ? {} : { nextOffset: next }) };
}

function skillName(input: Json): string {
  const name = textAt(input, ['name']);
  return name.startsWith(PREFIX) ? name.slice(PREFIX.length) : name;
}
