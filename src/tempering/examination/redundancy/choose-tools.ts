import { type ParsedArtifact, parseArtifact } from '../../../forge/parse-artifact.ts';
import type { Json, JsonObject } from '../../../lib/json.ts';
import type { ComparedTool } from './compared-tool.ts';
import { areCompatible, shapesOf } from './schema-shape.ts';
import { bySimilarity } from './similar-tools.ts';

/** Whether the values match a schema. */
export type SchemaMatch = (schema: JsonObject, values: readonly Json[]) => boolean;

/** A compared tool with its texts parsed. */
export interface ChosenTool {
  tool: ComparedTool;
  open: ParsedArtifact;
}

const MAX_TOOLS = 8;
/** Tools whose tests are tried: an agent can have hundreds. */
const MAX_CANDIDATES = 16;
/** Tests of each tool that its schemas are tried with. */
const MAX_TESTS = 5;

/** The most similar tools whose schemas and those of the examined tool accept the tests of each other. Pure. */
export function chooseTools(
  open: ParsedArtifact,
  tools: readonly ComparedTool[],
  matches: SchemaMatch,
): readonly ChosenTool[] {
  const shapes = shapesOf(open.artifact);
  const compatible = tools.filter((tool) => areCompatible(shapes, shapesOf(tool.artifact)));
  const described = compatible.map((tool) => {
    const { name, description } = tool.artifact;
    return { name, description, tool };
  });
  const similar = bySimilarity(open.artifact, described).slice(0, MAX_CANDIDATES);
  const chosen: ChosenTool[] = [];
  for (const { tool } of similar) {
    const other = parseArtifact(tool.artifact);
    if ('malformed' in other) continue;
    if (acceptsTestsOf(open, other, matches) && acceptsTestsOf(other, open, matches))
      chosen.push({ tool, open: other });
    if (chosen.length >= MAX_TOOLS) break;
  }
  return chosen;
}

function acceptsTestsOf(
  { inputSchema, outputSchema }: ParsedArtifact,
  { tests }: ParsedArtifact,
  matches: SchemaMatch,
): boolean {
  const tried = tests.slice(0, MAX_TESTS);
  const inputs = tried.map(({ input }) => input);
  const outputs = tried.flatMap(({ expectedOutput }) => (expectedOutput === undefined ? [] : [expectedOutput]));
  return matches(inputSchema, inputs) && matches(outputSchema, outputs);
}
