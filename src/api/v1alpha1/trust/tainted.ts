import { Type } from 'typebox';
import { DEFAULT_UNTRUSTED_SOURCES, UNTRUSTED_SOURCES } from '../actions.ts';
import { closed, patternsOf, setOf } from '../common.ts';

export const Tainted = Type.Object(
  {
    deny: Type.Optional({
      ...setOf(
        Type.Enum(['forge', 'promote', 'message', 'network', 'schedule'], { description: 'A denied operation.' }),
        5,
        'Operations that are denied in a tainted session.',
      ),
      default: ['forge', 'promote', 'schedule'],
    }),
    sources: Type.Optional({
      ...setOf(
        Type.Enum([...UNTRUSTED_SOURCES], { description: 'The source of a message.' }),
        4,
        'Messages from these sources taint the session that receives them: of agents of the namespace (`Agent`), their answers (`Reply`), triggers and agents elsewhere.',
      ),
      default: [...DEFAULT_UNTRUSTED_SOURCES],
    }),
    network: Type.Optional(
      patternsOf('Patterns for the hosts that a tainted session may connect to. When absent, the grants apply.'),
    ),
  },
  { ...closed, description: 'Restrictions for tainted sessions, which contain untrusted content.' },
);
