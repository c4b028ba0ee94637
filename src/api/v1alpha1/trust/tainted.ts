import { Type } from 'typebox';
import { DEFAULT_UNTRUSTED_SOURCES, TAINTED_OPERATIONS, UNTRUSTED_SOURCES } from '../actions.ts';
import { closed, patternsOf, setOf } from '../common.ts';

export const Tainted = Type.Object(
  {
    deny: Type.Optional({
      ...setOf(
        Type.Enum([...TAINTED_OPERATIONS], { description: 'A denied operation.' }),
        TAINTED_OPERATIONS.length,
        'Operations that are denied in a tainted session. `message` includes all tools of the category communication, `spawn` starting and ending child agents, `memory` writing shared memory keys.',
      ),
      default: ['forge', 'promote', 'schedule'],
    }),
    sources: Type.Optional({
      ...setOf(
        Type.Enum([...UNTRUSTED_SOURCES], { description: 'A source.' }),
        UNTRUSTED_SOURCES.length,
        'What taints the session that reads it: messages of agents of the namespace (`Agent`), their answers (`Reply`), messages of triggers and of agents elsewhere, and the results of file tools, Git and programs (`File`) and of database tools (`Database`).',
      ),
      default: [...DEFAULT_UNTRUSTED_SOURCES],
    }),
    network: Type.Optional(
      patternsOf('Patterns for the hosts that a tainted session may connect to. When absent, the grants apply.'),
    ),
    tools: Type.Optional(
      patternsOf('Patterns for the tools that a tainted session may call. When absent, the grants apply.'),
    ),
  },
  { ...closed, description: 'Restrictions for tainted sessions, which contain untrusted content.' },
);
