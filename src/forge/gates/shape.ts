import type { ToolApi } from '../../api/v1alpha1/common.ts';
import { canonicalJson } from '../../lib/canonical.ts';
import type { ErrorCode } from '../../lib/error-codes.ts';
import { printable } from '../../lib/escape.ts';
import { isJsonObject, type Json, type JsonObject, member } from '../../lib/json.ts';
import { hasViolations } from '../gate-log.ts';
import {
  type Fixture,
  type ForgeRequest,
  type Implementation,
  type RequestedStep,
  RESERVED_NAMES,
  SIZES,
  STEP_NAME,
  type TestCase,
  TOOL_NAME,
  TOOL_REFERENCE,
  type Violation,
} from '../request.ts';

const APIS: readonly ToolApi[] = ['fetch', 'fs.readFile', 'crypto', 'clock', 'random'];
const KNOWN = {
  request: ['name', 'description', 'inputSchema', 'outputSchema', 'implementation', 'testCases', 'limits'],
  implementation: ['mode', 'code', 'steps', 'allowlist', 'domains', 'paths'],
  step: ['name', 'tool', 'inputMapping', 'condition'],
  test: ['input', 'expectedOutput', 'fixtures', 'name', 'description'],
  fixture: ['tool', 'input', 'output'],
};

/** The request in types of its own, or everything its shape lacks. Members nobody knows are warned about, not obeyed. */
export type Shaped =
  | { request: ForgeRequest; warnings: string[] }
  | { violations: readonly [Violation, ...Violation[]] };

/** `minimumTests` is the policy's; one at least is always asked for. */
export function checkShape(given: JsonObject, minimumTests: number): Shaped {
  const shape = new Shape();
  const request = shape.read(given, Math.max(1, minimumTests));
  return hasViolations(shape.violations) ? { violations: shape.violations } : { request, warnings: shape.warnings };
}

class Shape {
  readonly violations: Violation[] = [];
  readonly warnings: string[] = [];

