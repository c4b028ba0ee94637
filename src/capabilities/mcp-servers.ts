import { Type } from 'typebox';
import { closed } from '../api/v1alpha1/common.ts';

const Name = Type.String({ pattern: '^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$', maxLength: 63 });

/** The MCP servers that the platform runs, in the configuration of a gateway and of the operator. */
export const McpServersSection = Type.Array(
  Type.Object(
    {
      name: Name,
      url: Type.String({
        pattern: '^http://[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?:[0-9]{1,5}/mcp$',
        maxLength: 300,
        description: 'The Service of its bridge.',
      }),
      namespaces: Type.Array(Name, { minItems: 1, maxItems: 1_000, description: 'Whose agents use it.' }),
    },
    closed,
  ),
  { maxItems: 50 },
);
