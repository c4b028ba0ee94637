import { parseDuration, parseQuantityBytes } from '../api/quantities.ts';
import type { ToolArtifact } from '../api/v1alpha1/emergenttool.ts';
import { canonicalJson, digestOf, type Digest } from '../lib/canonical.ts';
import { isTemperError } from '../lib/errors.ts';
import { isJsonObject, jsonDepth, type Json, type JsonObject, parseUntrustedJson } from '../lib/json.ts';
import { type ComposePlan, planSteps } from './compose/plan.ts';
import { type ToolFixture, MAX_SIZES, type TestCase } from './request.ts';

/** An artifact with its JSON texts parsed, its steps planned and its limits as numbers. */
export interface ParsedArtifact {
  artifact: ToolArtifact;
  digest: Digest;
  inputSchema: JsonObject;
  outputSchema: JsonObject;
  tests: TestCase[];
  /** Present in mode Compose. */
  plan?: ComposePlan;
  durationMilliseconds: number;
  memoryBytes: number;
}

const MAX_DEPTH = 64;

/** Thrown by the readers of this file; the message names the member. */
class MalformedError extends Error {}

/** Parses an artifact whose structure is valid. `malformed` names the first text inside it that cannot be parsed. */
export function parseArtifact(artifact: ToolArtifact): ParsedArtifact | { malformed: string } {
  try {
    const { implementation, tests, limits } = artifact;
    if (canonicalJson(artifact).length > MAX_SIZES.artifact) {
      throw new MalformedError(`the whole tool may have at most ${MAX_SIZES.artifact} characters; make it smaller`);
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
    if (error instanceof RangeError) return { malformed: 'the tool contains invalid Unicode or is nested too deeply' };
    throw error;
  }
}

type ArtifactStep = NonNullable<ToolArtifact['implementation']['steps']>[number];

function checkedStep(step: ArtifactStep): ArtifactStep {
  readObject(step.inputMapping, `inputMapping of step "${step.name}"`);
  return step;
}

function readTest(test: ToolArtifact['tests'][number], index: number): TestCase {
  const what = `test case ${index + 1}`;
  return {
    input: readObject(test.input, `input of ${what}`),
    ...(test.expectedOutput === undefined
      ? {}
      : { expectedOutput: readJson(test.expectedOutput, `expectedOutput of ${what}`) }),
    fixtures: (test.fixtures ?? []).map((fixture): ToolFixture => {
      const fixtureName = `fixture for "${fixture.tool}" of ${what}`;
      return {
        tool: fixture.tool,
        ...(fixture.input === undefined ? {} : { input: readJson(fixture.input, fixtureName) }),
        output: readJson(fixture.output, fixtureName),
      };
    }),
  };
}

function readObject(text: string, what: string): JsonObject {
  const value = readJson(text, what);
  if (!isJsonObject(value)) throw new MalformedError(`${what} must be the JSON text of an object`);
  return value;
}

function readJson(text: string, what: string): Json {
  let value: Json;
  try {
    value = parseUntrustedJson(text);
  } catch (error) {
    if (!(error instanceof SyntaxError) && !(error instanceof RangeError)) throw error;
    throw new MalformedError(`${what} is not valid JSON`);
  }
  if (jsonDepth(value, MAX_DEPTH) >= MAX_DEPTH) throw new MalformedError(`${what} is nested too deeply`);
  // A second spelling of one value, or a member that occurs twice, would show a reader other text than a model gets.
  if (canonicalJson(value) !== text) {
    throw new MalformedError(
      `${what} is not canonical JSON: write each member once, sorted, without spaces and escapes`,
    );
  }
  return value;
}
