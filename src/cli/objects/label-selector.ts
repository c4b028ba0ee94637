import { TemperError } from '../../lib/errors.ts';
import { type Json, isJsonObject, member } from '../../lib/json.ts';
import { printable } from '../../lib/printable.ts';

type Labels = Readonly<Record<string, Json>>;
type Requirement = (labels: Labels) => boolean;

/**
 * A label selector of kubectl: `k=v`, `k==v`, `k!=v`, `k`, `!k`, `k in (a, b)` and `k notin (a, b)`, joined by commas. Returns a
 * predicate over objects. Throws TEMPER_USAGE.
 */
export function parseLabelSelector(selector: string): (object: Json) => boolean {
  const requirements = splitTerms(selector).map((term) => requirementOf(term, selector));
  return (object) => {
    const labels = member(member(object, 'metadata'), 'labels');
    const present = isJsonObject(labels) ? labels : {};
    return requirements.every((accepts) => accepts(present));
  };
}

/** Splits at commas outside parentheses. */
function splitTerms(selector: string): string[] {
  const terms = [''];
  let depth = 0;
  for (const character of selector) {
    if (character === '(') depth += 1;
    if (character === ')') depth -= 1;
    if (character === ',' && depth === 0) terms.push('');
    else terms[terms.length - 1] += character;
  }
  return terms.map((term) => term.trim());
}

const KEY = /^[A-Za-z0-9][A-Za-z0-9._/-]*$/;
const VALUE = /^[A-Za-z0-9._-]*$/;

function requirementOf(term: string, selector: string): Requirement {
  const has = (labels: Labels, key: string): boolean => Object.hasOwn(labels, key);
  const set = setRequirement(term);
  if (set !== undefined) {
    const { key, values, negated } = set;
    return (labels) => (has(labels, key) && values.some((value) => value === labels[key])) !== negated;
  }
  const operator = ['!=', '==', '='].find((candidate) => term.includes(candidate));
  if (operator === undefined) {
    const key = term.startsWith('!') ? term.slice(1).trim() : term;
    if (KEY.test(key)) return (labels) => has(labels, key) !== term.startsWith('!');
  } else {
    const at = term.indexOf(operator);
    const [key, value] = [term.slice(0, at).trim(), term.slice(at + operator.length).trim()];
    if (KEY.test(key) && VALUE.test(value)) {
      return (labels) => (has(labels, key) && labels[key] === value) !== (operator === '!=');
    }
  }
  const shown = printable(selector, 120);
  throw new TemperError(
    'TEMPER_USAGE',
    `--selector "${shown}": write key=value, key!=value, key, !key or key in (a, b)`,
  );
}

function setRequirement(term: string): { key: string; values: string[]; negated: boolean } | undefined {
  const [key = '', operator = '', ...rest] = term
    .replace('(', ' (')
    .split(' ')
    .filter((word) => word !== '');
  const list = rest.join('');
  if (!['in', 'notin'].includes(operator) || !KEY.test(key) || !list.startsWith('(') || !list.endsWith(')'))
    return undefined;
  const values = list.slice(1, -1).split(',');
  return values.every((value) => VALUE.test(value)) ? { key, values, negated: operator === 'notin' } : undefined;
}
