import { TemperError } from '../../lib/errors.ts';
import { type Json, member } from '../../lib/json.ts';
import { printable } from '../../lib/printable.ts';
import { optionalText } from '../input.ts';

/** A name of a commit: branches, tags, digests, and steps from them such as `HEAD~2`. Never an option. */
const REVISION = /^[A-Za-z0-9_][A-Za-z0-9_./@~^{}+-]{0,199}$/;
const BRANCH = /^[A-Za-z0-9_][A-Za-z0-9_./+-]{0,199}$/;

export const REVISION_SCHEMA = { type: 'string', minLength: 1, maxLength: 200 } as const;
export const PATH_SCHEMA = { type: 'string', minLength: 1, maxLength: 4096 } as const;

/** Throws TEMPER_TOOL_INPUT_INVALID for what is no name of one commit. */
export function optionalRevision(input: Json, key: string): string | undefined {
  const name = optionalText(input, key);
  if (name === undefined || (REVISION.test(name) && !name.includes('..'))) return name;
  throw new TemperError('TEMPER_TOOL_INPUT_INVALID', `"${key}" is not the name of a commit: "${printable(name, 80)}"`);
}

export function isBranchName(text: string): boolean {
  return BRANCH.test(text) && !text.includes('..');
}

export function optionalBranch(input: Json, key: string): string | undefined {
  const name = optionalText(input, key);
  if (name === undefined || isBranchName(name)) return name;
  throw new TemperError('TEMPER_TOOL_INPUT_INVALID', `"${key}" is not the name of a branch: "${printable(name, 80)}"`);
}

/** Paths relative to the repository, as they are written: no pattern. */
export function pathArguments(input: Json, key = 'path'): string[] {
  const value = member(input, key);
  const paths = typeof value === 'string' ? [value] : Array.isArray(value) ? value : [];
  const texts = paths.filter((path): path is string => typeof path === 'string' && path !== '');
  return texts.length === 0 ? [] : ['--', ...texts.map((path) => `:(literal)${path}`)];
}
