import { isSessionId } from '../../../agent/session/session-id.ts';
import { SerialQueue } from '../../../lib/async/serial-queue.ts';
import { type Json, textAt } from '../../../lib/json.ts';
import { printable } from '../../../lib/printable.ts';
import type { SessionStreamLine } from '../../../gateway-api/user-api.ts';
import type { ServedResources } from '../../../mcp/server/served.ts';
import type { GatewayUserClient } from '../../cluster/gateway-user-client.ts';
import { eventsPath, streamLines } from '../../cluster/messages/message-lines.ts';
import { listOf } from '../../cluster/session-tools.ts';
import { withPrintableStrings } from '../../../lib/text/printable-strings.ts';
import { Screen } from '../../transcript/screen.ts';
import { Transcript } from '../../transcript/transcript.ts';
import {
  LastText,
  SESSION_TYPE,
  sessionOf,
  sessionResource,
  sessionTemplate,
} from '../../../mcp/server/session-text.ts';

/** The sessions of an agent of a cluster as texts. One request at a time: each reads whole sessions. */
export function clusterResources(agent: string, gateway: Pick<GatewayUserClient, 'call' | 'lines'>): ServedResources {
  const reads = new SerialQueue();
  const sessions = async (): Promise<Json[]> =>
    listOf(await gateway.call({ method: 'GET', path: `agents/${encodeURIComponent(agent)}/sessions` }));
  return {
    template: sessionTemplate(agent),
    list: () =>
      reads.run(async () =>
        (await sessions()).map((found) => {
          const session = textAt(found, ['session']);
          const used = printable(textAt(found, ['lastUsedAt']), 40);
          return sessionResource(session, {
            title: session,
            description: `Conversation with agent ${agent}, last used ${used}`,
          });
        }),
      ),
    read: (uri) =>
      reads.run(async () => {
        const session = sessionOf(uri);
        if (!isSessionId(session)) return undefined;
        if (!(await sessions()).some((found) => textAt(found, ['session']) === session)) return undefined;
        const lines = streamLines(await gateway.lines(eventsPath(agent, session)));
        return { text: await conversationText(agent, lines), mimeType: SESSION_TYPE };
      }),
  };
}

/** The conversation as text without colours. */
async function conversationText(agent: string, lines: AsyncIterable<SessionStreamLine>): Promise<string> {
  const text = new LastText();
  const screen = new Screen({ out: (line) => text.add(line), colour: false });
  const transcript = new Transcript(agent, screen, { isReported: true });
  for await (const found of lines) {
    const line = withPrintableStrings(found as unknown as Json) as unknown as SessionStreamLine;
    if (line.kind === 'reply') transcript.showAnswer(line.text);
    else if (line.kind === 'failed') screen.line(`✗ ${line.code}: ${line.text}`);
    // What the pod says about the answer; the answer itself comes from the gateway.
    else if (line.event.type !== 'session-end') transcript.show(line.event);
  }
  screen.endText();
  return text.toString();
}
