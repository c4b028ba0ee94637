import { isSessionId } from '../../agent/session/session-id.ts';
import type { SessionStreamLine } from '../../gateway-api/user-api.ts';
import type { Json } from '../../lib/json.ts';
import { printable } from '../../lib/printable.ts';
import { withPrintableStrings } from '../../lib/text/printable-strings.ts';
import type { ServedResources } from '../../mcp/server/served.ts';
import { sessionOf, sessionResource, sessionTemplate } from '../../mcp/server/session-text.ts';
import type { AgentState } from '../agent-state.ts';
import type { GatewayDeps } from '../deps.ts';
import { storedLines } from '../users/stream.ts';

const LINES_TYPE = 'application/x-ndjson';
const MAX_CHARACTERS = 200_000;

/** The sessions of an agent, each as the lines that the API of users has for it. The signal ends a read. */
export function sessionResources(
  { uid, agent }: AgentState,
  { sessions, events }: Pick<GatewayDeps, 'sessions' | 'events'>,
  signal: AbortSignal,
): ServedResources {
  const { name } = agent.metadata;
  return {
    template: { ...sessionTemplate(name), mimeType: LINES_TYPE },
    list: async () =>
      (await sessions.sessions(uid)).map(({ session, lastUsedAt }) => ({
        ...sessionResource(session, {
          title: session,
          description: `Conversation with agent ${name}, last used ${printable(lastUsedAt, 40)}`,
        }),
        mimeType: LINES_TYPE,
      })),
    async read(uri) {
      const session = sessionOf(uri);
      if (!isSessionId(session)) return undefined;
      if (!(await sessions.sessions(uid)).some((known) => known.session === session)) return undefined;
      const lines = storedLines(events, { agentUid: uid, session, after: 0, skip: 0 });
      return { text: await lastLines(lines, signal), mimeType: LINES_TYPE };
    },
  };
}

/** The last lines as JSON, one in each line, without characters that no reader sees. */
async function lastLines(lines: AsyncIterable<SessionStreamLine>, signal: AbortSignal): Promise<string> {
  const kept: string[] = [];
  let size = 0;
  for await (const line of lines) {
    signal.throwIfAborted();
    const text = `${JSON.stringify(withPrintableStrings(line as unknown as Json))}\n`;
    kept.push(text);
    size += text.length;
    while (size > MAX_CHARACTERS) size -= kept.shift()?.length ?? size;
  }
  return kept.join('');
}
