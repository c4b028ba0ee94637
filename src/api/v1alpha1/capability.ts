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

/** `tool:csv_rows`: what a descriptor is found by. */
const CapabilityId = Type.String({
  'x-temper-form': 'kind:name, such as tool:csv_rows',
  pattern: '^(tool|skill|extension|channel|voice|productivity|emergent-tool):[A-Za-z0-9][A-Za-z0-9._-]{0,127}$',
  maxLength: 160,
  description: 'The id of a capability as `kind:name`, e.g. `tool:csv_rows`.',
});

const Url = Type.String({
  'x-temper-form': 'an https address without user name and password',
  pattern: '^https://[A-Za-z0-9.-]{1,253}(:[0-9]{1,5})?(/[!-~]*)?$',
  maxLength: 1024,
  description: 'An https address. User names, passwords and keys do not belong in it; a connection holds them.',
});

const ConnectionName = Type.String({
  'x-temper-form': 'a name of lower-case letters, digits and dashes',
  pattern: '^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$',
  maxLength: 63,
  description: 'A connection of the gateway configuration. It ties a secret to exact hosts and namespaces.',
});

export const CapabilitySpec = Type.Object(
  {
    type: Type.Enum(['Tool', 'Skill', 'Extension', 'Channel', 'Voice', 'Productivity'], {
      description: 'What is offered. Forged tools are listed by themselves and are not written as capabilities.',
    }),
    displayName: Type.Optional(Text(128, 'The name people read. The object name is used when absent.')),
    description: Text(2048, 'What it does and when to use it. Search reads this first.'),
    category: Type.Optional(Text(64, 'The group it is listed under, e.g. `data` or `communication`.')),
    tags: Type.Optional(setOf(Text(64, 'A word it is found by.'), 20, 'Words it is found by.')),
    requiredSecrets: Type.Optional(
      setOf(ConnectionName, 10, 'Connections that must be configured before it is available.'),
    ),
    requiredTools: Type.Optional(setOf(ToolName, 20, 'Tools it needs. It is shown as not available without them.')),
    hasSideEffects: Type.Optional(
      Type.Boolean({
        default: true,
        description: 'Does a use change anything outside? Only `false` counts as harmless.',
      }),
    ),
    tool: Type.Optional(
      Type.Object(
        {
          name: ToolName,
          category: Type.Enum([...TOOL_CATEGORIES], {
            default: 'other',
            description: 'The tool category. Access levels open categories.',
          }),
          action: Type.Optional(ActionName),
          inputSchema: Type.Record(Type.String(), Type.Unknown(), {
            description:
              'The JSON Schema of the arguments, at most 32 KiB. Do not use null in it; an API server may drop it.',
            'x-kubernetes-preserve-unknown-fields': true,
          }),
          outputSchema: Type.Optional(
            Type.Record(Type.String(), Type.Unknown(), {
              description: 'The JSON Schema of the output, at most 32 KiB. Absent: any output.',
              'x-kubernetes-preserve-unknown-fields': true,
            }),
          ),
        },
        { ...closed, description: 'How the tool is called. Only for type `Tool`.' },
      ),
    ),
    content: Type.Optional(Text(65_536, 'The whole text of a skill or extension, shown when it is loaded.')),
    examples: Type.Optional(atomicListOf(Text(1024, 'One example.'), 20, 'Examples of good use.')),
    edges: Type.Optional(
      atomicListOf(
        Type.Object(
          {
            type: Type.Enum(['DependsOn', 'ComposedWith', 'SameCategory', 'TaggedWith'], {
              description: 'How the two belong together.',
            }),
            target: CapabilityId,
            weight: Type.Optional({ ...Decimal, default: '1.0', description: 'Strength from `"0"` to `"1"`.' }),
          },
          closed,
        ),
        50,
        'Links to other capabilities that discovery follows.',
      ),
    ),
    backend: Type.Optional(
      Type.Object(
        {
          mcp: Type.Optional(
            Type.Object(
              {
                url: Url,
                tool: Type.Optional(Text(128, 'The name of the tool on the server. `spec.tool.name` when absent.')),
                connection: Type.Optional(ConnectionName),
              },
              { ...closed, description: 'A tool of an MCP server that speaks Streamable HTTP.' },
            ),
          ),
          http: Type.Optional(
            Type.Object(
              {
                url: Url,
                method: Type.Optional(
                  Type.Enum(['GET', 'POST', 'PUT', 'PATCH', 'DELETE'], {
                    default: 'POST',
                    description: 'The HTTP method. GET sends the arguments as query parameters, others as a JSON body.',
                  }),
                ),
                connection: Type.Optional(ConnectionName),
              },
              { ...closed, description: 'An HTTP endpoint that takes the arguments and answers with JSON.' },
            ),
          ),
        },
        {
          ...closed,
          description: 'Where a use is carried out: exactly one of `mcp` and `http`. Absent: catalogue entry only.',
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
    available: Type.Optional(Type.Boolean({ description: 'All that it needs is there.' })),
    conditions: Type.Optional(Conditions),
  },
  closed,
);
export type CapabilityStatus = Static<typeof CapabilityStatus>;

export type Capability = Resource<'Capability', CapabilitySpec, CapabilityStatus>;
