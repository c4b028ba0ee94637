import { parseDuration, parseQuantityBytes } from '../../api/quantities.ts';
import { TOOL_LIMIT_BOUNDS } from '../../api/tool-limits.ts';
import { TOOL_APIS } from '../../api/v1alpha1/actions.ts';
import type { ToolApi } from '../../api/v1alpha1/common.ts';
import { canonicalJson } from '../../lib/canonical.ts';
import type { ErrorCode } from '../../lib/error-codes.ts';
import { isTemperError } from '../../lib/errors.ts';
import { printable } from '../../lib/printable.ts';
import { isJsonObject, type Json, type JsonObject, member } from '../../lib/json.ts';
import { differenceFrom } from '../test-runs/compare-json.ts';
import { hasViolations } from '../gate-recorder.ts';
import {
  type ToolFixture,
  type ForgeRequest,
  type Implementation,
  type RequestedStep,
  RESERVED_NAMES,
  MAX_SIZES,
  STEP_NAME,
  type TestCase,
  TOOL_NAME,
  TOOL_REFERENCE,
  type ForgeViolation,
} from '../request.ts';

const MAX_VIOLATIONS = 40;
const KNOWN_MEMBERS = {
  request: ['name', 'description', 'inputSchema', 'outputSchema', 'implementation', 'testCases', 'limits'],
  implementation: ['mode', 'code', 'steps', 'allowlist', 'domains', 'paths'],
  step: ['name', 'tool', 'inputMapping', 'condition'],
  test: ['input', 'expectedOutput', 'fixtures', 'name', 'description'],
  fixture: ['tool', 'input', 'output'],
  limits: ['duration', 'memory'],
};

/** The typed request, or every violation of its shape. Unknown members give a warning and are ignored. */
export type ShapeResult =
  | { request: ForgeRequest; warnings: string[] }
  | { violations: readonly [ForgeViolation, ...ForgeViolation[]] };

/** Checks the shape of a request. `minimumTests` comes from the policy; at least one test is always required. */
export function checkShape(given: JsonObject, minimumTests: number): ShapeResult {
  const checker = new ShapeChecker();
  const request = checker.read(given, Math.max(1, minimumTests));
  return hasViolations(checker.violations)
    ? { violations: checker.violations }
    : { request, warnings: checker.warnings };
}

/**
 * Counts the test cases that exercise the tool, each input once. A case with an empty input counts only for a tool without
 * inputs. Fixtures make a case different, since they stand for other answers from outside.
 */
export function countDistinctTests(tests: readonly TestCase[], inputSchema: JsonObject): number {
  const properties = inputSchema['properties'];
  const withoutInputs = isJsonObject(properties) && Object.keys(properties).length === 0;
  const counted = tests.filter((test) => withoutInputs || Object.keys(test.input).length > 0);
  return new Set(counted.map(({ input, fixtures }) => JSON.stringify([sorted(input), fixtures]))).size;
}

/** The value with members in one order, so that equal inputs have equal texts. */
function sorted(value: Json): Json {
  if (Array.isArray(value)) return value.map(sorted);
  if (!isJsonObject(value)) return value;
  const entries = Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(entries.map(([key, item]) => [key, sorted(item)]));
}

class ShapeChecker {
  readonly violations: ForgeViolation[] = [];
  readonly warnings: string[] = [];

