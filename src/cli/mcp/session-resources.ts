import { isSessionId } from '../../agent/session/session-id.ts';
import { SerialQueue } from '../../lib/async/serial-queue.ts';
import type { RecordStore } from '../../lib/record-store.ts';
import { printable } from '../../lib/printable.ts';
import type { ServedResources } from '../../mcp/server/served.ts';
import { traceLog } from '../../standalone/sessions/session-trace.ts';
import type { AgentScope } from '../../standalone/team/member.ts';
import { listSessions, type SessionOverview } from '../state/sessions.ts';
import { conversationText } from '../state/trace.ts';
import { LastText, SESSION_TYPE, sessionOf, sessionResource, sessionTemplate } from '../../mcp/server/session-text.ts';

/** The conversations of one agent as texts. One request at a time: each reads whole traces. */
export function sessionResources(records: RecordStore, { name, namespace }: AgentScope): ServedResources {
  const reads = new SerialQueue();
  const own = async (): Promise<SessionOverview[]> =>
    (await listSessions(records)).filter((session) => session.agent === name && session.namespace === namespace);
  return {
    template: sessionTemplate(name),
    list: () =>
      reads.run(async () =>
        (await own()).map(({ session, lastMessage, messages, usedAt }) =>
          sessionResource(session, {
            title: printable(lastMessage, 80),
            description: `Conversation with agent ${name}, ${messages} messages, last used ${printable(usedAt, 40)}`,
          }),
        ),
      ),
    read: (uri) =>
      reads.run(async () => {
        const session = sessionOf(uri);
        if (!isSessionId(session) || !(await own()).some((known) => known.session === session)) return undefined;
        const lines = await records.read(traceLog({ agent: name, namespace, session }));
        const text = new LastText();
        text.add(conversationText(lines));
        return { text: text.toString(), mimeType: SESSION_TYPE };
      }),
  };
}
