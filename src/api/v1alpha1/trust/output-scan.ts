import { Type } from 'typebox';
import { closed } from '../common.ts';

export const OutputScan = Type.Object(
  {
    credentials: Type.Optional(
      Type.Enum(['Redact', 'Keep'], {
        default: 'Redact',
        description:
          'What becomes of credentials in results of tools: a marker takes their place before the model, the events and the stored session get them, or they stay.',
      }),
    ),
    invisibleCharacters: Type.Optional(
      Type.Enum(['Escape', 'Keep'], {
        default: 'Escape',
        description:
          'What becomes of control, zero-width and bidirectional characters in results from hosts and MCP servers, and of tools that got such a result from another tool: escapes such as `\\u{200b}`, or they stay.',
      }),
    ),
  },
  { ...closed, description: 'How results of tools are scanned before they reach a model.' },
);
