import type { AgentCard, AgentSkill } from '@a2a-js/sdk';
import type { Agent } from '../api/v1alpha1/agent.ts';
import type { A2aSettings } from '../api/v1alpha1/agent/a2a.ts';
import type { PeerPath } from './callers.ts';
import { PROTOCOL_VERSIONS } from './protocol.ts';

export const A2A_PATH = '/v1/a2a/namespaces/:namespace/agents/:agent';

/** The path of an agent at a server. */
export function a2aPath({ namespace, agent }: PeerPath): string {
  return A2A_PATH.replace(':namespace', namespace).replace(':agent', agent);
}

const MODES = ['text/plain', 'application/json'];
const SCHEME = 'serviceAccountToken';

/** What the agent says about itself. Everything in it comes from its manifest. `url`: the address of the server, without a path. */
export function agentCard({ metadata, spec }: Agent, server: { url: string; tokens: string }): AgentCard {
  const { name, namespace = 'default', generation = 1 } = metadata;
  const settings = spec.a2a ?? { enabled: false };
  const description = settings.description ?? spec.description ?? name;
  const url = `${server.url}${a2aPath({ namespace, agent: name })}`;
  const skills = settings.skills ?? [{ id: name, name, description }];
  return {
    name,
    description,
    version: String(generation),
    provider: undefined,
    supportedInterfaces: PROTOCOL_VERSIONS.map((protocolVersion) => ({
      url,
      protocolBinding: 'JSONRPC',
      protocolVersion,
      tenant: '',
    })),
    capabilities: { streaming: true, pushNotifications: false, extendedAgentCard: true, extensions: [] },
    securitySchemes: {
      [SCHEME]: {
        scheme: {
          $case: 'httpAuthSecurityScheme',
          value: {
            scheme: 'Bearer',
            bearerFormat: 'JWT',
            description: server.tokens,
          },
        },
      },
    },
    securityRequirements: [{ schemes: { [SCHEME]: { list: [] } } }],
    defaultInputModes: MODES,
    defaultOutputModes: MODES,
    skills: skills.map(skillOf),
    signatures: [],
  };
}

function skillOf({
  id,
  name,
  description,
  tags = [],
  examples = [],
}: NonNullable<A2aSettings['skills']>[number]): AgentSkill {
  return { id, name, description, tags, examples, inputModes: [], outputModes: [], securityRequirements: [] };
}
