import { printable } from '../../lib/printable.ts';
import { isJsonObject, jsonDepth, type Json, type JsonObject, parseUntrustedJson } from '../../lib/json.ts';
import { messageOf } from '../../lib/errors.ts';
import type { ForgeViolation } from '../request.ts';
import { inferSchema } from './infer-schema.ts';

/** A request in the documented form, and the changes that were needed. */
export interface NormalizedRequest {
  request: JsonObject;
  /** One sentence per change, for the author. */
  warnings: string[];
  violations: ForgeViolation[];
}

const MAX_CHARACTERS = 262_144;
const MAX_DEPTH = 64;
const MAX_WARNINGS = 30;

const MODES: Readonly<Record<string, string>> = {
  sandbox: 'sandbox',
  sandboxed: 'sandbox',
  code: 'sandbox',
  js: 'sandbox',
  javascript: 'sandbox',
  script: 'sandbox',
  function: 'sandbox',
  compose: 'compose',
  composed: 'compose',
  composable: 'compose',
  composition: 'compose',
  chain: 'compose',
  pipeline: 'compose',
  sequence: 'compose',
  workflow: 'compose',
  steps: 'compose',
};

const REQUEST_ALIASES = {
  inputSchema: ['input_schema', 'parameters', 'schema'],
  outputSchema: ['output_schema'],
  testCases: ['test_cases', 'tests', 'testcases'],
};
const TEST_ALIASES = {
  input: ['args', 'arguments', 'inputs'],
  expectedOutput: ['expected_output', 'expected', 'output', 'expectedoutput'],
};
const STEP_ALIASES = {
  tool: ['toolName', 'tool_name'],
  inputMapping: ['input_mapping', 'input', 'inputs', 'args', 'arguments', 'params'],
  condition: ['if', 'when'],
};
const IMPLEMENTATION_ALIASES = {
  code: ['source', 'javascript', 'script'],
  allowlist: ['apis', 'allowedAPIs', 'allowed_apis'],
  domains: ['fetchDomainAllowlist', 'allowedDomains'],
};
/** Members that models write at the top level and that belong into `implementation`. */
const FLAT = ['mode', 'code', 'steps', 'allowlist', 'domains', 'paths'];

/** Normalises a request as models write it to the documented form. Parts that it cannot read stay as they are; the shape gate reports them. */
export function normalizeRequest(input: Json): NormalizedRequest {
  const normalizer = new RequestNormalizer();
  const request = normalizer.run(input);
  return { request, warnings: normalizer.warnings, violations: normalizer.violations };
}

class RequestNormalizer {
  readonly warnings: string[] = [];
  readonly violations: ForgeViolation[] = [];

  run(input: Json): JsonObject {
    const text = jsonDepth(input, MAX_DEPTH) < MAX_DEPTH ? JSON.stringify(input) : undefined;
    if (text === undefined || text.length > MAX_CHARACTERS) {
      this.violations.push({ code: 'TEMPER_FORGE_SHAPE', message: 'the request is too large or nested too deeply' });
      return {};
    }
    // From here on the request is a separate copy without members such as __proto__, which would change an object.
    const value = this.#parsed(parseUntrustedJson(text), 'the request');
    if (!isJsonObject(value)) {
      this.violations.push({ code: 'TEMPER_FORGE_SHAPE', message: 'the request must be a JSON object' });
      return {};
    }
    const request = this.#renamed(value, REQUEST_ALIASES, '');
    for (const member of ['inputSchema', 'outputSchema', 'testCases'] as const) {
      const text = request[member];
      if (text !== undefined) request[member] = this.#parsed(text, member);
    }
    request['implementation'] = this.#implementation(request);
    if (Array.isArray(request['testCases'])) request['testCases'] = this.#tests(request['testCases']);
    this.#schemas(request);
    return request;
  }

