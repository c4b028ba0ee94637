import type { ToolArtifact } from '../../../src/api/v1alpha1/emergenttool.ts';
import type { Json } from '../../../src/lib/json.ts';
import { aCandidate } from '../../support/gateway/review-answers.ts';
import { LIES_OF_A_POD } from '../../support/promotion/lies.ts';

/** The lies about what a tool does. Only a re-run can find them, so the pod gets as far as a verification with each. */
export const VERIFIED_LIES = {
  /** Its only test fails, and no run gives the output of a use. */
  false_tests: {
    change: { tests: [{ input: '{"value":1}', expectedOutput: '{"result":3}' }] },
    use: (value: number) => ({ input: { value }, output: { result: value * 3 } }),
  },
  /** Its tests pass, and no run gives the output of a use. */
  false_outputs: {
    change: {},
    use: (value: number) => ({ input: { value }, output: { result: value * 5 } }),
  },
  /** Its tests pass, and runs give these outputs, but its schema refuses these inputs. */
  false_inputs: {
    change: { description: 'Doubles a text with a number.' },
    use: (value: number) => ({ input: { value: String(value) }, output: { result: value * 2 } }),
  },
} as const satisfies Record<string, { change: Partial<ToolArtifact>; use: (value: number) => FalseUse }>;

export interface FalseUse {
  input: Json;
  output: Json;
}

/** The tool whose uses have invented origins. */
export const TOOL_OF_ORIGINS = 'false_origins';

const STEPS: Partial<ToolArtifact> = {
  inputSchema: '{"properties":{"topic":{"type":"string"}},"required":["topic"],"type":"object"}',
  outputSchema: '{"properties":{"hits":{"items":{},"type":"array"}},"required":["hits"],"type":"object"}',
  implementation: {
    mode: 'Compose',
    steps: [{ name: 'look', tool: 'memory_search', inputMapping: '{"query":"$input.topic"}' }],
  },
  tests: [
    {
      input: '{"topic":"anvils"}',
      expectedOutput: '{"hits":[]}',
      fixtures: [{ tool: 'memory_search', output: '{"hits":[]}' }],
    },
  ],
};

/** The tool of a lie about uses of a chain that a gateway carried. */
export function toolOfLie(lie: string): string {
  return `lie_${LIES_OF_A_POD.indexOf(lie)}`;
}

/** What the pod submits, each with the claim that every test passed. */
export function lyingCandidates() {
  return [
    ...LIES_OF_A_POD.map((lie) => aCandidate(toolOfLie(lie), { ...STEPS, description: `Looks up: ${lie}.` })),
    ...Object.entries(VERIFIED_LIES).map(([name, { change }]) => aCandidate(name, change)),
    aCandidate(TOOL_OF_ORIGINS),
  ];
}
