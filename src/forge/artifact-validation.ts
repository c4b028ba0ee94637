import { TOOL_APIS } from '../api/v1alpha1/actions.ts';
import type { ToolArtifact } from '../api/v1alpha1/emergenttool.ts';
import { isJsonObject, type Json, type JsonObject } from '../lib/json.ts';
import { MAX_SIZES, STEP_NAME, TOOL_NAME, TOOL_REFERENCE } from './request.ts';

/**
 * Validates the structure of an untrusted artifact by the same rules as its published schema. The rules are written by
 * hand, because loading the schema library would slow down the start of the commands that check tools.
 * Returns the problems; an empty list means that the artifact is valid.
 */
export function validateArtifact(value: Json): string[] {
  const validator = new ArtifactValidator();
  validator.artifact(value);
  return validator.problems;
}

/** Returns the value as an artifact, or undefined when its structure is not valid. */
export function asArtifact(value: Json): ToolArtifact | undefined {
  return validateArtifact(value).length === 0 ? (value as unknown as ToolArtifact) : undefined;
}

const APIS: readonly Json[] = TOOL_APIS;
const MAX_PROBLEMS = 20;

class ArtifactValidator {
  readonly problems: string[] = [];

  artifact(value: Json): void {
    const artifact = this.#object(value, 'the artifact', {
      required: ['name', 'description', 'inputSchema', 'outputSchema', 'implementation', 'tests', 'requires', 'limits'],
    });
    this.#matches(artifact['name'], TOOL_NAME, 'name');
    this.#text(artifact['description'], MAX_SIZES.description, 'description');
    this.#text(artifact['inputSchema'], MAX_SIZES.schema, 'inputSchema');
    this.#text(artifact['outputSchema'], MAX_SIZES.schema, 'outputSchema');
    this.#implementation(artifact['implementation'] ?? null);
    this.#list(artifact['tests'], MAX_SIZES.tests, 'tests', 1).forEach((test, index) =>
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
    if (mode !== 'Sandbox' && mode !== 'Compose') this.#report('implementation.mode must be Sandbox or Compose');
    if ((mode === 'Sandbox') !== (source !== undefined) || (mode === 'Compose') !== (steps !== undefined)) {
      this.#report('implementation must hold source for Sandbox or steps for Compose, and not both');
    }
    if (source !== undefined) this.#text(source, MAX_SIZES.source, 'implementation.source');
    if (steps === undefined) return;
    const names = new Set<Json>();
    this.#list(steps, MAX_SIZES.steps, 'implementation.steps', 1).forEach((item, index) => {
      const path = `implementation.steps[${index}]`;
      const step = this.#object(item, path, { required: ['name', 'tool', 'inputMapping'], optional: ['condition'] });
      this.#matches(step['name'], STEP_NAME, `${path}.name`);
      this.#matches(step['tool'], TOOL_REFERENCE, `${path}.tool`);
      this.#text(step['inputMapping'], MAX_SIZES.mapping, `${path}.inputMapping`);
      if (step['condition'] !== undefined) this.#text(step['condition'], MAX_SIZES.condition, `${path}.condition`);
      if (names.has(step['name'] ?? null)) this.#report(`${path}.name is used twice`);
      names.add(step['name'] ?? null);
    });
  }

  #test(value: Json, path: string): void {
    const test = this.#object(value, path, { required: ['input'], optional: ['expectedOutput', 'fixtures'] });
    this.#text(test['input'], MAX_SIZES.testValue, `${path}.input`);
    if (test['expectedOutput'] !== undefined) {
      this.#text(test['expectedOutput'], MAX_SIZES.testValue, `${path}.expectedOutput`);
    }
    if (test['fixtures'] === undefined) return;
    this.#list(test['fixtures'], MAX_SIZES.fixtures, `${path}.fixtures`, 0).forEach((item, index) => {
      const fixturePath = `${path}.fixtures[${index}]`;
      const fixture = this.#object(item, fixturePath, { required: ['tool', 'output'], optional: ['input'] });
      this.#matches(fixture['tool'], TOOL_NAME, `${fixturePath}.tool`);
      this.#text(fixture['output'], MAX_SIZES.fixture, `${fixturePath}.output`);
      if (fixture['input'] !== undefined) this.#text(fixture['input'], MAX_SIZES.fixture, `${fixturePath}.input`);
    });
  }

  #requires(value: Json): void {
    const requires = this.#object(value, 'requires', { required: ['apis', 'domains', 'paths'] });
    for (const api of this.#list(requires['apis'], APIS.length, 'requires.apis', 0)) {
      if (!APIS.includes(api)) this.#report(`requires.apis may hold ${APIS.map(String).join(', ')}`);
    }
    for (const member of ['domains', 'paths']) {
      const length = member === 'domains' ? 253 : 256;
      for (const item of this.#list(requires[member], MAX_SIZES.domains, `requires.${member}`, 0)) {
        this.#text(item, length, `requires.${member}`);
      }
    }
  }

  #object(value: Json, path: string, members: { required: string[]; optional?: string[] }): JsonObject {
    if (!isJsonObject(value)) {
      this.#report(`${path} must be an object`);
      return {};
    }
    const known = [...members.required, ...(members.optional ?? [])];
    for (const member of members.required) if (!Object.hasOwn(value, member)) this.#report(`${path} lacks ${member}`);
    for (const key of Object.keys(value)) {
      if (!known.includes(key)) this.#report(`${path} has an unknown member ${JSON.stringify(key.slice(0, 40))}`);
    }
    return value;
  }

  #list(value: Json | undefined, max: number, path: string, min: number): Json[] {
    if (Array.isArray(value) && value.length >= min && value.length <= max) return value;
    this.#report(`${path} must be a list of ${min} to ${max}`);
    return [];
  }

  #text(value: Json | undefined, max: number, path: string): void {
    if (typeof value === 'string' && value !== '' && value.length <= max) return;
    this.#report(`${path} must be text of 1 to ${max} characters`);
  }

  #matches(value: Json | undefined, pattern: RegExp, path: string): void {
    if (typeof value !== 'string' || !pattern.test(value)) this.#report(`${path} must match ${pattern.source}`);
  }

  #report(problem: string): void {
    if (this.problems.length < MAX_PROBLEMS) this.problems.push(problem);
  }
}
