import { TemperError } from '../../lib/errors.ts';
import { isJsonObject, type Json, type JsonObject } from '../../lib/json.ts';

/** A reference to a value: its root and the path of members below it. */
export interface ValueReference {
  root: 'input' | 'prev' | 'steps';
  /** For root `steps`. */
  step?: string;
  path: string[];
}

/** A parsed mapping: literal values and references. */
export type Template =
  | { kind: 'literal'; value: Json }
  | { kind: 'reference'; reference: ValueReference }
  | { kind: 'text'; parts: (string | ValueReference)[] }
  | { kind: 'list'; items: Template[] }
  | { kind: 'object'; members: [key: string, value: Template][] };

/** The values that references resolve to while a composed tool runs. */
export interface StepBindings {
  input: Json;
  prev: Json;
  steps: ReadonlyMap<string, Json>;
}

const NAME = /[A-Za-z_][A-Za-z0-9_]*/y;
const NAME_OR_HYPHEN = /[A-Za-z0-9_][A-Za-z0-9_-]*/y;
const INDEX = /\d{1,9}/y;
const BRACKET_INDEX = /\[(\d{1,9})\]/y;
const BRACKET_NAME = /\["([^"\\]{1,128})"\]/y;

/** Parses the references in a mapping. Text that is not a reference is literal; `$$` is a dollar sign. */
export function parseTemplate(value: Json): Template {
  if (typeof value === 'string') return parseText(value);
  if (Array.isArray(value)) return { kind: 'list', items: value.map(parseTemplate) };
  if (isJsonObject(value)) {
    return { kind: 'object', members: Object.entries(value).map(([key, member]) => [key, parseTemplate(member)]) };
  }
  return { kind: 'literal', value };
}

function parseText(text: string): Template {
  const whole = readReference(text, 0, NAME_OR_HYPHEN);
  if (whole !== undefined && whole.end === text.length) return { kind: 'reference', reference: whole.reference };
  const parts: (string | ValueReference)[] = [];
  let literal = '';
  for (let at = 0; at < text.length; ) {
    const dollar = text.indexOf('$', at);
    const next = dollar === -1 ? text.length : dollar;
    literal += text.slice(at, next);
    if (next === text.length) break;
    const found = readReference(text, next, NAME);
    if (found !== undefined) {
      parts.push(literal, found.reference);
      literal = '';
    } else literal += '$';
    at = found?.end ?? next + (text[next + 1] === '$' ? 2 : 1);
  }
  if (parts.length === 0) return { kind: 'literal', value: literal };
  parts.push(literal);
  return { kind: 'text', parts: parts.filter((part) => part !== '') };
}

/** Parses the reference at position `at`; undefined when there is none. A dot belongs to it only when a member name follows. */
export function readReference(
  text: string,
  at: number,
  names: RegExp = NAME,
): { reference: ValueReference; end: number } | undefined {
  const root = (['input', 'prev', 'steps'] as const).find((word) => text.startsWith(`$${word}`, at));
  if (root === undefined) return undefined;
  let end = at + 1 + root.length;
  if (/[A-Za-z0-9_]/.test(text[end] ?? '')) return undefined;
  if (root !== 'steps') return readPath(text, end, { root, path: [] }, names);
  const step = text[end] === '.' ? match(NAME_OR_HYPHEN, text, end + 1) : undefined;
  if (step === undefined) return { reference: { root, step: '', path: [] }, end };
  const name = trimHyphens(step[0]);
  end += 1 + name.length;
  return readPath(text, end, { root, step: name, path: [] }, names);
}

function readPath(
  text: string,
  from: number,
  reference: ValueReference,
  names: RegExp,
): { reference: ValueReference; end: number } {
  let end = from;
  for (;;) {
    const dotted = text[end] === '.' ? (match(names, text, end + 1) ?? match(INDEX, text, end + 1)) : undefined;
    const bracketed = match(BRACKET_INDEX, text, end) ?? match(BRACKET_NAME, text, end);
    if (dotted !== undefined) {
      reference.path.push(dotted[0]);
      end += 1 + dotted[0].length;
    } else if (bracketed !== undefined) {
      reference.path.push(bracketed[1] ?? '');
      end += bracketed[0].length;
    } else return { reference, end };
  }
}

