import type { ToolArtifact } from '../../api/v1alpha1/emergenttool.ts';
import { forgedDescriptor } from '../../forge/forged-tool.ts';
import { parseArtifact } from '../../forge/parse-artifact.ts';
import { canonicalJson } from '../../lib/canonical.ts';
import type { Json, JsonObject } from '../../lib/json.ts';
import type { PolicyRequest } from '../../policy/types.ts';
import { artifactDigest } from '../../tempering/registry/serialization.ts';
import { anArtifact } from '../../tempering/tempering.testing.ts';
import { checkSqlQuery, sqlQueryTool } from '../../toolbox/sql/sql-query.ts';
import { webSearchTool } from '../../toolbox/web/search/web-search.ts';
import { policyDenied } from '../../tools/authorize.ts';
import type { Tool, ToolDescriptor } from '../../tools/contract.ts';
import { builtInDescriptors } from '../built-in.ts';
import type { EnginePorts } from '../ports.ts';
import type { ExternalTool } from './types.ts';

/** The tools beside the built-in ones, for a real engine and for an explanation. */

function composed(name: string, steps: { tool: string; with: JsonObject; condition?: string }[]): ToolArtifact {
  return anArtifact(name, {
    inputSchema: '{"properties":{"path":{"type":"string"},"value":{"type":"number"}},"type":"object"}',
    implementation: {
      mode: 'Compose',
      steps: steps.map(({ tool, with: mapping, condition }, index) => ({
        name: `s${index + 1}`,
        tool,
        inputMapping: canonicalJson(mapping),
        ...(condition === undefined ? {} : { condition }),
      })),
    },
  });
}

const DOUBLE = anArtifact('double');
const PINNED = `double@${artifactDigest(DOUBLE)}`;

const READ_STEP = composed('read_step', [
  { tool: 'file_read', with: { path: '$input.path' } },
  { tool: 'time_now', with: {} },
]);

const ARTIFACTS = [
  DOUBLE,
  anArtifact('call_api', { requires: { apis: ['fetch'], domains: ['api.example.com', 'evil.test'], paths: [] } }),
  anArtifact('read_file', {
    requires: { apis: ['fs.readFile', 'clock'], domains: [], paths: ['data/a.csv', '/etc/*'] },
  }),
  READ_STEP,
  composed('second_step', [
    { tool: 'file_delete', with: { path: 'a' }, condition: '$input.value > 3' },
    { tool: 'web_fetch', with: { url: 'https://api.example.com/' } },
  ]),
  composed('pinned_step', [{ tool: PINNED, with: { value: '$input.value' } }]),
  composed('nested_step', [{ tool: `read_step@${artifactDigest(READ_STEP)}`, with: { path: '$input.path' } }]),
  composed('lost_step', [{ tool: `double@sha256:${'0'.repeat(64)}`, with: {} }]),
];

/** As a gateway or a run executes a tool: the policy permits the host, or the call is refused. */
interface HostTool {
  descriptor: ToolDescriptor;
  requests: PolicyRequest[];
}

const ELSEWHERE = {
  description: 'A tool elsewhere.',
  sideEffects: true,
  locality: 'Brokered' as const,
};
const to = (host: string): PolicyRequest => ({ kind: 'Network', host, port: 443 });
const ORDER = { type: 'object', properties: { order: { type: 'string' } }, required: ['order'] };

const HOST_TOOLS: readonly HostTool[] = [
  {
    descriptor: {
      ...ELSEWHERE,
      name: 'refund',
      inputSchema: ORDER,
      category: 'other',
      action: 'example.com/crm:write',
      hosts: ['api.example.com'],
    },
    requests: [to('api.example.com')],
  },
  {
    descriptor: {
      ...ELSEWHERE,
      name: 'crm_read',
      inputSchema: ORDER,
      category: 'analytics',
      action: 'code:read',
      hosts: ['crm.test'],
    },
    requests: [],
  },
  {
    descriptor: {
      ...ELSEWHERE,
      name: 'h_echo',
      inputSchema: {},
      category: 'web',
      action: 'comms:external',
      resultOrigin: 'Mcp',
    },
    requests: [to('mcp.example.com')],
  },
  {
    descriptor: { ...ELSEWHERE, name: 'ship', inputSchema: {}, category: 'deployment', action: 'deploy:staging' },
    requests: [],
  },
];

const fails = (): Promise<never> => Promise.reject(new Error('nothing is there'));
const SERVICES: readonly Tool[] = [
  webSearchTool(fails),
  sqlQueryTool([{ name: 'sales', kind: 'SQLite', query: fails }]),
];

export const externalTools: NonNullable<EnginePorts['externalTools']> = ({ decide }) => [
  ...SERVICES,
  ...HOST_TOOLS.map(
    ({ descriptor, requests }): Tool => ({
      descriptor,
      call(_input, context) {
        for (const request of requests) {
          const decision = decide(context, request);
          if (decision.effect === 'Deny') throw policyDenied(decision);
        }
        return fails();
      },
    }),
  ),
];

export function explainedTools(): ExternalTool[] {
  return [
    ...SERVICES.map(({ descriptor }) => ({ descriptor, requests: [], check: checkOf(descriptor) })),
    ...HOST_TOOLS,
    ...ARTIFACTS.map(explainedArtifact),
  ];
}

function checkOf({ name }: ToolDescriptor): (input: Json) => void {
  return name === 'sql_query' ? checkSqlQuery : () => undefined;
}

function explainedArtifact(artifact: ToolArtifact): ExternalTool {
  const parsed = parseArtifact(artifact);
  if ('malformed' in parsed) throw new Error(parsed.malformed);
  const describe = (name: string) => builtInDescriptors().find((one) => one.name === name);
  return {
    descriptor: forgedDescriptor(artifact, parsed.digest, 'Session', { describe }),
    requests: [],
    requires: artifact.requires,
    steps: parsed.plan?.steps,
  };
}

export function forgedArtifacts(): readonly ToolArtifact[] {
  return ARTIFACTS;
}
