import { TemperError } from '../lib/errors.ts';
import { type Json, type JsonObject, member } from '../lib/json.ts';
import { printable } from '../lib/printable.ts';
import type { ForgeLimits } from '../policy/types.ts';
import type { HostCalls, Job, Sandbox } from '../sandbox/port.ts';
import type { CallContext, CallerContext, Tool, ToolDescriptor } from '../tools/contract.ts';
import { sessionPath } from '../tools/session-path.ts';
import { requiredText } from './input.ts';

export interface CodeRunDeps {
  sandbox: Sandbox;
  /** The limits of the forged tools of the agent, which hold for its code as well. */
  limits(caller: CallerContext): Pick<ForgeLimits, 'durationMilliseconds' | 'memoryBytes'>;
}

const MAX_CODE = 32_768;
const MAX_LOG = 16_384;
const MAX_OUTPUT_BYTES = 262_144;

export const CODE_RUN_TOOL: ToolDescriptor = {
  name: 'code_run',
  description:
    'Run JavaScript that computes: the body of an async function with `input`. Return a JSON value; console.log shows lines. No network, files, clock, randomness, timers, modules or tools. Returns {value, log}.',
  inputSchema: {
    type: 'object',
    properties: {
      code: {
        type: 'string',
        description: 'For example: return input.filter((n) => n > 2)',
        minLength: 1,
        maxLength: MAX_CODE,
      },
      input: { description: 'Any JSON value; null when absent' },
    },
    required: ['code'],
    additionalProperties: false,
  },
  outputSchema: {
    type: 'object',
    properties: { value: {}, log: { type: 'string' }, logIsCut: { type: 'boolean' } },
    required: ['value', 'log'],
    additionalProperties: false,
  },
  category: 'code_execution',
  action: 'code:read',
  sideEffects: false,
  locality: 'Local',
  examples: [{ code: 'return input.filter((n) => n > 2)', input: [1, 2, 3] }],
  failures: [
    { code: 'TEMPER_SANDBOX_EXCEPTION', when: 'the code throws' },
    { code: 'TEMPER_SANDBOX_TIMEOUT', when: 'the code takes too long' },
    { code: 'TEMPER_SANDBOX_MEMORY', when: 'the code needs too much memory' },
  ],
};

/** Runs code of the model in the sandbox. The code has no host function, so its result depends on code and input alone. */
export function codeRunTool(deps: CodeRunDeps): Tool {
  return {
    descriptor: CODE_RUN_TOOL,
    async call(input, context) {
      const outcome = await deps.sandbox.run(jobOf(input, context, deps.limits(context)), NO_HOST_CALLS, context.op);
      if (!outcome.ok) throw new TemperError(outcome.code, outcome.message);
      return resultOf(outcome.output);
    },
  };
}

function jobOf(input: Json, context: CallContext, limits: ReturnType<CodeRunDeps['limits']>): Job {
  const { durationMilliseconds, memoryBytes } = limits;
  return {
    language: 'javascript',
    // On the first line of the code, so that line numbers of errors are those of the code.
    source: `${BEFORE_CODE}${requiredText(input, 'code')}${AFTER_CODE}`,
    input: member(input, 'input') ?? null,
    apis: [],
    limits: { durationMilliseconds, memoryBytes, outputBytes: MAX_OUTPUT_BYTES, hostCalls: 0, hostBytes: 0 },
    owner: sessionPath(context),
  };
}

/** Defines the entry of the job. The code can change all of it, and with it only what this call returns. */
const BEFORE_CODE = [
  `async function execute(input) { let log = '', cut = false;`,
  `const shown = (value) => { try { return typeof value === 'string' ? value : JSON.stringify(value) ?? String(value); } catch { return String(value); } };`,
  `const write = (...values) => { const line = values.map(shown).join(' ') + '\\n'; if (log.length + line.length > ${MAX_LOG}) cut = true;`,
  `log = (log + line).slice(0, ${MAX_LOG}); };`,
  `const console = Object.freeze({ log: write, info: write, debug: write, warn: write, error: write });`,
  `try { const value = await (async (input, console) => { `,
].join(' ');
const AFTER_CODE = [
  '\n})(input, console); return { value: value === undefined ? null : value, log, cut }; }',
  `catch (thrown) { return { error: thrown instanceof Error ? thrown.name + ': ' + thrown.message : shown(thrown), log, cut }; } }`,
].join(' ');

const NO_HOST_CALLS: HostCalls = {
  call: () => Promise.reject(new TemperError('TEMPER_SANDBOX_CALL_BUDGET', 'the code has no host functions')),
};

function resultOf(output: Json): JsonObject {
  const [log, error, value] = ['log', 'error', 'value'].map((key) => member(output, key));
  const shownLog = typeof log === 'string' ? log.slice(0, MAX_LOG) : '';
  if (error !== undefined) {
    const printed = shownLog === '' ? '' : `; it had printed: ${printable(shownLog.slice(-1_000), 1_000)}`;
    const thrown = typeof error === 'string' ? printable(error, 1_000) : 'a value that cannot be read';
    throw new TemperError('TEMPER_SANDBOX_EXCEPTION', `the code threw ${thrown}${printed}`);
  }
  return { value: value ?? null, log: shownLog, ...(member(output, 'cut') === true ? { logIsCut: true } : {}) };
}
