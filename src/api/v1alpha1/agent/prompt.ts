import { Type } from 'typebox';
import { MAX_CONTEXT_PARTS } from '../../limits/context.ts';
import { closed, setOf, Text } from '../common.ts';

const FilePath = Type.String({
  'x-temper-form': 'the path of a file below the workspace, such as identity/SOUL.md',
  pattern: '^[A-Za-z0-9_][A-Za-z0-9_.-]*(/[A-Za-z0-9_][A-Za-z0-9_.-]*)*$',
  maxLength: 255,
  description: 'The path of a text file, relative to the workspace.',
});

const MemoryKey = Type.String({
  'x-temper-form': 'a memory key such as self.profile',
  pattern: '^[A-Za-z0-9_-]+(\\.[A-Za-z0-9_-]+)*$',
  maxLength: 255,
  description: 'A memory key, without patterns.',
});

export const Prompt = Type.Object(
  {
    system: Text(65_536, 'The system prompt. Temper appends its own guidelines to it.'),
    context: Type.Optional(
      Type.Object(
        {
          files: Type.Optional(
            setOf(
              FilePath,
              MAX_CONTEXT_PARTS,
              'Text files of the workspace that say who the agent is and how it works. Each adds at most 8,000 characters.',
            ),
          ),
          memory: Type.Optional(
            setOf(
              MemoryKey,
              MAX_CONTEXT_PARTS,
              'Memory keys whose values the agent knows in all sessions. The agent needs a grant to read them. Each adds at most 8,000 characters.',
            ),
          ),
        },
        {
          ...closed,
          description:
            'What the first message to the model begins with, in every session: at most 24,000 characters, read at the start of each message.',
        },
      ),
    ),
  },
  { ...closed, description: 'The instructions for the model.' },
);
