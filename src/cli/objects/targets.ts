import { TemperError } from '../../lib/errors.ts';
import { printable } from '../../lib/printable.ts';

/** What `get` and `describe` are asked for: kinds as typed, and names of one kind. No names: all objects of the kinds. */
export interface Targets {
  readonly kinds: readonly string[];
  readonly names: readonly string[];
}

/** The kind name that stands for every kind. */
const ALL = 'all';

/**
 * Parses the arguments of `get` as kubectl does: `agents`, `agents,tools`, `all`, `agent analyst other`, and `agent/analyst`.
 * Throws TEMPER_USAGE.
 */
export function parseTargets(words: readonly string[], allKinds: readonly string[]): Targets {
  const [first, ...names] = words;
  if (first === undefined) throw usage('name a kind: temper get KIND [NAME]');
  if (words.some((word) => word.includes('/'))) return slashTargets(words);
  const parts = first.split(',').filter((part) => part !== '');
  const kinds = [...new Set(parts.flatMap((part) => (part.toLowerCase() === ALL ? allKinds : [part])))];
  if (kinds.length === 0) throw usage(`"${printable(first, 60)}" names no kind`);
  if (kinds.length > 1 && names.length > 0)
    throw usage(`names need one kind, not ${kinds.length}: temper get KIND NAME`);
  return { kinds, names };
}

/** The one object that `describe` is asked for. Throws TEMPER_USAGE. */
export function oneTarget(targets: readonly string[], allKinds: readonly string[]): { kind: string; name: string } {
  const { kinds, names } = parseTargets(targets, allKinds);
  const [kind] = kinds;
  const [name] = names;
  if (kind !== undefined && name !== undefined && kinds.length === 1 && names.length === 1) return { kind, name };
  throw usage('describe prints one object: temper describe KIND NAME; temper get KIND lists the names');
}

function slashTargets(words: readonly string[]): Targets {
  const pairs = words.map((word) => word.split('/'));
  const kinds = new Set(pairs.map(([kind = '']) => kind));
  const [kind] = kinds;
  const names = pairs.map(([, name = '', ...rest]) => (rest.length === 0 ? name : ''));
  if (kind === undefined || kind === '' || kinds.size > 1 || names.includes('')) {
    throw usage(`"${printable(words.join(' '), 120)}" is not KIND/NAME; write each as KIND/NAME, all of one kind`);
  }
  return { kinds: [kind], names };
}

function usage(message: string): TemperError {
  return new TemperError('TEMPER_USAGE', message);
}