  read(given: JsonObject, minimumTests: number): ForgeRequest {
    this.#known(given, KNOWN_MEMBERS.request, 'the request');
    const inputSchema = this.#inputSchema(given['inputSchema']);
    const outputSchema = this.#schema(given['outputSchema'] ?? {}, 'outputSchema');
    const parts = isJsonObject(given['implementation']) ? given['implementation'] : {};
    const implementation = this.#implementation(given['implementation'], parts);
    const tests = this.#tests(given['testCases']);
    this.#requireTests(tests, inputSchema, minimumTests);
    this.#requireConsistency(tests);
    if (implementation.mode === 'Sandbox') this.#requireAssertions(tests, outputSchema);
    const apis = this.#apis(parts['allowlist'] ?? [], implementation.mode);
    const domains = this.#texts(parts['domains'] ?? [], 'implementation.domains', 253).map((host) =>
      host.toLowerCase(),
    );
    if (apis.includes('fetch') && domains.length === 0) {
      this.warnings.push('fetch may call no host without implementation.domains; name the hosts');
    }
    const paths = this.#texts(parts['paths'] ?? [], 'implementation.paths', 256);
    if (apis.includes('fs.readFile') && paths.length === 0) {
      this.warnings.push('fs.readFile may read no file without implementation.paths; name the files or folders');
    }
    return {
      name: this.#name(given['name']),
      description: this.#description(given['description']),
      inputSchema,
      outputSchema,
      implementation,
      requires: { apis, domains, paths },
      tests,
      limits: this.#limits(given['limits'], implementation.mode),
    };
  }

  #name(name: Json | undefined): string {
    if (typeof name !== 'string' || !TOOL_NAME.test(name)) {
      this.#report('name must be 1 to 63 of a-z, 0-9, _ and -, beginning with a letter');
      return '';
    }
    if (RESERVED_NAMES.has(name)) this.#report(`name "${name}" is reserved; choose another`);
    return name;
  }

  #description(description: Json | undefined): string {
    if (typeof description !== 'string' || description.trim() === '') {
      this.#report('description must describe in a sentence what the tool does');
      return '';
    }
    if (description.length > MAX_SIZES.description)
      this.#report(`description has at most ${MAX_SIZES.description} characters`);
    if (!description.isWellFormed()) this.#report('description contains invalid Unicode');
    return description;
  }

  #inputSchema(schema: Json | undefined): JsonObject {
    if (schema === undefined) {
      this.#report('inputSchema is missing; give a JSON Schema with type object and properties');
      return {};
    }
    const read = this.#schema(schema, 'inputSchema');
    if (isJsonObject(schema) && read['type'] !== 'object') this.#report('inputSchema must have type object');
    else if (isJsonObject(schema) && !isJsonObject(read['properties'])) {
      this.#report('inputSchema must have properties ({} for a tool without inputs)');
    }
    return read;
  }

  #schema(schema: Json, path: string): JsonObject {
    if (!isJsonObject(schema)) {
      this.#report(`${path} must be a JSON Schema object`);
      return {};
    }
    this.#sized(schema, MAX_SIZES.schema, path);
    return schema;
  }

  #implementation(given: Json | undefined, parts: JsonObject): Implementation {
    if (!isJsonObject(given)) {
      this.#report('implementation is missing; give {mode: "sandbox", code} or {mode: "compose", steps}');
      return { mode: 'Sandbox', source: '' };
    }
    this.#known(parts, KNOWN_MEMBERS.implementation, 'implementation');
    if (parts['mode'] === 'compose') return { mode: 'Compose', steps: this.#steps(parts['steps']) };
    if (parts['mode'] !== 'sandbox') this.#report('implementation.mode must be sandbox or compose');
    const code = parts['code'];
    if (typeof code !== 'string' || code.trim() === '') {
      this.#report('implementation.code must be JavaScript that defines function execute(input)');
      return { mode: 'Sandbox', source: '' };
    }
    if (code.length > MAX_SIZES.source) this.#report(`implementation.code has at most ${MAX_SIZES.source} characters`);
    if (!code.isWellFormed()) this.#report('implementation.code contains invalid Unicode');
    return { mode: 'Sandbox', source: code };
  }

  #steps(steps: Json | undefined): RequestedStep[] {
    if (!Array.isArray(steps) || steps.length === 0 || steps.length > MAX_SIZES.steps) {
      this.#report(`implementation.steps must be a list of 1 to ${MAX_SIZES.steps} steps`);
      return [];
    }
    const names = new Set<string>();
    return steps.map((given, index) => {
      const step = this.#step(given, `step ${index + 1}`);
      if (names.has(step.name)) this.#report(`step ${index + 1}: two steps are named "${step.name}"; rename one`);
      names.add(step.name);
      return step;
    });
  }

  #step(given: Json, path: string): RequestedStep {
    const step = isJsonObject(given) ? given : {};
    this.#known(step, KNOWN_MEMBERS.step, path);
    const { name, tool, inputMapping, condition } = step;
    if (typeof name !== 'string' || !STEP_NAME.test(name)) {
      this.#report(`${path}: name must be 1 to 63 letters, digits, _ and -, beginning with a letter`);
    }
    if (typeof tool !== 'string' || !TOOL_REFERENCE.test(tool))
      this.#report(`${path}: tool must be the name of a tool`);
    if (!isJsonObject(inputMapping)) this.#report(`${path}: inputMapping must be an object of arguments`);
    else this.#sized(inputMapping, MAX_SIZES.mapping, `${path}: inputMapping`);
    return {
      name: textOr(name),
      tool: textOr(tool),
      inputMapping: isJsonObject(inputMapping) ? inputMapping : {},
      ...this.#condition(condition, path),
    };
  }

  #condition(condition: Json | undefined, path: string): Pick<RequestedStep, 'condition'> {
    if (condition === undefined) return {};
    if (typeof condition !== 'string' || condition.length > MAX_SIZES.condition) {
      this.#report(`${path}: condition must be an expression of at most ${MAX_SIZES.condition} characters`);
      return {};
    }
    return condition.trim() === '' ? {} : { condition };
  }

  #tests(tests: Json | undefined): TestCase[] {
    if (!Array.isArray(tests) || tests.length === 0 || tests.length > MAX_SIZES.tests) {
      this.#report(`testCases must be a list of 1 to ${MAX_SIZES.tests} cases {input, expectedOutput}`);
      return [];
    }
    return tests.map((given, index) => this.#test(given, `test case ${index + 1}`));
  }

  #test(given: Json, path: string): TestCase {
    const test = isJsonObject(given) ? given : {};
    this.#known(test, KNOWN_MEMBERS.test, path);
    const input = member(test, 'input');
    const expected = member(test, 'expectedOutput');
    if (!isJsonObject(input)) this.#report(`${path}: input must be an object of arguments`);
    else this.#sized(input, MAX_SIZES.testValue, `${path}: input`);
    if (expected !== undefined) this.#sized(expected, MAX_SIZES.testValue, `${path}: expectedOutput`);
    return {
      input: isJsonObject(input) ? input : {},
      ...(expected === undefined ? {} : { expectedOutput: expected }),
      fixtures: this.#fixtures(test['fixtures'] ?? [], path),
    };
  }

  #fixtures(fixtures: Json, path: string): ToolFixture[] {
    if (!Array.isArray(fixtures) || fixtures.length > MAX_SIZES.fixtures) {
      this.#report(`${path}: fixtures must be a list of at most ${MAX_SIZES.fixtures} {tool, input?, output}`);
      return [];
    }
    return fixtures.map((given, index) => {
      const fixturePath = `${path}: fixture ${index + 1}`;
      const fixture = isJsonObject(given) ? given : {};
      this.#known(fixture, KNOWN_MEMBERS.fixture, fixturePath);
      const { tool, input, output } = fixture;
      if (typeof tool !== 'string' || !TOOL_NAME.test(tool))
        this.#report(`${fixturePath}: tool must be the name of a tool`);
      if (output === undefined) this.#report(`${fixturePath}: output is missing; give the output of the tool`);
      if (input !== undefined) this.#sized(input, MAX_SIZES.fixture, `${fixturePath}: input`);
      if (output !== undefined) this.#sized(output, MAX_SIZES.fixture, `${fixturePath}: output`);
      return {
        tool: typeof tool === 'string' ? tool : '',
        ...(input === undefined ? {} : { input }),
        output: output ?? null,
      };
    });
  }

  #requireTests(tests: readonly TestCase[], inputSchema: JsonObject, minimum: number): void {
    if (tests.length === 0) return;
    const counted = countDistinctTests(tests, inputSchema);
    if (counted >= minimum) return;
    const needed =
      minimum === 1
        ? 'a test case with a non-empty input is needed'
        : `${minimum} test cases with different, non-empty inputs are needed`;
    this.#report(`${needed}, ${counted} given; add ${minimum - counted}`);
  }

  /** One input with two expected outputs can be right for no tool. */
  #requireConsistency(tests: readonly TestCase[]): void {
    const seen = new Map<string, { number: number; expected: Json }>();
    for (const [index, { input, fixtures, expectedOutput }] of tests.entries()) {
      if (expectedOutput === undefined) continue;
      const key = JSON.stringify([sorted(input), fixtures]);
      const other = seen.get(key);
      if (other === undefined) seen.set(key, { number: index + 1, expected: expectedOutput });
      else if (differenceFrom(other.expected, expectedOutput) !== undefined) {
        this.#report(
          `test cases ${other.number} and ${index + 1} contradict each other: the same input, two expected outputs; correct one`,
        );
      }
    }
  }

  #requireAssertions(tests: readonly TestCase[], outputSchema: JsonObject): void {
    if (tests.length === 0 || tests.some((test) => test.expectedOutput !== undefined)) return;
    if (Object.keys(outputSchema).some((keyword) => keyword !== 'title' && keyword !== 'description')) return;
    this.#report('no test case states its expected output; add expectedOutput to one, or an outputSchema');
  }

  #apis(given: Json, mode: string): ToolApi[] {
    const apis = this.#texts(given, 'implementation.allowlist', 32);
    const aliases: Readonly<Record<string, ToolApi>> = { readFile: 'fs.readFile', fs: 'fs.readFile', date: 'clock' };
    const read = apis.map((api) =>
      Object.hasOwn(aliases, api) ? aliases[api] : TOOL_APIS.find((known) => known === api),
    );
    for (const [index, api] of read.entries()) {
      if (api !== undefined) continue;
      this.#report(
        `implementation.allowlist: ${shown(apis[index] ?? '')} is not one of ${TOOL_APIS.join(', ')}; remove it`,
      );
    }
    if (mode === 'Compose' && apis.length > 0)
      this.#report('implementation.allowlist is for mode sandbox only; remove it');
    return TOOL_APIS.filter((api) => read.includes(api));
  }

  #texts(given: Json, path: string, length: number): string[] {
    const holds = (item: Json): item is string => typeof item === 'string' && item !== '' && item.length <= length;
    if (!Array.isArray(given) || given.length > MAX_SIZES.domains || !given.every(holds)) {
      this.#report(`${path} must be a list of at most ${MAX_SIZES.domains} texts`);
      return [];
    }
    return [...new Set(given)];
  }

  #limits(given: Json | undefined, mode: Implementation['mode']): ForgeRequest['limits'] {
    const limits = isJsonObject(given) ? given : {};
    if (given !== undefined && !isJsonObject(given)) this.#report('limits must be {duration, memory}');
    this.#known(limits, KNOWN_MEMBERS.limits, 'limits');
    const { duration, memory } = limits;
    const { durationMs, composedDurationMs, memoryBytes } = TOOL_LIMIT_BOUNDS;
    this.#measure(duration, parseDuration, mode === 'Compose' ? composedDurationMs : durationMs, 'limits.duration');
    this.#measure(memory, parseQuantityBytes, memoryBytes, 'limits.memory');
    return {
      ...(typeof duration === 'string' ? { duration } : {}),
      ...(typeof memory === 'string' ? { memory } : {}),
    };
  }

  #measure(value: Json | undefined, parse: (text: string) => number, bounds: MeasureBounds, path: string): void {
    if (value === undefined) return;
    const measured = typeof value === 'string' ? parsedOr(value, parse) : undefined;
    if (measured !== undefined && measured >= bounds.minimum && measured <= bounds.maximum) return;
    const example = path === 'limits.memory' ? '64Mi' : '2s or 500ms';
    this.#report(`${path} must be ${bounds.allowed}, such as ${example}`);
  }

  #sized(value: Json, limit: number, path: string): void {
    try {
      if (canonicalJson(value).length > limit) this.#report(`${path} has at most ${limit} characters as JSON`);
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      this.#report(`${path} contains invalid Unicode or a number that is not finite`);
    }
  }

  #known(value: JsonObject, known: readonly string[], path: string): void {
    const unknown = Object.keys(value).filter((key) => !known.includes(key));
    if (unknown.length === 0) return;
    this.warnings.push(printable(`${path}: ${unknown.slice(0, 8).map(shown).join(', ')} ignored`, 200));
  }

  #report(message: string, code: ErrorCode = 'TEMPER_FORGE_SHAPE'): void {
    if (this.violations.length < MAX_VIOLATIONS) this.violations.push({ code, message: printable(message, 300) });
  }
}

interface MeasureBounds {
  minimum: number;
  maximum: number;
  allowed: string;
}

function parsedOr(text: string, parse: (text: string) => number): number | undefined {
  try {
    return parse(text);
  } catch (error) {
    if (isTemperError(error, 'TEMPER_MANIFEST_INVALID')) return undefined;
    throw error;
  }
}

function textOr(value: Json | undefined): string {
  return typeof value === 'string' ? value : '';
}

function shown(text: string): string {
  return JSON.stringify(text.slice(0, 40));
}
