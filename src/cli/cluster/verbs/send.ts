import { ulids } from '../../../lib/ids.ts';
import { TemperError } from '../../../lib/errors.ts';
import { printable } from '../../../lib/printable.ts';
import type { UserMessageReceipt } from '../../../gateway-api/user-api.ts';
import { inSpan, SPANS } from '../../../telemetry/spans.ts';
import { openCluster } from '../cluster.ts';
import { followMessage } from '../messages/follow.ts';
import { sendMessage } from '../messages/sent-message.ts';
import { GatewayUserClient } from '../gateway-user-client.ts';
import type { ClusterOptions } from '../options.ts';
import { type CliIo, EXIT, writeJsonLine } from '../../io.ts';
import { startCommandTracing } from '../../tracing.ts';

export interface SendOptions extends ClusterOptions {
  agent: string;
  /** `-` or absent: standard input. */
  text?: string | undefined;
  session?: string;
  follow?: boolean;
  /** Maximum seconds of retries; 60 by default. */
  retrySeconds?: number;
  output: 'text' | 'json';
}

/** Sends a message to an agent. Exit 0: the message was accepted, or with --follow answered; 1: it was refused or failed. */
export async function send(options: SendOptions, io: CliIo): Promise<number> {
  const text = options.text === undefined || options.text === '-' ? (await io.stdin()).trimEnd() : options.text;
  if (text === '') throw new TemperError('TEMPER_USAGE', 'the message text is empty');
  await using _tracing = await startCommandTracing(io);
  await using cluster = await openCluster(options, io);
  const gateway = new GatewayUserClient(cluster, io.signal);
  const { agent, session, retrySeconds } = options;
  const message = { agent, text, key: ulids.next('cli'), retrySeconds, ...(session === undefined ? {} : { session }) };
  const receipt = await inSpan(SPANS.ask, { kind: 'CLIENT' }, () => sendMessage(gateway, message, io));
  if (options.output === 'json') writeJsonLine(io, { type: 'sent', ...receipt });
  else io.error(confirmation(receipt, agent, cluster.location));
  if (options.follow !== true) {
    if (options.output === 'text') io.out(`${printable(receipt.session, 128)}\n`);
    return EXIT.ok;
  }
  const answered = await followMessage({ gateway, agent, receipt, output: options.output }, io);
  return answered ? EXIT.ok : EXIT.refused;
}

function confirmation(
  { id, session, podBound, duplicate, waitsFor = [] }: UserMessageReceipt,
  agent: string,
  location: string,
): string {
  const state = duplicate ? 'was already sent' : podBound ? 'sent' : 'sent; the agent is idle and is being started';
  const line = `message ${printable(id, 128)} to agent/${printable(agent, 63)} in ${location} ${state} · session ${printable(session, 128)}\n`;
  const requests = waitsFor.map((name) => printable(name, 253)).join(', ');
  return requests === '' ? line : `${line}note: the session waits for an approval first: ${requests}\n`;
}
