import type { AgentCard, AgentSkill } from '@a2a-js/sdk';
import type { A2aSettings } from '../../api/v1alpha1/agent/a2a.ts';
import type { ServedAgent } from './served-agent.ts';

/** The versions of the protocol, the preferred one first. */
export const PROTOCOL_VERSIONS = ['1.0', '0.3'] as const;
export const A2A_PATH = '/v1/a2a/namespaces/:namespace/agents/:agent';

const MODES = ['text/plain', 'application/json'];
const SCHEME = 'serviceAccountToken';

/** What the agent says about itself. Everything in it comes from its manifest. */
export function agentCard({ state, settings }: Pick<ServedAgent, 'state' | 'settings'>, gatewayUrl: string): AgentCard {
  const { name, namespace = '', generation = 1 } = state.agent.metadata;
  const description = settings.description ?? state.agent.spec.description ?? name;
  const url = `${gatewayUrl}${A2A_PATH.replace(':namespace', namespace).replace(':agent', name)}`;
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
            description: 'A token of a Kubernetes ServiceAccount with the audience temper-a2a.',
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
