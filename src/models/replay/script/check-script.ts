import { isJsonObject } from '../../../lib/json.ts';
import { flag, listOf, oneOf, problem, shape, text, integerBetween, type ShapeCheck } from './shape.ts';
import { parseTemplate } from './template.ts';

/** Text that may contain references. */
const template: ShapeCheck = (value, path) => {
  if (typeof value !== 'string') return problem(path, 'must be text');
  const parsed = parseTemplate(value);
  return 'problem' in parsed ? problem(path, parsed.problem) : [];
};

/** Any value; every text in it may contain references. */
const templates: ShapeCheck = (value, path) => {
  if (typeof value === 'string') return template(value, path);
  if (Array.isArray(value)) return value.flatMap((member, index) => templates(member, [...path, index]));
  if (!isJsonObject(value)) return [];
  return Object.entries(value).flatMap(([name, member]) => templates(member, [...path, name]));
};
const callArguments: ShapeCheck = (value, path) =>
  typeof value === 'string' || isJsonObject(value)
    ? templates(value, path)
    : problem(path, 'must be an object, or text that is sent unchanged');

const MILLISECONDS = integerBetween(0, 600_000);
const TOKENS = integerBetween(0, 1_000_000_000);

const condition = shape({
  system: text,
  lastUser: text,
  last: oneOf('user', 'tool'),
  lastTool: shape({ name: text, contains: text, isError: flag }),
  turn: integerBetween(1, 1_000),
  model: text,
  tools: listOf(text),
});

const answer = shape({
  text: template,
  reasoning: template,
  toolCalls: listOf(shape({ id: text, name: text, arguments: callArguments }, ['name', 'arguments'])),
  stopReason: oneOf('stop', 'tool-calls', 'length', 'refusal', 'other'),
  usage: shape({
    inputTokens: TOKENS,
    outputTokens: TOKENS,
    cachedInputTokens: TOKENS,
    cacheCreationInputTokens: TOKENS,
  }),
  error: shape({ status: integerBetween(300, 599), type: text, message: text, retryAfter: integerBetween(0, 86_400) }, [
    'status',
  ]),
  inBandError: shape({ type: text, message: text }),
  delayMilliseconds: MILLISECONDS,
  cutAfterBytes: integerBetween(0, 100_000_000),
  chunkBytes: integerBetween(1, 100_000_000),
  chunkDelayMilliseconds: MILLISECONDS,
});

/** The format of a replay script. */
export const scriptShape: ShapeCheck = shape(
  { rules: listOf(shape({ name: text, when: condition, times: integerBetween(1, 1_000_000), answer }, ['answer'])) },
  ['rules'],
);
