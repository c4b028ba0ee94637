import { Type, type Static } from 'typebox';
import { TOOL_CATEGORIES } from './actions.ts';
import {
  ActionName,
  Conditions,
  Decimal,
  Digest,
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

const McpServerName = Type.String({
  'x-temper-form': 'a name of lower-case letters, digits and dashes',
  pattern: '^[a-z0-9]([-a-z0-9]{0,48}[a-z0-9])?$',
  maxLength: 50,
  description:
    'The name of an MCP server that the platform runs, in place of `url`. With `temper run`, the name of a server of the user.',
});

const SkillResource = Type.Object(
  {
    path: Type.String({
      'x-temper-form': 'a relative path without . and .. segments, such as references/style.md',
      pattern: '^[A-Za-z0-9_][A-Za-z0-9._-]{0,99}(/[A-Za-z0-9_][A-Za-z0-9._-]{0,99}){0,7}$',
      maxLength: 200,
      description: 'The path of the file in the folder of the skill, such as `references/style.md`.',
    }),
    text: Type.String({ maxLength: 131_072, description: 'The content of the file.' }),
  },
  closed,
);

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
      Text(65_536, 'The instructions of a skill. `load_tool` returns them to the model. Only for type `Skill`.'),
    ),
    resources: Type.Optional(
      Type.Array(SkillResource, {
        maxItems: 64,
        'x-kubernetes-list-type': 'map',
        'x-kubernetes-list-map-keys': ['path'],
        description:
          'Texts beside the instructions, which `load_tool_resource` returns, at most 512 KiB together. Only for type `Skill`.',
      }),
    ),
    source: Type.Optional(
      Text(
        1024,
        'Where the text comes from when the team did not write it, such as an OCI reference or a URL. Searches withhold its description, and a session that loads it has untrusted content. Only for type `Skill`.',
      ),
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
                url: Type.Optional(Url),
                server: Type.Optional(McpServerName),
                tool: Type.Optional(Text(128, 'The name of the tool on the MCP server. Defaults to `spec.tool.name`.')),
                connection: Type.Optional(ConnectionName),
                digest: Type.Optional({
                  ...Digest,
                  description:
                    'The digest of the tool as the server describes it; `temper mcp manifest` prints it. On a cluster, no agent has the tool without it, and a tool that the server describes differently is not called.',
                }),
              },
              {
                ...closed,
                description:
                  'A tool of an MCP server: by its `url` with Streamable HTTP transport, or by the name of a `server` that the platform runs.',
              },
            ),
          ),
          a2a: Type.Optional(
            Type.Object(
              {
                url: Url,
                version: Type.Optional(
                  Type.Enum(['1.0', '0.3'], {
                    default: '1.0',
                    description: 'The version of A2A that the agent speaks.',
                  }),
                ),
                connection: Type.Optional(ConnectionName),
              },
              {
                ...closed,
                description:
                  'An agent elsewhere over A2A, by the JSON-RPC address of its card. The argument `message` is the text; `context` and `task` go on with what an earlier output names; all other arguments are data.',
              },
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
            'Where the gateway executes a call: exactly one of `mcp`, `a2a` and `http`. When absent, the capability is only a catalogue entry.',
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
