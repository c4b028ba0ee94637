import { isJsonObject, type Json, type JsonObject } from '../../lib/json.ts';
import { parseTemplate } from './template.ts';

export interface ScriptProblem {
  path: (string | number)[];
  /** What must hold, to be read after the path. */
  rule: string;
}

type Path = (string | number)[];
type Check = (value: Json, path: Path) => ScriptProblem[];

const problem = (path: Path, rule: string): ScriptProblem[] => [{ path, rule }];

const text: Check = (value, path) => (typeof value === 'string' ? [] : problem(path, 'must be text'));
const flag: Check = (value, path) => (typeof value === 'boolean' ? [] : problem(path, 'must be true or false'));
const whole =
  (from: number, to: number): Check =>
  (value, path) =>
    Number.isInteger(value) && (value as number) >= from && (value as number) <= to
      ? []
      : problem(path, `must be a whole number from ${from} to ${to}`);
const oneOf =
  (...allowed: string[]): Check =>
  (value, path) =>
    typeof value === 'string' && allowed.includes(value) ? [] : problem(path, `must be one of ${allowed.join(', ')}`);
const listOf =
  (item: Check): Check =>
  (value, path) =>
    Array.isArray(value)
      ? value.flatMap((member, index) => item(member, [...path, index]))
      : problem(path, 'must be a list');
const shape =
  (members: Record<string, Check>, required: readonly string[] = []): Check =>
  (value, path) => {
    if (!isJsonObject(value)) return problem(path, 'must be an object');
    const missing = required.filter((name) => !Object.hasOwn(value, name));
    return [
      ...missing.flatMap((name) => problem([...path, name], 'is missing')),
      ...Object.keys(value).flatMap((name) => checkMember(members, value, name, path)),
    ];
  };

function checkMember(members: Record<string, Check>, value: JsonObject, name: string, path: Path): ScriptProblem[] {
  const check = Object.hasOwn(members, name) ? members[name] : undefined;
  if (!check) return problem([...path, name], `is not known here; known are ${Object.keys(members).join(', ')}`);
  return check(value[name] ?? null, [...path, name]);
}

/** Text with references in it. */
const template: Check = (value, path) => {
  if (typeof value !== 'string') return problem(path, 'must be text');
  const parsed = parseTemplate(value);
  return 'problem' in parsed ? problem(path, parsed.problem) : [];
};

/** Any value; every text in it may hold references. */
const filled: Check = (value, path) => {
  if (typeof value === 'string') return template(value, path);
  if (Array.isArray(value)) return value.flatMap((member, index) => filled(member, [...path, index]));
  if (!isJsonObject(value)) return [];
  return Object.entries(value).flatMap(([name, member]) => filled(member, [...path, name]));
};
const callArguments: Check = (value, path) =>
  typeof value === 'string' || isJsonObject(value)
    ? filled(value, path)
    : problem(path, 'must be an object, or text to send as it is');

const MILLISECONDS = whole(0, 600_000);
const TOKENS = whole(0, 1_000_000_000);

const condition = shape({
  system: text,
  lastUser: text,
  last: oneOf('user', 'tool'),
  lastTool: shape({ name: text, contains: text, isError: flag }),
  turn: whole(1, 1_000),
  model: text,
  tools: listOf(text),
});

const answer = shape({
  text: template,
  reasoning: template,
  toolCalls: listOf(shape({ id: text, name: text, arguments: callArguments }, ['name', 'arguments'])),
  stopReason: oneOf('stop', 'tool-calls', 'length', 'refusal', 'other'),
  usage: shape({ inputTokens: TOKENS, outputTokens: TOKENS, cachedInputTokens: TOKENS }),
  error: shape({ status: whole(300, 599), type: text, message: text, retryAfter: whole(0, 86_400) }, ['status']),
  inBandError: shape({ type: text, message: text }),
  delayMilliseconds: MILLISECONDS,
  cutAfterBytes: whole(0, 100_000_000),
  chunkBytes: whole(1, 100_000_000),
  chunkDelayMilliseconds: MILLISECONDS,
});

const script = shape(
  { rules: listOf(shape({ name: text, when: condition, times: whole(1, 1_000_000), answer }, ['answer'])) },
  ['rules'],
);

/** Every rule of the script format that the value breaks; empty when it is a script. */
export function checkScript(value: Json): ScriptProblem[] {
  return script(value, []);
}
