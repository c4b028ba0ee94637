import { isJsonObject, type Json, type JsonObject } from '../../lib/json.ts';
import { parsedJson, parsedObject, type TextCursor } from './text-cursor.ts';

/** A call as a model wrote it into its text. */
export interface WrittenCall {
  name: string;
  /** An object; or the values of parameters as text, whose types only the schema of the tool has. */
  input: { json: JsonObject } | { texts: [name: string, value: string][] };
}

/** Reads one form at the cursor: its calls, or undefined when the text is not of this form. The cursor is then anywhere. */
export type CallForm = (cursor: TextCursor) => WrittenCall[] | undefined;

const MAX_NAME = 64;
const MAX_VALUE = 100_000;
const MAX_PARAMETERS = 64;

/** `<function=NAME>{…}</function>`, or with `<parameter=KEY>VALUE</parameter>` in place of the JSON. */
const functionTag: CallForm = (cursor) => {
  if (!cursor.take('<function=')) return undefined;
  const name = cursor.takeUntil('>', MAX_NAME);
  if (name === undefined) return undefined;
  cursor.skipBlanks();
  const json = cursor.takeJson();
  if (json !== undefined) {
    const isClosed = cursor.takeAfterBlanks('</function>') || cursor.isAtEnd;
    return isClosed && isJsonObject(json) ? [{ name, input: { json } }] : undefined;
  }
  const texts = parameters(cursor, { open: '<parameter=', openEnd: '>', close: '</parameter>' }, '</function>');
  return texts && [{ name, input: { texts } }];
};

/** `<invoke name="NAME"><parameter name="KEY">VALUE</parameter></invoke>`, alone or several in `<function_calls>`. */
const invokeTag: CallForm = (cursor) => {
  const isWrapped = cursor.take('<function_calls>');
  const calls: WrittenCall[] = [];
  while (cursor.takeAfterBlanks('<invoke name="')) {
    const name = cursor.takeUntil('">', MAX_NAME);
    const texts =
      name === undefined
        ? undefined
        : parameters(cursor, { open: '<parameter name="', openEnd: '">', close: '</parameter>' }, '</invoke>');
    if (name === undefined || texts === undefined) return undefined;
    calls.push({ name, input: { texts } });
  }
  if (calls.length === 0 || (isWrapped && !cursor.takeAfterBlanks('</function_calls>'))) return undefined;
  return calls;
};

/** `<tool_call>{"name": …, "arguments": {…}}</tool_call>`; also around a function tag. The closing tag may be missing at the end. */
const toolCallTag: CallForm = (cursor) => {
  if (!cursor.take('<tool_call>')) return undefined;
  cursor.skipBlanks();
  const calls = cursor.text.startsWith('<function=', cursor.position) ? functionTag(cursor) : jsonCalls(cursor);
  return cursor.takeAfterBlanks('</tool_call>') || cursor.isAtEnd ? calls : undefined;
};

/** `[TOOL_CALLS][{"name": …, "arguments": {…}}]`, `[TOOL_CALLS]NAME{…}` or `[TOOL_CALLS]NAME[ARGS]{…}`. */
const toolCallsToken: CallForm = (cursor) => {
  if (!cursor.take('[TOOL_CALLS]')) return undefined;
  cursor.skipBlanks();
  if (cursor.text[cursor.position] === '[') return jsonCalls(cursor);
  const before = cursor.text.slice(cursor.position, cursor.position + MAX_NAME + 10);
  const end = before.indexOf('{');
  if (end <= 0) return undefined;
  const written = before.slice(0, end).trim();
  const name = written.endsWith('[ARGS]') ? written.slice(0, -'[ARGS]'.length) : written;
  cursor.position += end;
  const json = cursor.takeJson();
  return isJsonObject(json) ? [{ name, input: { json } }] : undefined;
};

/** `<|python_tag|>{"name": …, "parameters": {…}}`. */
const pythonTag: CallForm = (cursor) => {
  if (!cursor.take('<|python_tag|>')) return undefined;
  cursor.skipBlanks();
  const calls = jsonCalls(cursor);
  for (const end of ['<|eom_id|>', '<|eot_id|>']) cursor.takeAfterBlanks(end);
  return calls;
};

const BAR = '\uff5c';
const GAP = '\u2581';
const special = (words: string): string => `<${BAR}${words.replaceAll(' ', GAP)}${BAR}>`;

function deepSeekCall(cursor: TextCursor): WrittenCall | undefined {
  const first = cursor.takeUntil(special('tool sep'), MAX_NAME)?.trim();
  const isFenced = first === 'function';
  const name = isFenced ? cursor.takeUntil('\n', MAX_NAME)?.trim() : first;
  if (name === undefined || (isFenced && !cursor.takeAfterBlanks('```json'))) return undefined;
  cursor.skipBlanks();
  const json = cursor.takeJson();
  if (isFenced) cursor.takeAfterBlanks('```');
  const isClosed = cursor.takeAfterBlanks(special('tool call end'));
  return isClosed && isJsonObject(json) ? { name, input: { json } } : undefined;
}

