import { TemperError } from '../lib/errors.ts';
import { printable } from '../lib/printable.ts';
import type { ResourceText, SkillText } from './port.ts';
import type { Skill } from './skill.ts';

/** Characters of a resource that one call returns. */
const RESOURCE_PART = 16_000;
const MAX_SHOWN_PATHS = 20;

export function skillText({ name, instructions, examples, resources, source }: Skill): SkillText {
  return {
    name,
    instructions,
    examples,
    resources: resources.map(({ path }) => path),
    ...(source === undefined ? {} : { source }),
  };
}

/** A part of the resource. Throws TEMPER_TOOL_INPUT_INVALID when the skill does not have it. */
export function resourceText({ name, resources, source }: Skill, path: string, offset: number): ResourceText {
  const resource = resources.find((one) => one.path === path);
  if (resource === undefined) throw unknownResource(name, path, resources);
  const end = partEnd(resource.text, offset + RESOURCE_PART);
  return {
    text: resource.text.slice(offset, end),
    ...(end < resource.text.length ? { next: end } : {}),
    ...(source === undefined ? {} : { source }),
  };
}

/** Never between the halves of a surrogate pair. */
function partEnd(text: string, end: number): number {
  const last = text.charCodeAt(end - 1);
  return end < text.length && last >= 0xd800 && last <= 0xdbff ? end - 1 : Math.min(end, text.length);
}

function unknownResource(name: string, path: string, resources: Skill['resources']): TemperError {
  const known = resources.slice(0, MAX_SHOWN_PATHS).map((one) => one.path);
  const rest = resources.length - known.length;
  const shown = known.length === 0 ? 'none' : `${known.join(', ')}${rest === 0 ? '' : ` and ${rest} more`}`;
  const message = `skill "${name}" has no resource "${printable(path, 200)}"; it has ${shown}`;
  return new TemperError('TEMPER_TOOL_INPUT_INVALID', message);
}
