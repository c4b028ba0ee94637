import type { SessionCloseReceipt } from '../../gateway-api/user-api.ts';
import { printable } from '../../lib/printable.ts';
import { type CliIo, writeJsonLine } from '../io.ts';
import { counted } from '../run/model-usage.ts';

/** Prints what closing a session removed. */
export function closedSession(receipt: SessionCloseReceipt, { output }: { output: 'text' | 'json' }, io: CliIo): void {
  if (output === 'json') return writeJsonLine(io, { ...receipt });
  const { session, closedBefore, tools, endedMessages } = receipt;
  const name = `session/${printable(session, 128)}`;
  const ended =
    endedMessages.length === 0 ? '' : `, ${counted(endedMessages.length, 'message')} ended without an answer`;
  if (closedBefore && tools === 0 && ended === '') io.out(`${name} was closed before\n`);
  else io.out(`${name} closed: its history and ${counted(tools, 'tool')} removed${ended}\n`);
}
