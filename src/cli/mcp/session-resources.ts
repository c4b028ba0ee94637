import { isSessionId } from '../../agent/session/session-id.ts';
import { SerialQueue } from '../../lib/async/serial-queue.ts';
import type { RecordStore } from '../../lib/record-store.ts';
import { printable } from '../../lib/printable.ts';
import type { ServedResources } from '../../mcp/server/served.ts';
import { traceLog } from '../../standalone/sessions/session-trace.ts';
import type { AgentScope } from '../../standalone/team/member.ts';
import { listSessions, type SessionOverview } from '../state/sessions.ts';
import { conversationText } from '../state/trace.ts';

const PREFIX = 'temper://sessions/';
const MIME_TYPE = 'text/plain';
const MAX_TEXT = 1_000_000;

/** The conversations of one agent as texts. One request at a time: each reads whole traces. */
export function sessionResources(records: RecordStore, { name, namespace }: AgentScope): ServedResources {
  const reads = new SerialQueue();
  const own = async (): Promise<SessionOverview[]> =>
    (await listSessions(records)).filter((session) => session.agent === name && session.namespace === namespace);
  return {
    template: {
      uriTemplate: `${PREFIX}{session}`,
      name: 'session',
      description: `A conversation of agent ${name}: messages, calls and results`,
      mimeType: MIME_TYPE,
    },
    list: () =>
      reads.run(async () =>
        (await own()).map(({ session, lastMessage, messages, usedAt }) => ({
          uri: `${PREFIX}${session}`,
          name: session,
          title: printable(lastMessage, 80),
          description: `Conversation with agent ${name}, ${messages} messages, last used ${printable(usedAt, 40)}`,
          mimeType: MIME_TYPE,
        })),
      ),
    read: (uri) =>
      reads.run(async () => {
        const session = uri.startsWith(PREFIX) ? uri.slice(PREFIX.length) : '';
        if (!isSessionId(session) || !(await own()).some((known) => known.session === session)) return undefined;
        const lines = await records.read(traceLog({ agent: name, namespace, session }));
        return { text: lastPart(conversationText(lines)), mimeType: MIME_TYPE };
      }),
  };
}

function lastPart(text: string): string {
  if (text.length <= MAX_TEXT) return text;
  return `[the first ${text.length - MAX_TEXT} characters are left out]\n${text.slice(-MAX_TEXT)}`;
}
