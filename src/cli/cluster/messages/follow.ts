import { printable } from '../../../lib/printable.ts';
import type { Json } from '../../../lib/json.ts';
import type { SessionStreamLine } from '../../../gateway-api/user-api.ts';
import { type CliIo, writeJsonLine } from '../../io.ts';
import { screenOf } from '../../transcript/screen.ts';
import { withPrintableStrings } from '../../../lib/text/printable-strings.ts';
import { withValue } from '../../transcript/structured-reply.ts';
import { Transcript } from '../../transcript/transcript.ts';
import { type FollowedMessage, messageLines } from './message-lines.ts';

export interface Followed extends FollowedMessage {
  readonly output: 'text' | 'json';
}

/** Prints events until the message is answered. False when it failed or was refused. */
export async function followMessage({ output, ...message }: Followed, io: CliIo): Promise<boolean> {
  const print = linePrinter(message.agent, output, io);
  let last: SessionStreamLine | undefined;
  for await (const line of messageLines(message, io)) {
    last = line;
    print(line);
  }
  return last?.kind === 'reply' && last.finishReason !== 'refusal';
}

/** Prints the lines of a session as they come. */
export function linePrinter(agent: string, output: 'text' | 'json', io: CliIo): (line: SessionStreamLine) => void {
  const transcript = new Transcript(agent, screenOf(io), { isReported: true });
  return (line) => {
    if (output === 'json') writeJsonLine(io, line.kind === 'reply' ? withValue(line, line.text) : line);
    else show(withPrintableStrings(line as unknown as Json) as unknown as SessionStreamLine, transcript, io);
  };
}

/** Prints a line. The pod's own `session-end` is skipped: the answer comes from the gateway. */
function show(line: SessionStreamLine, transcript: Transcript, io: CliIo): void {
  if (line.kind === 'reply') transcript.showAnswer(line.text);
  else if (line.kind === 'failed') io.error(`✗ ${printable(line.code, 80)}: ${printable(line.text, 1_000)}\n`);
  else if (line.event.type !== 'session-end') transcript.show(line.event);
}
