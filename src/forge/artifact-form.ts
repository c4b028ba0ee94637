import type { ToolArtifact } from '../api/v1alpha1/emergenttool.ts';
import { isJsonObject, type Json, type JsonObject } from '../lib/json.ts';
import { SIZES, STEP_NAME, TOOL_NAME, TOOL_REFERENCE } from './request.ts';

/**
 * The form of an artifact from outside, checked by hand: the same rules as its published schema, without loading
 * the machinery of that schema, since checking tools must start fast. Answers with what is wrong; empty means it is one.
 */
export function artifactFormProblems(value: Json): string[] {
  const form = new Form();
  form.artifact(value);
  return form.problems;
}

/** Narrows a value whose form was checked. */
export function asArtifact(value: Json): ToolArtifact | undefined {
  return artifactFormProblems(value).length === 0 ? (value as unknown as ToolArtifact) : undefined;
}

const APIS: readonly Json[] = ['fetch', 'fs.readFile', 'crypto', 'clock', 'random'];
const MAXIMUM_PROBLEMS = 20;

class Form {
  readonly problems: string[] = [];

  artifact(value: Json): void {
    const artifact = this.#object(value, 'the artifact', {
      required: ['name', 'description', 'inputSchema', 'outputSchema', 'implementation', 'tests', 'requires', 'limits'],
    });
    this.#matches(artifact['name'], TOOL_NAME, 'name');
    this.#text(artifact['description'], SIZES.description, 'description');
    this.#text(artifact['inputSchema'], SIZES.schema, 'inputSchema');
    this.#text(artifact['outputSchema'], SIZES.schema, 'outputSchema');
    this.#implementation(artifact['implementation'] ?? null);
    this.#list(artifact['tests'], SIZES.tests, 'tests', 1).forEach((test, index) =>
      this.#test(test, `tests[${index}]`),
    );
    this.#requires(artifact['requires'] ?? null);
    const limits = this.#object(artifact['limits'] ?? null, 'limits', { required: ['duration', 'memory'] });
    this.#text(limits['duration'], 32, 'limits.duration');
    this.#text(limits['memory'], 32, 'limits.memory');
  }

  #implementation(value: Json): void {
    const { mode, source, steps } = this.#object(value, 'implementation', {
      required: ['mode'],
      optional: ['source', 'steps'],
    });
    if (mode !== 'Sandbox' && mode !== 'Compose') this.#wrong('implementation.mode must be Sandbox or Compose');
    if ((mode === 'Sandbox') !== (source !== undefined) || (mode === 'Compose') !== (steps !== undefined)) {
      this.#wrong('implementation must hold source for Sandbox or steps for Compose, and not both');
    }
    if (source !== undefined) this.#text(source, SIZES.source, 'implementation.source');
    if (steps === undefined) return;
    const names = new Set<Json>();
    this.#list(steps, SIZES.steps, 'implementation.steps', 1).forEach((given, index) => {
      const place = `implementation.steps[${index}]`;
      const step = this.#object(given, place, { required: ['name', 'tool', 'inputMapping'], optional: ['condition'] });
      this.#matches(step['name'], STEP_NAME, `${place}.name`);
      this.#matches(step['tool'], TOOL_REFERENCE, `${place}.tool`);
      this.#text(step['inputMapping'], SIZES.mapping, `${place}.inputMapping`);
      if (step['condition'] !== undefined) this.#text(step['condition'], SIZES.condition, `${place}.condition`);
      if (names.has(step['name'] ?? null)) this.#wrong(`${place}.name stands twice`);
      names.add(step['name'] ?? null);
    });
  }

  #test(value: Json, place: string): void {
    const test = this.#object(value, place, { required: ['input'], optional: ['expectedOutput', 'fixtures'] });
    this.#text(test['input'], SIZES.testValue, `${place}.input`);
    if (test['expectedOutput'] !== undefined) {
      this.#text(test['expectedOutput'], SIZES.testValue, `${place}.expectedOutput`);
    }
    if (test['fixtures'] === undefined) return;
    this.#list(test['fixtures'], SIZES.fixtures, `${place}.fixtures`, 0).forEach((given, index) => {
      const where = `${place}.fixtures[${index}]`;
      const fixture = this.#object(given, where, { required: ['tool', 'output'], optional: ['input'] });
      this.#matches(fixture['tool'], TOOL_NAME, `${where}.tool`);
      this.#text(fixture['output'], SIZES.fixture, `${where}.output`);
      if (fixture['input'] !== undefined) this.#text(fixture['input'], SIZES.fixture, `${where}.input`);
    });
  }

  #requires(value: Json): void {
    const requires = this.#object(value, 'requires', { required: ['apis', 'domains', 'paths'] });
    for (const api of this.#list(requires['apis'], APIS.length, 'requires.apis', 0)) {
      if (!APIS.includes(api)) this.#wrong(`requires.apis may hold ${APIS.map(String).join(', ')}`);
    }
    for (const member of ['domains', 'paths']) {
      const length = member === 'domains' ? 253 : 256;
      for (const item of this.#list(requires[member], SIZES.domains, `requires.${member}`, 0)) {
        this.#text(item, length, `requires.${member}`);
      }
    }
  }

  #object(value: Json, place: string, members: { required: string[]; optional?: string[] }): JsonObject {
    if (!isJsonObject(value)) {
      this.#wrong(`${place} must be an object`);
      return {};
    }
    const known = [...members.required, ...(members.optional ?? [])];
    for (const member of members.required) if (!Object.hasOwn(value, member)) this.#wrong(`${place} lacks ${member}`);
    for (const key of Object.keys(value)) {
      if (!known.includes(key)) this.#wrong(`${place} has an unknown member ${JSON.stringify(key.slice(0, 40))}`);
    }
    return value;
  }

  #list(value: Json | undefined, most: number, place: string, least: number): Json[] {
    if (Array.isArray(value) && value.length >= least && value.length <= most) return value;
    this.#wrong(`${place} must be a list of ${least} to ${most}`);
    return [];
  }

  #text(value: Json | undefined, most: number, place: string): void {
    if (typeof value === 'string' && value !== '' && value.length <= most) return;
    this.#wrong(`${place} must be text of 1 to ${most} characters`);
  }

  #matches(value: Json | undefined, form: RegExp, place: string): void {
    if (typeof value !== 'string' || !form.test(value)) this.#wrong(`${place} must match ${form.source}`);
  }

  #wrong(problem: string): void {
    if (this.problems.length < MAXIMUM_PROBLEMS) this.problems.push(problem);
  }
}
