import { readFile } from 'node:fs/promises';
import type { ToolArtifact } from '../../../src/api/v1alpha1/emergenttool.ts';
import { createForgedTool } from '../../../src/forge/forged-tool.ts';
import { artifactOf } from '../../../src/forge/forge.testing.ts';
import { digestOf } from '../../../src/lib/canonical.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import type { Json, JsonObject } from '../../../src/lib/json.ts';
import type { HostCalls, Sandbox } from '../../../src/sandbox/port.ts';
import { artifactDigest } from '../../../src/tempering/registry/serialization.ts';
import { aCaller, anOp } from '../../../src/tempering/tempering.testing.ts';
import type { ToolUse } from '../../../src/tempering/types.ts';
import { asReported, toUseRecording } from '../../../src/tempering/use/use-recording.ts';
import { createSchemaCompiler } from '../../../src/tools/json-schema/compiler.ts';
import { CallRecorder } from '../../../src/tools/recording/call-recorder.ts';

const FORGES = new URL('../../fixtures/forges/', import.meta.url);

/** Five inputs of each worked forge. */
export const WORKED_FORGES: Readonly<Record<string, JsonObject[]>> = {
  check_http_status: [1, 2, 3, 4, 5].map((page) => ({ url: `https://status.example.com/${page}` })),
  convert_temperature: [1, 2, 3, 4, 5].map((value) => ({ value, from: 'C', to: 'F' })),
  fetch_analyze_report: [1, 2, 3, 4, 5].map((day) => ({ endpoint: `metrics.${day}`, timeRange: 'today' })),
  parse_csv: [1, 2, 3, 4, 5].map((age) => ({ csv: `name,age\nAda,${age}` })),
  research_and_summarize: ['a', 'b', 'c', 'd', 'e'].map((topic) => ({ topic })),
  slugify: ['One Two', 'two!', 'Three & Four', '4', 'é'].map((text) => ({ text })),
};

const text = (value: string): JsonObject => ({ text: value, output: value });
const TEXT_OUTPUT = { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] };

/** The forges that name tools which Temper does not have, with tools that it has. */
const WITH_BUILT_IN_TOOLS: Readonly<Record<string, JsonObject>> = {
  research_and_summarize: {
    outputSchema: TEXT_OUTPUT,
    implementation: {
      mode: 'compose',
      steps: [
        { name: 'search', tool: 'memory_search', inputMapping: { query: '$input.topic' } },
        { name: 'summarize', tool: 'generate_text', inputMapping: { prompt: 'About "$input.topic":\n$prev.hits' } },
      ],
    },
    testCases: [
      {
        input: { topic: 'forging' },
        fixtures: [
          { tool: 'memory_search', output: { hits: [] } },
          { tool: 'generate_text', output: text('Nothing.') },
        ],
        expectedOutput: text('Nothing.'),
      },
    ],
  },
  fetch_analyze_report: {
    outputSchema: TEXT_OUTPUT,
    implementation: {
      mode: 'compose',
      steps: [
        { name: 'fetch', tool: 'memory_get', inputMapping: { key: '$input.endpoint' } },
        {
          name: 'analyze',
          tool: 'generate_text',
          inputMapping: { prompt: 'Trends for $input.timeRange:\n$steps.fetch.value' },
        },
        { name: 'format', tool: 'generate_text', inputMapping: { prompt: 'As a report:\n$prev.output' } },
      ],
    },
    testCases: [
      {
        input: { endpoint: 'metrics', timeRange: 'today' },
        fixtures: [
          { tool: 'memory_get', output: { found: true, value: [3, 5] } },
          { tool: 'generate_text', input: { prompt: 'Trends for today:\n[3,5]' }, output: text('rising') },
          { tool: 'generate_text', input: { prompt: 'As a report:\nrising' }, output: text('# Rising') },
        ],
        expectedOutput: text('# Rising'),
      },
    ],
  },
};

/** What the built-in tools answer in the uses. */
const ANSWERS: Readonly<Record<string, (input: JsonObject) => Json>> = {
  memory_search: ({ query }) => ({ hits: [{ key: 'notes', value: query ?? null }] }),
  memory_get: ({ key }) => ({ found: true, value: key ?? null }),
  generate_text: ({ prompt }) => text(`answer to ${JSON.stringify(prompt)}`),
};
const network: HostCalls = {
  call: async (_api, input) => ({
    status: 204,
    headers: {},
    body: '',
    url: (input as { url: string }).url,
    redirected: false,
  }),
};

/** What an agent sends to `forge_tool`. */
export async function forgeRequest(name: string): Promise<JsonObject> {
  const request = JSON.parse(await readFile(new URL(`${name}.json`, FORGES), 'utf8')) as JsonObject;
  return { ...request, ...WITH_BUILT_IN_TOOLS[name] };
}

export async function workedForge(name: string): Promise<ToolArtifact> {
  return artifactOf(await forgeRequest(name));
}

/** The uses of the forge, with the evidence that a gateway gives them: it carried every call but those of host functions. */
export async function workedUses(
  name: string,
  artifact: ToolArtifact,
  sandbox: Sandbox,
): Promise<Pick<ToolUse, 'input' | 'output' | 'recording'>[]> {
  const tool = createForgedTool(artifact, artifactDigest(artifact), 'Session', {
    sandbox,
    clock: systemClock,
    schemas: createSchemaCompiler(),
    hostCalls: () => network,
    describe: () => undefined,
  });
  const uses = (WORKED_FORGES[name] ?? []).map(async (input) => {
    const recorder = new CallRecorder();
    const output = await tool.call(input, {
      ...aCaller(),
      stack: [],
      origin: 'Agent',
      op: anOp(),
      recorder,
      invoke: async (step, argument) => {
        const answer = ANSWERS[step]?.(argument as JsonObject) ?? null;
        return { ok: true, tool: step, output: answer, milliseconds: 1 };
      },
    });
    const { recording } = recorder;
    const use = { input, output: digestOf(output) };
    if (recording === undefined) return use;
    return {
      ...use,
      recording: asReported(toUseRecording(recording, 'reported'), ({ name: called }) => called in ANSWERS),
    };
  });
  return Promise.all(uses);
}