/** A hyphen at the end of a step name, as in `$steps.fetch-`, belongs to the text after it. */
function trimHyphens(name: string): string {
  let end = name.length;
  while (end > 1 && name[end - 1] === '-') end -= 1;
  return name.slice(0, end);
}

function match(pattern: RegExp, text: string, at: number): RegExpExecArray | undefined {
  pattern.lastIndex = at;
  return pattern.exec(text) ?? undefined;
}

/** All references of a template, for checks before it runs. */
export function referencesOf(template: Template): ValueReference[] {
  if (template.kind === 'reference') return [template.reference];
  if (template.kind === 'text') return template.parts.filter((part) => typeof part !== 'string');
  if (template.kind === 'list') return template.items.flatMap(referencesOf);
  if (template.kind === 'object') return template.members.flatMap(([, member]) => referencesOf(member));
  return [];
}

/** The value of a reference, by own members only; undefined when a member of the path does not exist. */
export function resolveReference(reference: ValueReference, bindings: StepBindings): Json | undefined {
  let value = rootOf(reference, bindings);
  for (const key of reference.path) {
    if (typeof value === 'string' && key === 'length') return value.length;
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, key)) return undefined;
    value = (value as JsonObject)[key];
  }
  return value;
}

function rootOf(reference: ValueReference, bindings: StepBindings): Json | undefined {
  if (reference.root === 'input') return bindings.input;
  if (reference.root === 'prev') return bindings.prev;
  return bindings.steps.get(reference.step ?? '');
}

/** Limit of the arguments of one step as JSON, because a short mapping that repeats a long value could exhaust the memory. */
const MAX_CHARACTERS = 1_048_576;

/**
 * Fills a template with values. A reference without a value gives an absent member, a null item or empty text.
 * Throws TEMPER_SANDBOX_INPUT_TOO_LARGE when the result would be larger than a megabyte.
 */
export function fillTemplate(template: Template, bindings: StepBindings): Json | undefined {
  return new TemplateFiller(bindings).fill(template);
}

class TemplateFiller {
  readonly #bindings: StepBindings;
  #remaining = MAX_CHARACTERS;

  constructor(bindings: StepBindings) {
    this.#bindings = bindings;
  }

  fill(template: Template): Json | undefined {
    if (template.kind === 'literal') return template.value;
    if (template.kind === 'reference') return this.#resolve(template.reference);
    if (template.kind === 'list') return template.items.map((item) => this.fill(item) ?? null);
    if (template.kind === 'text') {
      return template.parts.map((part) => (typeof part === 'string' ? part : this.#inText(part))).join('');
    }
    const filled: [string, Json][] = [];
    for (const [key, member] of template.members) {
      const value = this.fill(member);
      if (value !== undefined) filled.push([key, value]);
    }
    // Assigning would make a member named __proto__ the object's prototype.
    return Object.fromEntries(filled);
  }

  #inText(reference: ValueReference): string {
    const value = this.#resolve(reference);
    if (value === undefined) return '';
    return typeof value === 'string' ? value : JSON.stringify(value);
  }

  #resolve(reference: ValueReference): Json | undefined {
    const value = resolveReference(reference, this.#bindings);
    if (value !== undefined) this.#charge(value);
    return value;
  }

  /** Subtracts the size of a value from the budget; throws as soon as the budget is used up. */
  #charge(value: Json): void {
    const stack: Json[] = [value];
    for (let item = stack.pop(); item !== undefined; item = stack.pop()) {
      this.#remaining -= typeof item === 'string' ? item.length + 2 : 4;
      if (this.#remaining < 0) {
        throw new TemperError(
          'TEMPER_SANDBOX_INPUT_TOO_LARGE',
          `the arguments of a step may have at most ${MAX_CHARACTERS} characters; refer to smaller values`,
        );
      }
      if (typeof item !== 'object' || item === null) continue;
      if (Array.isArray(item)) for (const child of item) stack.push(child);
      else for (const [key, member] of Object.entries(item)) stack.push(key, member);
    }
  }
}