  read(given: JsonObject, minimumTests: number): ForgeRequest {
    this.#known(given, KNOWN.request, 'the request');
    const inputSchema = this.#inputSchema(given['inputSchema']);
    const outputSchema = this.#schema(given['outputSchema'] ?? {}, 'outputSchema');
    const parts = isJsonObject(given['implementation']) ? given['implementation'] : {};
    const implementation = this.#implementation(given['implementation'], parts);
    const tests = this.#tests(given['testCases']);
    this.#enoughTests(tests, inputSchema, minimumTests);
    if (implementation.mode === 'Sandbox') this.#assertsSomething(tests, outputSchema);
    const apis = this.#apis(parts['allowlist'] ?? [], implementation.mode);
    const domains = this.#texts(parts['domains'] ?? [], 'implementation.domains', 253).map((host) =>
      host.toLowerCase(),
    );
    if (apis.includes('fetch') && domains.length === 0) {
      this.warnings.push('fetch reaches no host without implementation.domains; name the hosts');
    }
    return {
      name: this.#name(given['name']),
      description: this.#description(given['description']),
      inputSchema,
      outputSchema,
      implementation,
      requires: {
        apis,
        domains,
        paths: this.#texts(parts['paths'] ?? [], 'implementation.paths', 256),
      },
      tests,
      limits: this.#limits(given['limits']),
    };
  }

  #name(name: Json | undefined): string {
    if (typeof name !== 'string' || !TOOL_NAME.test(name)) {
      this.#wrong('name must be 1 to 63 of a-z, 0-9, _ and -, beginning with a letter');
      return '';
    }
    if (RESERVED_NAMES.has(name)) this.#wrong(`name "${name}" is reserved; choose another`);
    return name;
  }

  #description(description: Json | undefined): string {
    if (typeof description !== 'string' || description.trim() === '') {
      this.#wrong('description must say in a sentence what the tool does');
      return '';
    }
    if (description.length > SIZES.description) this.#wrong(`description has at most ${SIZES.description} characters`);
    if (!description.isWellFormed()) this.#wrong('description holds broken Unicode');
    return description;
  }

  #inputSchema(schema: Json | undefined): JsonObject {
    if (schema === undefined) {
      this.#wrong('inputSchema is missing; give a JSON Schema with type object and properties');
      return {};
    }
    const read = this.#schema(schema, 'inputSchema');
    if (isJsonObject(schema) && read['type'] !== 'object') this.#wrong('inputSchema must have type object');
    else if (isJsonObject(schema) && !isJsonObject(read['properties'])) {
      this.#wrong('inputSchema must have properties ({} for a tool without inputs)');
    }
    return read;
  }

  #schema(schema: Json, place: string): JsonObject {
    if (!isJsonObject(schema)) {
      this.#wrong(`${place} must be a JSON Schema object`);
      return {};
    }
    this.#sized(schema, SIZES.schema, place);
    return schema;
  }

  #implementation(given: Json | undefined, parts: JsonObject): Implementation {
    if (!isJsonObject(given)) {
      this.#wrong('implementation is missing; give {mode: "sandbox", code} or {mode: "compose", steps}');
      return { mode: 'Sandbox', source: '' };
    }
    this.#known(parts, KNOWN.implementation, 'implementation');
    if (parts['mode'] === 'compose') return { mode: 'Compose', steps: this.#steps(parts['steps']) };
    if (parts['mode'] !== 'sandbox') this.#wrong('implementation.mode must be sandbox or compose');
    const code = parts['code'];
    if (typeof code !== 'string' || code.trim() === '') {
      this.#wrong('implementation.code must be JavaScript that defines function execute(input)');
      return { mode: 'Sandbox', source: '' };
    }
    if (code.length > SIZES.source) this.#wrong(`implementation.code has at most ${SIZES.source} characters`);
    if (!code.isWellFormed()) this.#wrong('implementation.code holds broken Unicode');
    return { mode: 'Sandbox', source: code };
  }

  #steps(steps: Json | undefined): RequestedStep[] {
    if (!Array.isArray(steps) || steps.length === 0 || steps.length > SIZES.steps) {
      this.#wrong(`implementation.steps must be a list of 1 to ${SIZES.steps} steps`);
      return [];
    }
    const names = new Set<string>();
    return steps.map((given, index) => {
      const step = this.#step(given, `step ${index + 1}`);
      if (names.has(step.name)) this.#wrong(`step ${index + 1}: two steps are named "${step.name}"; rename one`);
      names.add(step.name);
      return step;
    });
  }

  #step(given: Json, place: string): RequestedStep {
    const step = isJsonObject(given) ? given : {};
    this.#known(step, KNOWN.step, place);
    const { name, tool, inputMapping, condition } = step;
    if (typeof name !== 'string' || !STEP_NAME.test(name)) {
      this.#wrong(`${place}: name must be 1 to 63 letters, digits, _ and -, beginning with a letter`);
    }
    if (typeof tool !== 'string' || !TOOL_REFERENCE.test(tool))
      this.#wrong(`${place}: tool must be the name of a tool`);
    if (!isJsonObject(inputMapping)) this.#wrong(`${place}: inputMapping must be an object of arguments`);
    else this.#sized(inputMapping, SIZES.mapping, `${place}: inputMapping`);
    return {
      name: textOr(name),
      tool: textOr(tool),
      inputMapping: isJsonObject(inputMapping) ? inputMapping : {},
      ...this.#condition(condition, place),
    };
  }

  #condition(condition: Json | undefined, place: string): Pick<RequestedStep, 'condition'> {
    if (condition === undefined) return {};
    if (typeof condition !== 'string' || condition.length > SIZES.condition) {
      this.#wrong(`${place}: condition must be an expression of at most ${SIZES.condition} characters`);
      return {};
    }
    return condition.trim() === '' ? {} : { condition };
  }

  #tests(tests: Json | undefined): TestCase[] {
    if (!Array.isArray(tests) || tests.length === 0 || tests.length > SIZES.tests) {
      this.#wrong(`testCases must be a list of 1 to ${SIZES.tests} cases {input, expectedOutput}`);
      return [];
    }
    return tests.map((given, index) => this.#test(given, `test case ${index + 1}`));
  }

  #test(given: Json, place: string): TestCase {
    const test = isJsonObject(given) ? given : {};
    this.#known(test, KNOWN.test, place);
    const input = member(test, 'input');
    const expected = member(test, 'expectedOutput');
    if (!isJsonObject(input)) this.#wrong(`${place}: input must be an object of arguments`);
    else this.#sized(input, SIZES.testValue, `${place}: input`);
    if (expected !== undefined) this.#sized(expected, SIZES.testValue, `${place}: expectedOutput`);
    return {
      input: isJsonObject(input) ? input : {},
      ...(expected === undefined ? {} : { expectedOutput: expected }),
      fixtures: this.#fixtures(test['fixtures'] ?? [], place),
    };
  }

  #fixtures(fixtures: Json, place: string): Fixture[] {
    if (!Array.isArray(fixtures) || fixtures.length > SIZES.fixtures) {
      this.#wrong(`${place}: fixtures must be a list of at most ${SIZES.fixtures} {tool, input?, output}`);
      return [];
    }
    return fixtures.map((given, index) => {
      const where = `${place}: fixture ${index + 1}`;
      const fixture = isJsonObject(given) ? given : {};
      this.#known(fixture, KNOWN.fixture, where);
      const { tool, input, output } = fixture;
      if (typeof tool !== 'string' || !TOOL_NAME.test(tool)) this.#wrong(`${where}: tool must be the name of a tool`);
      if (output === undefined) this.#wrong(`${where}: output is missing; give what the tool would answer`);
      if (input !== undefined) this.#sized(input, SIZES.fixture, `${where}: input`);
      if (output !== undefined) this.#sized(output, SIZES.fixture, `${where}: output`);
      return {
        tool: typeof tool === 'string' ? tool : '',
        ...(input === undefined ? {} : { input }),
        output: output ?? null,
      };
    });
  }

  /** Gates need something to hold against: cases that give the tool work. An empty input does so only where there are no inputs. */
  #enoughTests(tests: readonly TestCase[], inputSchema: JsonObject, minimum: number): void {
    if (tests.length === 0) return;
    const properties = inputSchema['properties'];
    const withoutInputs = isJsonObject(properties) && Object.keys(properties).length === 0;
    const counted = tests.filter((test) => withoutInputs || Object.keys(test.input).length > 0);
    if (counted.length >= minimum) return;
    this.#wrong(
      `${minimum === 1 ? 'a test case' : `${minimum} test cases`} with a non-empty input ${minimum === 1 ? 'is' : 'are'} needed, ${counted.length} given; add ${minimum - counted.length}`,
    );
  }

  #assertsSomething(tests: readonly TestCase[], outputSchema: JsonObject): void {
    if (tests.length === 0 || tests.some((test) => test.expectedOutput !== undefined)) return;
    if (Object.keys(outputSchema).some((keyword) => keyword !== 'title' && keyword !== 'description')) return;
    this.#wrong('no test case says what must come out; add expectedOutput to one, or an outputSchema');
  }

  #apis(given: Json, mode: string): ToolApi[] {
    const apis = this.#texts(given, 'implementation.allowlist', 32);
    const aliases: Readonly<Record<string, ToolApi>> = { readFile: 'fs.readFile', fs: 'fs.readFile', date: 'clock' };
    const read = apis.map((api) => (Object.hasOwn(aliases, api) ? aliases[api] : APIS.find((known) => known === api)));
    for (const [index, api] of read.entries()) {
      if (api !== undefined) continue;
      this.#wrong(`implementation.allowlist: ${shown(apis[index] ?? '')} is none of ${APIS.join(', ')}; remove it`);
    }
    if (mode === 'Compose' && apis.length > 0)
      this.#wrong('implementation.allowlist is for mode sandbox only; remove it');
    return APIS.filter((api) => read.includes(api));
  }

  #texts(given: Json, place: string, length: number): string[] {
    const holds = (item: Json): item is string => typeof item === 'string' && item !== '' && item.length <= length;
    if (!Array.isArray(given) || given.length > SIZES.domains || !given.every(holds)) {
      this.#wrong(`${place} must be a list of at most ${SIZES.domains} texts`);
      return [];
    }
    return [...new Set(given)];
  }

  #limits(given: Json | undefined): ForgeRequest['limits'] {
    const { duration, memory } = isJsonObject(given) ? given : {};
    if (given !== undefined && !isJsonObject(given)) this.#wrong('limits must be {duration, memory}');
    if (
      duration !== undefined &&
      (typeof duration !== 'string' || !/^(?:\d{1,9}(?:ms|s|m))+$/.test(duration.slice(0, 32)))
    ) {
      this.#wrong('limits.duration must be a duration such as 2s or 500ms');
    }
    if (memory !== undefined && (typeof memory !== 'string' || !/^\d{1,9}(?:Ki|Mi|Gi|k|M|G)?$/.test(memory))) {
      this.#wrong('limits.memory must be a quantity such as 64Mi');
    }
    return {
      ...(typeof duration === 'string' ? { duration } : {}),
      ...(typeof memory === 'string' ? { memory } : {}),
    };
  }

  #sized(value: Json, limit: number, place: string): void {
    try {
      if (canonicalJson(value).length > limit) this.#wrong(`${place} has at most ${limit} characters as JSON`);
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      this.#wrong(`${place} holds broken Unicode or a number that is not finite`);
    }
  }

  #known(value: JsonObject, known: readonly string[], place: string): void {
    const unknown = Object.keys(value).filter((key) => !known.includes(key));
    if (unknown.length === 0) return;
    this.warnings.push(printable(`${place}: ${unknown.slice(0, 8).map(shown).join(', ')} ignored`, 200));
  }

  #wrong(message: string, code: ErrorCode = 'TEMPER_FORGE_SHAPE'): void {
    if (this.violations.length < 40) this.violations.push({ code, message: printable(message, 300) });
  }
}

function textOr(value: Json | undefined): string {
  return typeof value === 'string' ? value : '';
}

function shown(text: string): string {
  return JSON.stringify(text.slice(0, 40));
}
