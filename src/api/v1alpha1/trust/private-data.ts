import { Type } from 'typebox';
import { DEFAULT_PRIVATE_SOURCES, PRIVATE_SOURCES } from '../actions.ts';
import { closed, setOf } from '../common.ts';

export const PrivateData = Type.Object(
  {
    sources: Type.Optional({
      ...setOf(
        Type.Enum([...PRIVATE_SOURCES], { description: 'A source.' }),
        PRIVATE_SOURCES.length,
        'What counts as private data of the session that reads it: the results of file tools, Git and programs (`File`) and of database tools (`Database`), values of the memory (`Memory`), results of MCP servers, such as a mailbox (`Mcp`), messages of agents of the namespace (`Agent`) and their answers (`Reply`). An empty list: nothing.',
      ),
      default: [...DEFAULT_PRIVATE_SOURCES],
    }),
  },
  {
    ...closed,
    description: 'A tainted session with private data needs an approval for each call that sends to a host.',
  },
);
