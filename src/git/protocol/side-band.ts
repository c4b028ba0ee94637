import { printable } from '../../lib/printable.ts';
import { gitFailure } from '../failure.ts';
import type { Packet } from './pkt-line.ts';

export interface SideBand {
  readonly data: Buffer;
  /** The message of the server for users, in one printable line. */
  readonly said: string;
}

const MAX_SAID = 300;
const [DATA, PROGRESS, ERROR] = [1, 2, 3];

/** The data and the messages of packets, until the first one without data. Throws when the server reports an error. */
export function sideBandOf(packets: Iterable<Packet>): SideBand {
  const data: Buffer[] = [];
  let said = '';
  for (const { payload } of packets) {
    if (payload === undefined) break;
    const content = payload.subarray(1);
    if (payload[0] === DATA) data.push(content);
    else if (payload[0] === PROGRESS) said = `${said}${content.toString('utf8')}`.slice(0, MAX_SAID);
    else if (payload[0] === ERROR)
      throw gitFailure(`the server refuses: ${printable(content.toString('utf8'), MAX_SAID)}`);
    else throw gitFailure('the server sent a packet of an unknown band');
  }
  return { data: Buffer.concat(data), said: printable(said.trim().replaceAll(/\s+/g, ' '), MAX_SAID) };
}
