import { MAX_TOOL_SETTINGS } from '../../limits/tool-settings.ts';
import { Type } from 'typebox';
import { closed, Duration, Text } from '../common.ts';

export const ToolSettings = Type.Array(
  Type.Object(
    {
      name: Type.String({
        'x-temper-form': 'the name of a tool, such as text_search',
        pattern: '^[a-z][a-z0-9_-]{0,62}$',
        maxLength: 63,
        description: 'The name of a tool of the agent, built-in or forged.',
      }),
      timeout: Type.Optional({
        ...Duration,
        description: 'Timeout of one call of this tool, from 1ms to `limits.toolTimeout`.',
      }),
      defaults: Type.Optional(
        Text(
          4_096,
          'A JSON object, as JSON text. A call that leaves out one of its members gets the value that stands here.',
        ),
      ),
    },
    closed,
  ),
  {
    maxItems: MAX_TOOL_SETTINGS,
    'x-kubernetes-list-type': 'map',
    'x-kubernetes-list-map-keys': ['name'],
    description: 'Settings of single tools. They grant nothing.',
  },
);