  #implementation(request: JsonObject): Json {
    const flat: JsonObject = {};
    for (const member of FLAT) {
      const value = request[member];
      if (value === undefined) continue;
      flat[member] = value;
      delete request[member];
    }
    let input = request['implementation'];
    if (typeof input === 'string' && !input.trimStart().startsWith('{')) {
      this.#warn('implementation was text; it was taken as code');
      input = { code: input };
    }
    if (input === undefined && Object.keys(flat).length === 0) return null;
    const parsed = input === undefined ? {} : this.#parsed(input, 'implementation');
    if (!isJsonObject(parsed)) return parsed;
    const implementation = this.#renamed({ ...flat, ...parsed }, IMPLEMENTATION_ALIASES, 'implementation.');
    for (const member of ['steps', 'allowlist', 'domains', 'paths']) {
      const value = implementation[member];
      if (typeof value === 'string') implementation[member] = this.#list(value, `implementation.${member}`);
    }
    if (typeof implementation['code'] === 'string') implementation['code'] = this.#unfenced(implementation['code']);
    if (Array.isArray(implementation['steps'])) implementation['steps'] = this.#steps(implementation['steps']);
    this.#mode(implementation);
    return implementation;
  }

  #mode(implementation: JsonObject): void {
    const input = implementation['mode'];
    const inferred = implementation['steps'] === undefined ? 'sandbox' : 'compose';
    if (typeof input !== 'string') {
      this.#warn(`mode was missing; ${inferred} was inferred from ${inferred === 'compose' ? 'steps' : 'code'}`);
      implementation['mode'] = inferred;
      return;
    }
    const mode = Object.hasOwn(MODES, input.toLowerCase()) ? MODES[input.toLowerCase()] : undefined;
    if (mode === undefined || mode === input) return;
    if (input !== 'Sandbox' && input !== 'Compose') this.#warn(`mode ${shown(input)} was taken as ${mode}`);
    implementation['mode'] = mode;
  }

  #steps(steps: Json[]): Json[] {
    return steps.map((input, index) => {
      const parsed = this.#parsed(input, `step ${index + 1}`);
      if (!isJsonObject(parsed)) return parsed;
      const step = this.#renamed(parsed, STEP_ALIASES, `step ${index + 1}: `);
      if (step['name'] === undefined) step['name'] = `step${index + 1}`;
      if (step['inputMapping'] === undefined) step['inputMapping'] = {};
      step['inputMapping'] = this.#parsed(step['inputMapping'], `step ${index + 1}: inputMapping`);
      return step;
    });
  }

  #tests(tests: Json[]): Json[] {
    return tests.map((item, index) => {
      const parsed = this.#parsed(item, `test case ${index + 1}`);
      if (!isJsonObject(parsed)) return parsed;
      const test = this.#renamed(parsed, TEST_ALIASES, `test case ${index + 1}: `);
      const { input } = test;
      if (typeof input === 'string') test['input'] = this.#parsed(input, `test case ${index + 1}: input`);
      return test;
    });
  }

  #schemas(request: JsonObject): void {
    const tests = Array.isArray(request['testCases']) ? request['testCases'].filter(isJsonObject) : [];
    const samples = (member: string): Json[] =>
      tests.flatMap((test) => (Object.hasOwn(test, member) ? [test[member] ?? null] : []));
    const sources = { inputSchema: samples('input'), outputSchema: samples('expectedOutput') };
    for (const member of ['inputSchema', 'outputSchema'] as const) {
      const schema = request[member];
      if (isJsonObject(schema)) request[member] = this.#wrapped(schema, member);
      else if (schema === undefined && sources[member].length > 0) {
        this.#warn(`${member} was missing; it was inferred from the test cases`);
        request[member] = inferSchema(sources[member]);
      } else if (schema === undefined && member === 'outputSchema') {
        this.#warn('outputSchema was missing; any output is allowed');
        request[member] = {};
      }
    }
  }

  /** Wraps properties that stand in place of a schema: `{topic: {type: "string"}}`. */
  #wrapped(schema: JsonObject, member: string): JsonObject {
    const values = Object.values(schema);
    const typed = (value: Json): boolean => isJsonObject(value) && typeof value['type'] === 'string';
    if (values.length > 0 && values.every(typed) && !isJsonObject(schema['properties'])) {
      this.#warn(`${member} contained the properties themselves; they were put under properties`);
      return { type: 'object', properties: schema };
    }
    if (isJsonObject(schema['properties']) && schema['type'] === undefined) return { type: 'object', ...schema };
    return schema;
  }

  #renamed(value: JsonObject, aliases: Record<string, readonly string[]>, path: string): JsonObject {
    const renamed = { ...value };
    for (const [member, others] of Object.entries(aliases)) {
      const other = others.find((alias) => Object.hasOwn(value, alias));
      if (other === undefined || Object.hasOwn(value, member)) continue;
      this.#warn(`${path}${other} was taken as ${member}`);
      renamed[member] = value[other] ?? null;
      delete renamed[other];
    }
    return renamed;
  }

  #parsed(value: Json, path: string): Json {
    if (typeof value !== 'string') return value;
    try {
      const parsed = parseUntrustedJson(value);
      this.#warn(`${path} was JSON text; it was parsed`);
      return parsed;
    } catch (error) {
      const message = `${path} is text that is not valid JSON (${printable(messageOf(error), 120)}); send it as JSON`;
      this.violations.push({ code: 'TEMPER_FORGE_SHAPE', message });
      return value;
    }
  }

  #list(text: string, path: string): Json {
    if (text.trimStart().startsWith('[')) return this.#parsed(text, path);
    this.#warn(`${path} was text; it was taken as a list of one`);
    return [text];
  }

  #unfenced(code: string): string {
    const lines = code.trim().split('\n');
    if (!(lines[0] ?? '').startsWith('```') || lines.at(-1) !== '```') return code;
    this.#warn('the fence around the code was removed');
    return lines.slice(1, -1).join('\n');
  }

  #warn(message: string): void {
    if (this.warnings.length < MAX_WARNINGS) this.warnings.push(printable(message, 200));
  }
}

function shown(text: string): string {
  return JSON.stringify(text.slice(0, 40));
}
