import { parseDuration, parseQuantityBytes } from '../api/quantities.ts';
import type { ToolArtifact } from '../api/v1alpha1/emergenttool.ts';
import { canonicalJson, digestOf, type Digest } from '../lib/canonical.ts';
import { isTemperError } from '../lib/errors.ts';
import { isJsonObject, jsonDepth, type Json, type JsonObject, parseUntrustedJson } from '../lib/json.ts';
import { type Plan, planSteps } from './compose/plan.ts';
import { type Fixture, SIZES, type TestCase } from './request.ts';

/** An artifact with its JSON texts read, its steps planned and its limits as numbers. */
export interface OpenArtifact {
  artifact: ToolArtifact;
  digest: Digest;
  inputSchema: JsonObject;
  outputSchema: JsonObject;
  tests: TestCase[];
  /** Present in mode Compose. */
  plan?: Plan;
  durationMilliseconds: number;
  memoryBytes: number;
}

const MAXIMUM_DEPTH = 64;

/** Thrown by the readers of this file; the message names the member. */
class MalformedError extends Error {}

/** Opens an artifact whose form was checked. Says what is malformed when a text inside it is not what it must be. */
export function openArtifact(artifact: ToolArtifact): OpenArtifact | { malformed: string } {
  try {
    const { implementation, tests, limits } = artifact;
    if (canonicalJson(artifact).length > SIZES.artifact) {
      throw new MalformedError(`the whole tool has at most ${SIZES.artifact} characters; make it smaller`);
    }
    return {
      artifact,
      digest: digestOf(artifact),
      inputSchema: readObject(artifact.inputSchema, 'inputSchema'),
      outputSchema: readObject(artifact.outputSchema, 'outputSchema'),
      tests: tests.map(readTest),
      ...(implementation.steps === undefined
        ? {}
        : { plan: planSteps(artifact.name, implementation.steps.map(checkedStep)) }),
      durationMilliseconds: parseDuration(limits.duration),
      memoryBytes: parseQuantityBytes(limits.memory),
    };
  } catch (error) {
    if (error instanceof MalformedError || isTemperError(error, 'TEMPER_MANIFEST_INVALID')) {
      return { malformed: error.message };
    }
    if (error instanceof RangeError) return { malformed: 'the tool holds broken Unicode or nests too deep' };
    throw error;
  }
}

type Step = NonNullable<ToolArtifact['implementation']['steps']>[number];

function checkedStep(step: Step): Step {
  readObject(step.inputMapping, `inputMapping of step "${step.name}"`);
  return step;
}

function readTest(test: ToolArtifact['tests'][number], index: number): TestCase {
  const place = `test case ${index + 1}`;
  return {
    input: readObject(test.input, `input of ${place}`),
    ...(test.expectedOutput === undefined
      ? {}
      : { expectedOutput: readJson(test.expectedOutput, `expectedOutput of ${place}`) }),
    fixtures: (test.fixtures ?? []).map((fixture): Fixture => {
      const where = `fixture for "${fixture.tool}" of ${place}`;
      return {
        tool: fixture.tool,
        ...(fixture.input === undefined ? {} : { input: readJson(fixture.input, where) }),
        output: readJson(fixture.output, where),
      };
    }),
  };
}

function readObject(text: string, place: string): JsonObject {
  const value = readJson(text, place);
  if (!isJsonObject(value)) throw new MalformedError(`${place} must be the JSON text of an object`);
  return value;
}

function readJson(text: string, place: string): Json {
  let value: Json;
  try {
    value = parseUntrustedJson(text);
  } catch (error) {
    if (!(error instanceof SyntaxError) && !(error instanceof RangeError)) throw error;
    throw new MalformedError(`${place} is not JSON text`);
  }
  if (jsonDepth(value, MAXIMUM_DEPTH) >= MAXIMUM_DEPTH) throw new MalformedError(`${place} nests too deep`);
  return value;
}
