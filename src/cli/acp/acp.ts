import { realpath } from 'node:fs/promises';
import { sep } from 'node:path';
import { ndJsonStream, RequestError } from '@agentclientprotocol/sdk';
import { printable } from '../../lib/printable.ts';
import type { TeamEvents } from '../../standalone/team/team-events.ts';
import type { CliIo } from '../io.ts';
import { withServedAgent, type ServingOptions } from '../serving/serving-process.ts';
import { EditorAgent } from './editor-agent.ts';

/** Serves an agent to an editor over the Agent Client Protocol on standard input and output, until the input ends. */
export function acp(options: ServingOptions, outer: CliIo): Promise<number> {
  let editor: EditorAgent | undefined;
  const events: TeamEvents = (event, { session }) => editor?.observe(event, session);
  return withServedAgent(options, outer, { hasApprover: true, events }, async (serving) => {
    const { io, standalone, scope, own, workspace } = serving;
    editor = new EditorAgent({
      engine: own.engine,
      handle: (message, op) => standalone.handle(scope, message, op),
      records: standalone.records,
      signal: io.signal,
      assertFolder: (cwd) => assertFolder(cwd, workspace),
      note: (text) => io.error(`note: ${printable(text, 1_000)}\n`),
    });
    const connection = editor.app().connect(ndJsonStream(outputOf(io), inputOf(io)));
    io.signal.addEventListener('abort', () => connection.close(), { once: true });
    if (io.signal.aborted) connection.close();
    await connection.closed;
  });
}

/** The agent works in one folder. An editor with another project would see files change that it does not show. */
async function assertFolder(cwd: string, workspace: string): Promise<void> {
  const [asked, has] = await Promise.all([realpath(cwd).catch(() => cwd), realpath(workspace)]);
  if (asked === has || asked.startsWith(`${has}${sep}`)) return;
  throw RequestError.invalidParams(undefined, `the agent works in ${has}; start it with --workspace ${printable(cwd)}`);
}

/** Messages are lines of JSON. */
function inputOf(io: CliIo): ReadableStream<Uint8Array> {
  const lines = io.lines()[Symbol.asyncIterator]();
  const encoder = new TextEncoder();
  return new ReadableStream({
    async pull(controller) {
      const next = await lines.next();
      if (next.done === true) controller.close();
      else controller.enqueue(encoder.encode(`${next.value}\n`));
    },
    async cancel() {
      await lines.return?.();
    },
  });
}

function outputOf(io: CliIo): WritableStream<Uint8Array> {
  const decoder = new TextDecoder();
  return new WritableStream({
    write(chunk) {
      io.out(decoder.decode(chunk, { stream: true }));
    },
  });
}