/** The tokens around calls of DeepSeek models, with the type and a fence in older ones. */
const deepSeekTokens: CallForm = (cursor) => {
  const isWrapped = cursor.take(special('tool calls begin'));
  const calls: WrittenCall[] = [];
  while (cursor.takeAfterBlanks(special('tool call begin'))) {
    const call = deepSeekCall(cursor);
    if (call === undefined) return undefined;
    calls.push(call);
  }
  if (calls.length === 0 || (isWrapped && !cursor.takeAfterBlanks(special('tool calls end')))) return undefined;
  return calls;
};

/** A fence with the label of a call. */
const toolCallFence: CallForm = (cursor) => (cursor.take('```tool_call\n') ? fenced(cursor) : undefined);

/** Forms with a mark of their own: text may come before them. */
export const MARKED_FORMS: readonly CallForm[] = [
  functionTag,
  invokeTag,
  toolCallTag,
  toolCallsToken,
  pythonTag,
  deepSeekTokens,
  toolCallFence,
];

/** What these forms start with. */
export const MARKS: readonly string[] = [
  '<function=',
  '<function_calls>',
  '<invoke name="',
  '<tool_call>',
  '[TOOL_CALLS]',
  '<|python_tag|>',
  special('tool calls begin'),
  special('tool call begin'),
  '```tool_call\n',
];

/** A fence of JSON. It has no mark of its own, so it must be the whole answer. */
const jsonFence: CallForm = (cursor) => (cursor.take('```json\n') || cursor.take('```\n') ? fenced(cursor) : undefined);

/** Forms without a mark, which may as well be an example: they count only as the whole answer. */
export const UNMARKED_FORMS: readonly CallForm[] = [jsonFence, (cursor) => jsonCalls(cursor)];

function fenced(cursor: TextCursor): WrittenCall[] | undefined {
  cursor.skipBlanks();
  const calls = jsonCalls(cursor);
  return cursor.takeAfterBlanks('```') ? calls : undefined;
}

interface ParameterTags {
  open: string;
  openEnd: string;
  close: string;
}

/** The parameters up to the end tag; undefined without it. */
function parameters(cursor: TextCursor, tags: ParameterTags, end: string): [string, string][] | undefined {
  const found: [string, string][] = [];
  while (found.length <= MAX_PARAMETERS) {
    if (cursor.takeAfterBlanks(end)) return found;
    if (!cursor.take(tags.open)) return undefined;
    const key = cursor.takeUntil(tags.openEnd, MAX_NAME);
    const value = key === undefined ? undefined : cursor.takeUntil(tags.close, MAX_VALUE);
    if (key === undefined || value === undefined) return undefined;
    found.push([key, withoutOuterBreaks(value)]);
  }
  return undefined;
}

function withoutOuterBreaks(value: string): string {
  const start = value.startsWith('\n') ? 1 : 0;
  return value.slice(start, value.length > start && value.endsWith('\n') ? -1 : undefined);
}

/** A call, or a list of calls, as JSON. */
function jsonCalls(cursor: TextCursor): WrittenCall[] | undefined {
  const value = cursor.takeJson();
  const calls = Array.isArray(value) ? value.map(jsonCall) : [jsonCall(value)];
  return calls.length > 0 && calls.every((call) => call !== undefined) ? calls : undefined;
}

const ARGUMENT_MEMBERS: readonly string[] = ['arguments', 'parameters', 'input'];
const OTHER_MEMBERS: readonly string[] = ['name', 'id', 'type'];

/** `{name, arguments}` or `{type: "function", function: {name, arguments}}`, without other members. */
function jsonCall(value: Json | undefined): WrittenCall | undefined {
  if (!isJsonObject(value)) return undefined;
  if (isJsonObject(value.function)) {
    const { type = 'function', id: _, function: inner, ...others } = value;
    return type === 'function' && Object.keys(others).length === 0 ? jsonCall(inner) : undefined;
  }
  const argument = ARGUMENT_MEMBERS.filter((member) => Object.hasOwn(value, member));
  const isKnown = (member: string): boolean => OTHER_MEMBERS.includes(member) || argument.includes(member);
  if (typeof value.name !== 'string' || argument.length !== 1 || !Object.keys(value).every(isKnown)) return undefined;
  const given = value[argument[0] ?? ''];
  const json = typeof given === 'string' ? parsedObject(given) : given;
  return isJsonObject(json) ? { name: value.name, input: { json } } : undefined;
}

/** The value of a parameter: text where the schema asks for text, otherwise JSON if it is JSON. */
export function typedValue(value: string, schema: Json | undefined): Json {
  const type = isJsonObject(schema) ? schema.type : undefined;
  if (type === 'string') return value;
  return parsedJson(value.trim()) ?? value;
}
