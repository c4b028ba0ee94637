import { Type, type Static } from 'typebox';
import { TOOL_CATEGORIES } from './actions.ts';
import {
  ActionName,
  Conditions,
  Decimal,
  ObservedGeneration,
  Text,
  ToolName,
  closed,
  setOf,
  atomicListOf,
} from './common.ts';
import type { Resource } from './common.ts';

/** The identifier of a capability, e.g. `tool:csv_rows`. */
const CapabilityId = Type.String({
  'x-temper-form': 'kind:name, such as tool:csv_rows',
  pattern: '^(tool|skill|extension|channel|voice|productivity|emergent-tool):[A-Za-z0-9][A-Za-z0-9._-]{0,127}$',
  maxLength: 160,
  description: 'The ID of a capability as `kind:name`, e.g. `tool:csv_rows`.',
});

const Url = Type.String({
  'x-temper-form': 'an https URL without user name and password',
  pattern: '^https://[A-Za-z0-9.-]{1,253}(:[0-9]{1,5})?(/[!-~]*)?$',
  maxLength: 1024,
  description: 'An HTTPS URL without user name, password or key. Use a connection for credentials.',
});

const ConnectionName = Type.String({
  'x-temper-form': 'a name of lower-case letters, digits and dashes',
  pattern: '^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$',
  maxLength: 63,
  description:
    'The name of a connection in the gateway configuration. A connection binds a secret to exact hosts and namespaces.',
});

export const CapabilitySpec = Type.Object(
  {
    type: Type.Enum(['Tool', 'Skill', 'Extension', 'Channel', 'Voice', 'Productivity'], {
      description:
        'The type of capability. Forged tools need no Capability object; discovery lists them automatically.',
    }),
    displayName: Type.Optional(Text(128, 'The display name. Defaults to the name of the object.')),
    description: Text(2048, 'What the capability does and when to use it. Discovery searches this text first.'),
    category: Type.Optional(Text(64, 'The category in lists of capabilities, e.g. `data` or `communication`.')),
    tags: Type.Optional(setOf(Text(64, 'A search keyword.'), 20, 'Search keywords.')),
    requiredSecrets: Type.Optional(
      setOf(ConnectionName, 10, 'Connections that must be configured for the capability to be available.'),
    ),
    requiredTools: Type.Optional(setOf(ToolName, 20, 'Tools that must exist for the capability to be available.')),
    hasSideEffects: Type.Optional(
      Type.Boolean({
        default: true,
        description:
          'Whether a call can change external state. Set `false` only for a capability without side effects.',
      }),
    ),
    tool: Type.Optional(
      Type.Object(
        {
          name: ToolName,
          category: Type.Enum([...TOOL_CATEGORIES], {
            default: 'other',
            description: 'The tool category. An access level allows a set of categories.',
          }),
          action: Type.Optional(ActionName),
          inputSchema: Type.Record(Type.String(), Type.Unknown(), {
            description:
              'The JSON Schema of the arguments, at most 32 KiB. Do not use null values; the API server may drop them.',
            'x-kubernetes-preserve-unknown-fields': true,
          }),
          outputSchema: Type.Optional(
            Type.Record(Type.String(), Type.Unknown(), {
              description: 'The JSON Schema of the output, at most 32 KiB. When absent, any output is valid.',
              'x-kubernetes-preserve-unknown-fields': true,
            }),
          ),
        },
        { ...closed, description: 'The definition of the tool. Only for type `Tool`.' },
      ),
    ),
    content: Type.Optional(
      Text(65_536, 'The full text of a skill or extension. Given to the model when the agent loads it.'),
    ),
    examples: Type.Optional(atomicListOf(Text(1024, 'One example.'), 20, 'Usage examples.')),
    edges: Type.Optional(
      atomicListOf(
        Type.Object(
          {
            type: Type.Enum(['DependsOn', 'ComposedWith', 'SameCategory', 'TaggedWith'], {
              description: 'The relation between the two capabilities.',
            }),
            target: CapabilityId,
            weight: Type.Optional({
              ...Decimal,
              default: '1.0',
              description: 'The strength of the link, from `"0"` to `"1"`.',
            }),
          },
          closed,
        ),
        50,
        'Links to related capabilities. Discovery follows these links.',
      ),
    ),
    backend: Type.Optional(
      Type.Object(
        {
          mcp: Type.Optional(
            Type.Object(
              {
                url: Url,
                tool: Type.Optional(Text(128, 'The name of the tool on the MCP server. Defaults to `spec.tool.name`.')),
                connection: Type.Optional(ConnectionName),
              },
              { ...closed, description: 'A tool of an MCP server with Streamable HTTP transport.' },
            ),
          ),
          http: Type.Optional(
            Type.Object(
              {
                url: Url,
                method: Type.Optional(
                  Type.Enum(['GET', 'POST', 'PUT', 'PATCH', 'DELETE'], {
                    default: 'POST',
                    description:
                      'The HTTP method. GET sends the arguments as query parameters; all other methods send a JSON body.',
                  }),
                ),
                connection: Type.Optional(ConnectionName),
              },
              { ...closed, description: 'An HTTP endpoint that accepts the arguments and responds with JSON.' },
            ),
          ),
        },
        {
          ...closed,
          description:
            'Where the gateway executes a call: exactly one of `mcp` and `http`. When absent, the capability is only a catalogue entry.',
        },
      ),
    ),
  },
  closed,
);
export type CapabilitySpec = Static<typeof CapabilitySpec>;

export const CapabilityStatus = Type.Object(
  {
    observedGeneration: Type.Optional(ObservedGeneration),
    available: Type.Optional(Type.Boolean({ description: 'Whether all required connections and tools exist.' })),
    conditions: Type.Optional(Conditions),
  },
  closed,
);
export type CapabilityStatus = Static<typeof CapabilityStatus>;

export type Capability = Resource<'Capability', CapabilitySpec, CapabilityStatus>;
